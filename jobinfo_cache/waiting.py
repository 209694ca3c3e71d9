"""The one read that blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from jobinfo_cache.errors import DashboardAuthError, JobNotFound, WaitTimeout
from jobinfo_cache.job import JobInfo, check_job_id

if TYPE_CHECKING:
    from jobinfo_cache.clock import Event
    from jobinfo_cache.engine import Engine
    from jobinfo_cache.entry import ClusterState

__all__ = ["wait_for_job"]


def wait_for_job(
    engine: Engine,
    state: ClusterState,
    job_id: str,
    timeout: float,
    until: Callable[[JobInfo], bool] | None,
) -> JobInfo:
    """`CachedDashboardClient.wait`: read again at each outcome, or when a read says so."""
    if engine.notifier.in_callback:
        raise RuntimeError("wait would block the worker that on_change runs in")
    if not timeout >= 0:
        raise ValueError(f"timeout is {timeout!r}; it must be a number of seconds from 0")
    job_id = check_job_id(job_id)
    # First, so that a signal handler that closes leaves the events to the dispatcher: this
    # thread may hold the lock of its own.
    engine.reader.start()
    monotonic = engine.clock.monotonic
    began = monotonic()
    with _told_of(engine, state, job_id) as event:
        while True:
            event.clear()
            snapshot = engine.reader.lookup(state, job_id, None, None)
            info = snapshot.info if snapshot.fresh else None
            if info is not None and (info.status.is_terminal or (until and until(info))):
                return info
            entry = state.entries.get(job_id)
            asked_since = entry is not None and entry.record.error_at >= began
            if asked_since and isinstance(snapshot.error, (JobNotFound, DashboardAuthError)):
                raise snapshot.error
            left = began + timeout - monotonic()
            if left <= 0:
                text = f"job {job_id!r} of cluster {state.cluster}: not there in {timeout} s"
                raise WaitTimeout(text, last_info=snapshot.info)
            event.wait(min(left, snapshot.retry_after or left))


@contextmanager
def _told_of(engine: Engine, state: ClusterState, job_id: str) -> Iterator[Event]:
    """An event that is set at each outcome of the job's polls, and when its entry goes."""
    event = engine.clock.event()
    with engine.store.lock:
        state.waiters.setdefault(job_id, []).append(event)
    try:
        yield event
    finally:
        with engine.store.lock:
            waiting = state.waiters.get(job_id, [])
            if event in waiting:  # a fork's child begins without
                waiting.remove(event)
            if not waiting:
                state.waiters.pop(job_id, None)
