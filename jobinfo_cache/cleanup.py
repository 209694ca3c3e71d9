"""The thread that drops what nobody reads, and the connections that nobody needs."""

from __future__ import annotations

import threading

from jobinfo_cache.clock import Clock
from jobinfo_cache.connections import Connections
from jobinfo_cache.dispatcher import join_thread
from jobinfo_cache.fork import renew_after_fork
from jobinfo_cache.instrumentation import get_logger
from jobinfo_cache.store import Store

__all__ = ["Cleanup"]

log = get_logger(__name__)


class Cleanup:
    """Sweeps the store every `interval` seconds, in a daemon thread, until it is stopped."""

    def __init__(
        self, store: Store, clock: Clock, connections: Connections, interval: float
    ) -> None:
        self._store = store
        self._clock = clock
        self._connections = connections
        self._interval = interval
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Set the state without a thread; a fork's child begins so."""
        self.shutdown = self._clock.event()
        self._start_lock = threading.RLock()  # guards thread
        self.thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread if it does not run; raises what the system says if it cannot."""
        with self._start_lock:
            if self.thread is not None or self.shutdown.is_set():
                return
            thread = threading.Thread(target=self._run, name="jobinfo-cleanup", daemon=True)
            # Assigned first: a signal handler may come in here while the thread starts.
            self.thread = thread
            try:
                thread.start()
            except BaseException:
                self.thread = None
                raise

    def join(self, timeout: float) -> bool:
        """Wait for the thread's end for at most `timeout` seconds; True if there is none."""
        return self.thread is None or join_thread(self.thread, timeout)

    def sweep(self) -> None:
        """Remove unread entries, and close the connections of clusters without a live job."""
        for entry in self._store.expire():
            entry.state.tell_waiters(entry.job_id)
        clusters = self._store.clusters()
        self._connections.close_all_but(
            {state.cluster for state in clusters if state.has_live_entries}
        )

    def _run(self) -> None:
        while not self.shutdown.wait(self._interval):
            try:
                self.sweep()
            except Exception as fault:  # the next sweep may do better
                log.warning("a cleanup raised", exc_info=fault)
