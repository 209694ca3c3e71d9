"""Where data and notes go, and what becomes of those that cannot be shown."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from jobinfo_cache.commands.output import Output, one_line


def test_data_and_notes_go_apart(capsys: pytest.CaptureFixture[str]) -> None:
    """Data is on stdout and notes are on stderr."""
    output = Output(as_json=False)
    output.data("data", {})
    output.note("note")
    assert capsys.readouterr() == ("data\n", "note\n")


def test_json_is_one_object_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """In JSON form the fields are written, whatever line ends are in them."""
    Output(as_json=True).data("data", {"a": "x\ny", "b": None})
    written = capsys.readouterr().out
    assert written.count("\n") == 1
    assert json.loads(written) == {"a": "x\ny", "b": None}


def test_text_that_the_encoding_cannot_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """A character that stdout cannot show is written as an escape."""
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", narrow)
    Output(as_json=False).data("ü \ud800", {})
    narrow.seek(0)
    assert narrow.read() == "\\xfc \\ud800\n"


def test_no_streams_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that was started without stdout and stderr goes on."""
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    output = Output(as_json=False)
    output.data("data", {})
    output.note("note")
    assert not output.is_cut


def test_notes_that_cannot_be_written(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk under stderr ends nothing: the data is what counts."""
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stderr", full)
        output = Output(as_json=False)
        output.note("note")
        output.data("data", {})
        output.note("note")
    assert capsys.readouterr().out == "data\n"


def test_one_line_has_nothing_that_a_terminal_obeys() -> None:
    """Control characters and line ends of a text from elsewhere are replaced."""
    assert one_line("a\x1b[2Jb\nc") == "a?[2Jb?c"
    assert one_line("abcdef", limit=5) == "ab..."
    assert one_line("abcde", limit=5) == "abcde"
