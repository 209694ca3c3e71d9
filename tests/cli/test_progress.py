"""How far a run is: when it is said, and how it looks on a terminal."""

from __future__ import annotations

import io
import os

import pytest

from jobinfo_cache.commands.output import Output
from jobinfo_cache.commands.progress import Progress
from jobinfo_cache.testing import FakeClock


class _Terminal(io.StringIO):
    """What is written to a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return 2


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> _Terminal:
    """A terminal of 30 columns at stderr."""
    terminal = _Terminal()
    monkeypatch.setattr(os, "get_terminal_size", lambda _number: os.terminal_size((30, 24)))
    monkeypatch.setenv("TERM", "xterm")
    return terminal


def _output(terminal: _Terminal) -> Output:
    """An output with that terminal at stderr."""
    output = Output(as_json=False)
    output._stderr = terminal
    return output


def test_nothing_for_a_second_and_then_a_line_every_five(
    clock: FakeClock, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a terminal the first line comes after a second, and the next five seconds later."""
    with Progress(Output(as_json=False), clock.monotonic) as progress:
        for number in range(8):
            progress.show(f"{number} of 8")
            clock.advance(1.0)
    assert capsys.readouterr() == ("", "1 s: 1 of 8\n6 s: 6 of 8\n")


def test_one_line_that_is_written_over(clock: FakeClock, terminal: _Terminal) -> None:
    """On a terminal each text takes the place of the one before, and the last one vanishes."""
    with Progress(_output(terminal), clock.monotonic) as progress:
        for number in range(4):
            progress.show(f"{number} of 4")
            clock.advance(1.0)
    clear = "\r\x1b[K"
    assert terminal.getvalue() == f"1 s: 1 of 4{clear}2 s: 2 of 4{clear}3 s: 3 of 4{clear}"


def test_line_is_no_longer_than_the_terminal_is_wide(clock: FakeClock, terminal: _Terminal) -> None:
    """A text that would wrap, and so could not be taken back, is cut."""
    with Progress(_output(terminal), clock.monotonic) as progress:
        clock.advance(1.0)
        progress.show("x" * 100)
        assert len(terminal.getvalue()) == 29


def test_notes_and_data_take_its_place(
    clock: FakeClock, terminal: _Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    """A note, or data on stdout, is on a line of its own."""
    output = _output(terminal)
    with Progress(output, clock.monotonic) as progress:
        clock.advance(1.0)
        progress.show("one")
        output.note("note")
        clock.advance(1.0)
        progress.show("two")
        output.data("data", {})
        clear = "\r\x1b[K"
        assert terminal.getvalue() == f"1 s: one{clear}note\n2 s: two{clear}"
    assert capsys.readouterr().out == "data\n"


@pytest.mark.parametrize("term", ["dumb", None])
def test_terminal_that_can_do_nothing(
    term: str | None, clock: FakeClock, terminal: _Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal that cannot write over a line there are lines."""
    monkeypatch.delenv("TERM")
    if term is not None:
        monkeypatch.setenv("TERM", term)
    with Progress(_output(terminal), clock.monotonic) as progress:
        clock.advance(1.0)
        progress.show("one")
    assert terminal.getvalue() == "1 s: one\n"
