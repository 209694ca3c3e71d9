"""Tells those who want to know that a job has changed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from jobinfo_cache.entry import Entry
from jobinfo_cache.instrumentation import get_logger
from jobinfo_cache.model import JobChange
from jobinfo_cache.store import Store

__all__ = ["Notifier"]

log = get_logger(__name__)
_stdlib_log = logging.getLogger(__name__)


class Notifier:
    """Wakes waiters, and calls `on_change` in the worker's thread, with no lock held."""

    def __init__(self, store: Store, on_change: Callable[[JobChange], object] | None) -> None:
        self._store = store
        self._on_change = on_change
        self._thread = threading.local()

    @property
    def in_callback(self) -> bool:
        """True in a thread that is inside `on_change`."""
        return getattr(self._thread, "in_callback", False)

    def tell(self, entry: Entry, change: JobChange | None) -> None:
        """Wake those who wait for the job, and call back if something has changed."""
        entry.state.tell_waiters(entry.job_id)
        if change is None or self._store.is_closed:
            return
        if _stdlib_log.isEnabledFor(logging.DEBUG):  # thousands of jobs may change at once
            log.debug(
                "a job changed",
                cluster=str(change.cluster),
                job_id=change.job_id,
                status=change.new and str(change.new.status),
                error=change.error and change.error.kind,
            )
        if self._on_change is not None:
            self._call(self._on_change, change)

    def _call(self, on_change: Callable[[JobChange], object], change: JobChange) -> None:
        self._thread.in_callback = True
        try:
            on_change(change)
        except BaseException as fault:  # user code; a worker outlives it
            self._store.count("callbacks_failed")
            log.warning("on_change raised", job_id=change.job_id, exc_info=fault)
        finally:
            self._thread.in_callback = False
