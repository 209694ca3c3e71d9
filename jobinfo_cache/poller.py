"""The rounds: what a worker does with a cluster whose time has come."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from jobinfo_cache import session
from jobinfo_cache.clock import Clock
from jobinfo_cache.connections import Connections, listing, with_timeout
from jobinfo_cache.durations import Durations
from jobinfo_cache.entry import ClusterState, Entry
from jobinfo_cache.errors import (
    DashboardAuthError,
    DashboardError,
    DashboardUnavailable,
    JobNotFound,
)
from jobinfo_cache.instrumentation import get_logger
from jobinfo_cache.job import JobInfo
from jobinfo_cache.lanes import Lanes
from jobinfo_cache.listing import Listing
from jobinfo_cache.model import Cluster
from jobinfo_cache.notifier import Notifier
from jobinfo_cache.outcomes import Outcomes
from jobinfo_cache.store import Store

if TYPE_CHECKING:
    from jobinfo_cache.dashboard import DashboardClient

__all__ = ["Poller"]

log = get_logger(__name__)

#: Seconds after which a worker turns from a cluster to the next one that waits. Short, so that
#: an interpreter that ends without `close` waits for one request and hardly more.
TURN = 0.1

#: Seconds for the very first request to a dashboard. If that is too short, the request is
#: repeated with its full deadline, after the first tries of others: dead dashboards shall not
#: keep those that are well waiting. A guess: ten times what Ray needs on a good day.
FIRST_TRY = 0.15


class Poller:
    """Asks dashboards about the jobs that are due, and stores the outcomes.

    Safe from any thread; the pool calls `poll_cluster` for one cluster in one thread at a time.
    Without `batching` it never lists.
    """

    def __init__(
        self,
        store: Store,
        outcomes: Outcomes,
        clock: Clock,
        *,
        notifier: Notifier,
        lanes: Lanes,
        connections: Connections,
        batching: bool,
    ) -> None:
        self._store = store
        self._outcomes = outcomes
        self._clock = clock
        self._notifier = notifier
        self._lanes = lanes
        self._connections = connections
        self._batching = batching
        # Of all requests, failed ones too, for those who publish metrics:
        self.single_durations = Durations()
        self.list_durations = Durations()

    def poll_cluster(self, cluster: Cluster) -> float | None:
        """Ask about the cluster's due jobs; returns in how many seconds to come again.

        None: there is nothing to poll, or the cluster is resumed when its lane has a place.
        Blocks for a turn and one request more at most, and for `on_change`.
        """
        state = self._store.cluster(cluster)
        if state is None:
            self._lanes.leave(cluster)
            return None
        if not self._lanes.enter(state):
            return None
        try:
            self._turn(state)
        finally:
            self._lanes.leave(cluster)
        if self._store.take_excess_news():
            log.warning("the cache is full: jobs are evicted, or wait for a place")
        delay = self._outcomes.next_delay(state)
        if delay is None:
            self._connections.close(cluster)
        return delay

    def _turn(self, state: ClusterState) -> None:
        """Ask about the jobs that are due, until the dashboard fails or the turn is over."""
        turn_ends = self._clock.monotonic() + TURN
        due = self._outcomes.due(state)
        if not due:
            return
        self._connections.used(state)
        if not state.was_reached or state.failures or state.costs.wants_single:
            if not self._poll_single(due[0], due):
                return
            due = due[1:]
        if self._batching:
            due = self._poll_list(state, due)
        for number, entry in enumerate(due):
            if self._clock.monotonic() >= turn_ends or not self._poll_single(entry, due[number:]):
                return

    # One request for one job

    def _poll_single(self, entry: Entry, due: Sequence[Entry]) -> bool:
        """Ask about one job; False if the dashboard fails, for all the jobs that are `due`."""
        state = entry.state
        sent, dashboard = self._clock.now(), state.dashboard
        if not self._outcomes.begin([entry]):
            return True
        self._store.count("requests_single")
        began = time.monotonic()
        hurries = not (state.was_reached or state.failures or state.cut_short)
        outcome = self._ask(entry, dashboard, sent, FIRST_TRY if hurries else None)
        took = time.monotonic() - began
        self.single_durations.record(took)
        if has_moved(state, dashboard):
            self._outcomes.drop([entry])
            return False
        if isinstance(outcome, DashboardError) and is_outage(outcome):
            if hurries and outcome.status_code is None and took >= FIRST_TRY:
                self._outcomes.cut_short(entry)
            else:
                self._outage(entry, due, outcome)
            return False
        state.costs.took_single(took)
        self._reached(state)
        if isinstance(outcome, JobInfo):
            self._notifier.tell(entry, self._outcomes.answer(entry, outcome, sent))
            if not self._store.is_closed:  # by `on_change`, for one
                session.after_answer(entry)
        else:
            if isinstance(outcome, JobNotFound):
                session.after_not_found(entry, outcome)
            self._notifier.tell(entry, self._outcomes.fail(entry, outcome))
            _log_failure(entry, outcome)
        self._outcomes.end(state)
        return True

    def _ask(
        self, entry: Entry, dashboard: DashboardClient, sent: datetime, timeout: float | None
    ) -> JobInfo | DashboardError:
        """Send the request; whatever comes back or goes wrong is the outcome."""
        if timeout is not None:
            dashboard = with_timeout(dashboard, timeout)
        try:
            return _checked(dashboard.get_job_info(entry.job_id))
        except DashboardError as failure:
            error = failure
        except BaseException as fault:  # a worker outlives whatever goes wrong in a poll
            log.warning("a poll raised", cluster=str(entry.state.cluster), exc_info=fault)
            error = DashboardError(
                f"polling job {entry.job_id!r} raised {type(fault).__name__}",
                url=getattr(dashboard, "url", ""),
            )
            error.__cause__ = fault
        error.fetched_at = sent
        _drop_frames(error)
        return error

    # One request for all jobs

    def _poll_list(self, state: ClusterState, due: list[Entry]) -> list[Entry]:
        """Refresh the jobs by one list request, if that is cheaper; returns those still due."""
        listable = [entry for entry in due if _is_listable(entry)]
        if not hasattr(state.dashboard, "list_jobs") or not state.costs.prefers_list(len(listable)):
            return due
        sent, dashboard = self._clock.now(), state.dashboard
        asked = self._outcomes.begin(listable)
        if not asked:
            return due
        self._store.count("requests_list")
        digest, jobs = self._list(state, dashboard, asked)
        if has_moved(state, dashboard):
            self._outcomes.drop(asked)
            return []
        for entry in asked:
            info = jobs.get(entry.job_id)
            if info is None:
                self._outcomes.missed(entry)
            else:
                self._notifier.tell(entry, self._outcomes.answer(entry, info, sent, digest))
                entry.session = state.session
        self._outcomes.end(state)
        return [entry for entry in due if entry.job_id not in jobs]

    def _list(
        self, state: ClusterState, dashboard: DashboardClient, asked: Sequence[Entry]
    ) -> tuple[bytes | None, dict[str, JobInfo]]:
        """The digest of a list, and the jobs asked for by their ids; none if it cannot be had."""
        began = time.monotonic()
        try:
            found = listing(dashboard)
            jobs = _unchanged(found, asked) or _by_id(found.jobs(), asked)
        except BaseException as fault:  # single requests will tell what is wrong, if anything
            state.costs.list_failed()
            log.debug("a list failed", cluster=str(state.cluster), error=str(fault))
            return None, {}
        finally:
            took = time.monotonic() - began
            self.list_durations.record(took)
        state.costs.took_list(took)
        self._reached(state)
        return found.digest, jobs

    # The dashboard

    def _reached(self, state: ClusterState) -> None:
        if self._outcomes.arrived(state):
            log.info("a dashboard answers again", cluster=str(state.cluster))

    def _outage(self, asked: Entry, due: Sequence[Entry], error: DashboardError) -> None:
        state = asked.state
        changes = self._outcomes.outage(asked, due, error)
        self._outcomes.end(state)
        if _is_power_of_ten(state.failures) and not self._store.is_closed:
            log.warning(
                "a dashboard fails",
                cluster=str(state.cluster),
                failures=state.failures,
                error=str(error),
            )
        for entry, change in zip(due, changes, strict=True):
            self._notifier.tell(entry, change)


def is_outage(error: DashboardError) -> bool:
    """True for a failure of the dashboard, or of the way to it, and not about one job."""
    if isinstance(error, (DashboardUnavailable, DashboardAuthError)):
        return True
    return error.status_code is not None and error.status_code >= 500


def has_moved(state: ClusterState, asked: DashboardClient) -> bool:
    """True if the cluster has another address by now than the one that was asked."""
    return state.dashboard is not asked and state.dashboard.url != asked.url


def _unchanged(found: Listing, asked: Sequence[Entry]) -> dict[str, JobInfo]:
    """What is known of the jobs, if all of it is from the same list; else nothing."""
    records = [(entry.job_id, entry.record) for entry in asked]
    if found.digest is None or any(record.listed != found.digest for _, record in records):
        return {}
    return {job_id: record.info for job_id, record in records if record.info is not None}


def _by_id(jobs: Sequence[JobInfo], asked: Sequence[Entry]) -> dict[str, JobInfo]:
    """The jobs asked for by their ids, of which Ray may know two."""
    wanted = {entry.job_id for entry in asked}
    found: dict[str, JobInfo] = {}
    for job in jobs:
        for job_id in (job.submission_id, job.job_id):
            if job_id in wanted:
                found.setdefault(job_id, _checked(job))
    return found


def _checked(info: JobInfo) -> JobInfo:
    if not isinstance(info, JobInfo):  # a user's own fake may do anything
        raise TypeError(f"a dashboard client gave a {type(info).__name__} instead of a JobInfo")
    return info


def _is_listable(entry: Entry) -> bool:
    """False for a job that a list lacked, or that fails by itself: those are asked for singly."""
    error = entry.record.error
    return not entry.is_missing and (error is None or is_outage(error))


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
