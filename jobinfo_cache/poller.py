"""The rounds: what a worker does with a cluster whose time has come."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from jobinfo_cache import session
from jobinfo_cache.clock import Clock
from jobinfo_cache.dashboard import DashboardClient
from jobinfo_cache.entry import Entry
from jobinfo_cache.errors import (
    DashboardAuthError,
    DashboardError,
    DashboardUnavailable,
    JobNotFound,
)
from jobinfo_cache.instrumentation import get_logger
from jobinfo_cache.model import Cluster, JobChange, JobInfo
from jobinfo_cache.store import Store

__all__ = ["Poller"]

log = get_logger(__name__)

#: Seconds after which a worker turns from a cluster to the next one that waits. Short, so that
#: an interpreter that ends without `close` waits for one request and hardly more.
TURN = 0.1


class Poller:
    """Asks dashboards about the jobs that are due, stores the outcomes, tells of changes."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        on_change: Callable[[JobChange], object] | None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._on_change = on_change
        self._callback = threading.local()

    @property
    def in_callback(self) -> bool:
        """True in a thread that is inside `on_change`."""
        return getattr(self._callback, "active", False)

    def poll_cluster(self, cluster: Cluster) -> float | None:
        """Ask about the cluster's due jobs; returns in how many seconds to come again.

        The pool calls it for one cluster in one thread at a time. It ends early when the
        dashboard fails, or when it has taken a turn's time.
        """
        state = self._store.cluster(cluster)
        if state is None:
            return None
        turn_ends = self._clock.monotonic() + TURN
        due = self._store.due(state)
        for number, entry in enumerate(due):
            goes_on = self._poll(entry, due[number:])
            if not goes_on or self._clock.monotonic() >= turn_ends:
                break
        if self._store.take_excess_news():
            log.warning("the cache is full: jobs are evicted, or wait for a place")
        delay = self._store.next_delay(state)
        if delay is None:
            close_connections(state.dashboard)
        return delay

    def _poll(self, entry: Entry, due: Sequence[Entry]) -> bool:
        """Ask about one job; False if the dashboard fails, and so does the rest of the round."""
        if self._store.begin(entry) is None:
            return True
        outcome = self._ask(entry)
        if isinstance(outcome, DashboardError) and _is_outage(outcome):
            self._outage(entry, due, outcome)
            return False
        if self._store.reached(entry.state):
            log.info("a dashboard answers again", cluster=str(entry.state.cluster))
        if isinstance(outcome, JobInfo):
            self._tell(entry, self._store.answer(entry, outcome))
            session.after_answer(entry)
        else:
            if isinstance(outcome, JobNotFound):
                session.after_not_found(entry, outcome)
            self._tell(entry, self._store.fail(entry, outcome))
            _log_failure(entry, outcome)
        return True

    def _ask(self, entry: Entry) -> JobInfo | DashboardError:
        """Send the request; whatever comes back or goes wrong is the outcome."""
        sent = self._clock.now()
        try:
            return entry.state.dashboard.get_job_info(entry.job_id).stamped(sent)
        except DashboardError as failure:
            error = failure
        except BaseException as fault:  # a worker outlives whatever goes wrong in a poll
            log.warning("a poll raised", cluster=str(entry.state.cluster), exc_info=fault)
            error = DashboardError(
                f"polling job {entry.job_id!r} raised {type(fault).__name__}",
                url=getattr(entry.state.dashboard, "url", ""),
            )
            error.__cause__ = fault
        error.fetched_at = sent
        _drop_frames(error)
        return error

    def _outage(self, asked: Entry, due: Sequence[Entry], error: DashboardError) -> None:
        changes = self._store.outage(asked, due, error)
        state = asked.state
        if _is_power_of_ten(state.failures) and not self._store.is_closed:
            log.warning(
                "a dashboard fails",
                cluster=str(state.cluster),
                failures=state.failures,
                error=str(error),
            )
        for entry, change in zip(due, changes, strict=True):
            self._tell(entry, change)

    def _tell(self, entry: Entry, change: JobChange | None) -> None:
        """Wake those who wait for the job, and call back if something has changed."""
        entry.state.tell_waiters(entry.job_id)
        if change is None or self._store.is_closed:
            return
        log.debug(
            "a job changed",
            cluster=str(change.cluster),
            job_id=change.job_id,
            status=change.new and str(change.new.status),
            error=change.error and change.error.kind,
        )
        if self._on_change is None:
            return
        self._callback.active = True
        try:
            self._on_change(change)
        except BaseException as fault:  # user code; a worker outlives it
            self._store.count("callbacks_failed")
            log.warning("on_change raised", job_id=change.job_id, exc_info=fault)
        finally:
            self._callback.active = False


def close_connections(dashboard: DashboardClient) -> None:
    """Close what a dashboard client keeps open; it reconnects when it is used again."""
    close = getattr(dashboard, "close", None)  # a user's own fake may have none
    if close is not None:
        close()


def _is_outage(error: DashboardError) -> bool:
    """True for a failure of the dashboard, or of the way to it, and not about one job."""
    if isinstance(error, (DashboardUnavailable, DashboardAuthError)):
        return True
    return error.status_code is not None and error.status_code >= 500


def _log_failure(entry: Entry, error: DashboardError) -> None:
    failures = entry.record.failures
    if error.kind in ("not_found", "internal") or not _is_power_of_ten(failures):
        return
    log.warning(
        "a job cannot be read",
        cluster=str(entry.state.cluster),
        job_id=entry.job_id,
        failures=failures,
        error=str(error),
    )


def _is_power_of_ten(number: int) -> bool:
    return number > 0 and str(number).strip("0") == "1"


def _drop_frames(error: BaseException | None) -> None:
    """Let go of the frames, and all their variables, that a kept exception would keep."""
    while error is not None:
        error.__traceback__ = None
        error.__suppress_context__ = True
        error.__context__ = None
        error = error.__cause__
