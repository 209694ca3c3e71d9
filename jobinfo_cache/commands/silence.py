"""Proof that the library prints nothing by itself."""

from __future__ import annotations

import io
import sys
from types import TracebackType

__all__ = ["Silence"]


class Silence:
    """While it is entered, whatever is written to `sys.stdout` and `sys.stderr` is caught.

    That is all that Python code prints: by `print`, by warnings, by log handlers of last resort,
    and by exceptions that end a thread. `heard` is what was caught. A context manager, for the
    one thread that may replace the two.
    """

    def __init__(self) -> None:
        self._caught = io.StringIO()
        self._real = (sys.stdout, sys.stderr)

    @property
    def heard(self) -> str:
        return self._caught.getvalue()

    def __enter__(self) -> Silence:
        self._real = (sys.stdout, sys.stderr)
        sys.stdout = sys.stderr = self._caught
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        sys.stdout, sys.stderr = self._real
