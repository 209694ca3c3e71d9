"""The library's loggers, and counters that need no lock.

Records go to the standard loggers `jobinfo_cache.*`, which are silent until the application
configures logging; nothing global is touched. An application that renders structlog's events
gets the fields of each record as `extra` attributes.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import MutableMapping
from typing import Any

import structlog

from jobinfo_cache.fork import renew_after_fork

__all__ = ["Counter", "get_logger"]

logging.getLogger("jobinfo_cache").addHandler(logging.NullHandler())


def get_logger(module: str) -> Any:
    """The structured logger over the standard logger of that name.

    Call its methods as `log.warning("one sentence", field=value)`.
    """
    return structlog.wrap_logger(
        logging.getLogger(module),
        wrapper_class=structlog.stdlib.BoundLogger,
        processors=[
            structlog.stdlib.filter_by_level,
            _append_fields,
            structlog.stdlib.render_to_log_kwargs,
        ],
    )


def _append_fields(
    _logger: object, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Put the fields into the message too, for applications with plain formatters."""
    fields = [f"{name}={event[name]!r}" for name in event if name not in _NOT_FIELDS]
    event["event"] = " ".join([event["event"], *fields])
    return event


_NOT_FIELDS = ("event", "exc_info", "stack_info", "stacklevel")


class Counter:
    """A number that any thread may raise, without a lock and without losing a step."""

    def __init__(self) -> None:
        self._count = itertools.count()
        self._peeks = 0
        self.renew()
        renew_after_fork(self)
        #: Raise the number by one; returns it as it was. A C function: no thread gets in between.
        self.increment = self._count.__next__

    def renew(self) -> None:
        """Replace the lock, which only `value` takes; a fork's child begins so."""
        self._lock = threading.Lock()

    def value(self) -> int:
        """The number now. Looking costs one step of the count, which is taken off again."""
        with self._lock:
            value = next(self._count) - self._peeks
            self._peeks += 1
            return value
