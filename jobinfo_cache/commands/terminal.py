"""What the terminal at the program's streams can do."""

from __future__ import annotations

import codecs
import os
from collections.abc import Mapping
from typing import TextIO

__all__ = ["is_colourful", "is_terminal"]


def is_terminal(stream: TextIO | None, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a line on the stream can be written over: it is a terminal, and no dumb one."""
    if stream is None or not stream.isatty():
        return False
    return environ.get("TERM", "dumb") != "dumb"


def is_colourful(stream: TextIO | None, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether it can be drawn on, with colours and frames; and nobody asked for none of that."""
    if stream is None or not is_terminal(stream, environ) or environ.get("NO_COLOR"):
        return False
    return codecs.lookup(stream.encoding).name == "utf-8" and _is_ours(stream)


def _is_ours(stream: TextIO) -> bool:
    """Whether the program runs in the foreground of the terminal."""
    try:
        return os.tcgetpgrp(stream.fileno()) == os.getpgrp()
    except OSError:  # some other session's terminal
        return False
