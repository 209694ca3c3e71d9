"""What a command says: data on stdout, all else on stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any, TextIO

from jobinfo_cache.commands.exits import OutputError
from jobinfo_cache.commands.terminal import is_terminal

__all__ = ["Output", "one_line"]


class Output:
    """Writes to the stdout and stderr that there are when it is made. For one thread.

    `is_cut` is True once the reader of stdout has gone; what is written after that is dropped.
    So is what stderr does not take, for whatever reason.
    """

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._stdout: TextIO | None = sys.stdout  # None when the program was started without
        self._stderr: TextIO | None = sys.stderr
        self._has_status = False
        self.is_cut = False

    @property
    def can_write_over(self) -> bool:
        """Whether stderr is a terminal on which `status` leaves no trace."""
        return is_terminal(self._stderr)

    def data(self, text: str, fields: Mapping[str, Any]) -> None:
        """The text, or the fields as one JSON object on one line; blocks as stdout does.

        Raises `OutputError` when it cannot be written, on a full disk for one.
        """
        if self._stdout is None or self.is_cut:
            return
        self.status("")  # it may be the same terminal
        try:
            _write(self._stdout, (json.dumps(fields) if self._as_json else text) + "\n")
        except OSError as error:
            self.is_cut = True
            _discard(self._stdout)
            if not isinstance(error, BrokenPipeError):
                raise OutputError(f"stdout cannot be written: {error.strerror}") from error

    def note(self, text: str) -> None:
        """A line for people, on stderr."""
        self.status("")
        self._write_note(text + "\n")

    def status(self, text: str) -> None:
        """A line on stderr until the next of these, or anything else, takes its place.

        Only for a terminal (see `can_write_over`). Empty text takes it away.
        """
        if self._has_status:
            self._write_note("\r\x1b[K")
        self._has_status = bool(text)
        if text and self._stderr is not None:
            # One column less than there are: behind the last one a line may wrap.
            self._write_note(text[: os.get_terminal_size(self._stderr.fileno()).columns - 1])

    def _write_note(self, text: str) -> None:
        if self._stderr is None:
            return
        try:
            _write(self._stderr, text)
        except OSError:
            _discard(self._stderr)


def one_line(text: str, limit: int = 200) -> str:
    """At most `limit` characters of a text, without line ends and what a terminal obeys."""
    shown = "".join(char if char.isprintable() else "?" for char in text[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."


def _write(stream: TextIO, text: str) -> None:
    encoding = stream.encoding or "utf-8"  # what a terminal cannot show must not end a command
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def _discard(stream: TextIO) -> None:
    """Let what is still buffered go nowhere, so that the interpreter can flush it at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
