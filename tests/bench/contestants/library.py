"""This library."""

from __future__ import annotations

import contextlib
import time

from jobinfo_cache import (
    Cluster,
    DashboardClient,
    DashboardError,
    JobChange,
    JobInfoCache,
    TryAgain,
)
from tests.bench.contestants.port import Job, Work

__all__ = ["Library"]


class Library:
    """A cache with a client for each dashboard."""

    readers = 1

    def __init__(self, work: Work) -> None:
        self.ended_at: dict[Job, float] = {}  # when `on_change` told of a job's end
        self.cache = JobInfoCache(work.settings, on_change=self._note)
        timeout = work.settings.request_timeout
        self.clients = [
            self.cache.client(DashboardClient(url, timeout=timeout), cluster_of(number))
            for number, url in enumerate(work.urls)
        ]

    def start(self) -> None:
        """The cache starts its threads at the first read."""

    def read(self, job: Job) -> None:
        with contextlib.suppress(TryAgain, DashboardError):  # it is read again in any case
            self.clients[job.dashboard].get_job_info(job.job_id)

    def asked_at(self, job: Job) -> float | None:
        # Not by `peek`, which makes a snapshot: a look shall cost as little as at the others.
        entry = self.clients[job.dashboard]._state.entries.get(job.job_id)
        if entry is None or entry.record.info is None:
            return None
        # What has ended is true for ever.
        return time.monotonic() if entry.record.is_terminal else entry.record.info_at

    def close(self) -> None:
        self.cache.close()

    def _note(self, change: JobChange) -> None:
        if change.new is not None and change.new.status.is_terminal:
            job = Job(int(change.cluster.name), change.job_id)
            self.ended_at.setdefault(job, time.monotonic())


def cluster_of(number: int) -> Cluster:
    return Cluster("bench", str(number), "uid")
