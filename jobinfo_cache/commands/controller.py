"""A controller as an operator has it: one thread, a queue of its own, no waiting for answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from jobinfo_cache import (
    CachedDashboardClient,
    Cluster,
    DashboardAuthError,
    DashboardError,
    DashboardUnavailable,
    JobNotFound,
    TryAgain,
)
from jobinfo_cache.commands.agenda import Agenda
from jobinfo_cache.commands.pulse import Meter
from jobinfo_cache.commands.workload import Job, JobKey
from jobinfo_cache.job import JobInfo

__all__ = ["Controller"]

_TURN = 1.0  # seconds, the longest


class Controller:
    """Reconciles jobs until all have ended. For one thread; only `agenda.put` is for others.

    `ended` holds the first terminal answer about each job, `changed` a later one that differs.
    `known_at_once` are jobs whose very first read had an outcome, so that it must have waited.
    `oldest_age` (seconds) is the greatest age of an answer about a live job, `failures` counts
    the requests whose failure was seen. `on_turn` is told how many have ended, once a second or
    more often.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        clients: Mapping[Cluster, CachedDashboardClient],
        agenda: Agenda[JobKey],
        on_turn: Callable[[int], None],
    ) -> None:
        self._jobs = {job.key: job for job in jobs}
        self._clients = clients
        self._agenda = agenda
        self._on_turn = on_turn
        self._stopped: set[JobKey] = set()
        self._unread = set(self._jobs)
        self.meter = Meter()
        self.ended: dict[JobKey, JobInfo] = {}
        self.changed: dict[JobKey, JobInfo] = {}
        self.known_at_once: list[JobKey] = []
        self.oldest_age: float | None = None
        self.failures = 0

    def run(self, deadline: float) -> None:
        """Work until all jobs have ended, or until `deadline` (monotonic).

        Blocks for the next thing to do, and for the request that stops a job. Raises
        `JobNotFound` and `DashboardAuthError`; sits out all other failures.
        """
        for key in self._jobs:
            self._agenda.put(key)
        while len(self.ended) < len(self._jobs) and time.monotonic() < deadline:
            due = self._agenda.take(min(deadline, time.monotonic() + _TURN))
            if due is not None:
                self.reconcile(self._jobs[due])
            self._on_turn(len(self.ended))

    def reconcile(self, job: Job) -> None:
        """Look at the job, do what is to be done, and say when to look again."""
        client = self._clients[job.key.cluster]
        is_first = job.key in self._unread
        self._unread.discard(job.key)
        try:
            info = self.meter.time(lambda: client.get_job_info(job.key.job_id))
        except TryAgain as again:
            self._agenda.add_after(job.key, again.retry_after)
            return
        except (JobNotFound, DashboardAuthError):
            raise
        except DashboardError:
            self.failures += 1
        else:
            self._see(job, info)
        if is_first:
            self.known_at_once.append(job.key)
        self._look_again(job, client)

    def _see(self, job: Job, info: JobInfo) -> None:
        known = self.ended.get(job.key)
        if known is not None and known.status != info.status:
            self.changed[job.key] = info
        elif known is None and info.status.is_terminal:
            self.ended[job.key] = info
        elif info.status == "RUNNING" and job.kind.stop and job.key not in self._stopped:
            self._stop(job)

    def _stop(self, job: Job) -> None:
        try:
            self._clients[job.key.cluster].stop_job(job.key.job_id)
        except DashboardUnavailable:
            self.failures += 1  # it is stopped when it is looked at again
        else:
            self._stopped.add(job.key)

    def _look_again(self, job: Job, client: CachedDashboardClient) -> None:
        snapshot = self.meter.time(lambda: client.lookup(job.key.job_id))
        if snapshot.retry_after is None:
            return
        if snapshot.fresh and snapshot.age is not None:
            self.oldest_age = max(snapshot.age, self.oldest_age or 0.0)
        self._agenda.add_after(job.key, snapshot.retry_after)
