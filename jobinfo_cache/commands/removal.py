"""Removing from a dashboard the jobs that a smoke run put there."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence

from jobinfo_cache import Cluster, DashboardClient, DashboardError, JobConflict, JobNotFound
from jobinfo_cache.commands.output import Output, one_line
from jobinfo_cache.commands.workload import Job

__all__ = ["remove_jobs"]

SETTLED = 2.0  # seconds after its end; Ray brings a record back that is deleted within one
_END_LIMIT = 15.0  # seconds from a stop to the end; Ray kills after 3
_LOOK = 0.3  # seconds between two looks


def remove_jobs(
    jobs: Sequence[Job], dashboards: Mapping[Cluster, DashboardClient], output: Output
) -> None:
    """Stop those that run, wait for their end (15 s at most) and 2 s more, and delete all.

    Says on stderr what had to be left there; raises no error of a dashboard. A signal ends it.
    """
    if not jobs:
        return
    try:
        output.note(f"removing {len(jobs)} jobs")
        _remove(jobs, dashboards, output)
    except BaseException:
        first, last = jobs[0].key.job_id, jobs[-1].key.job_id
        output.note(f"cut short: jobs may be left there, from {first} to {last}")
        raise


def _remove(
    jobs: Sequence[Job], dashboards: Mapping[Cluster, DashboardClient], output: Output
) -> None:
    for cluster, dashboard in dashboards.items():
        ids = [job.key.job_id for job in jobs if job.key.cluster == cluster]
        try:
            _end(ids, dashboard)
            _delete(ids, dashboard, output)
        except DashboardError as error:
            output.note(f"jobs may be left there: {one_line(str(error))}")


def _end(ids: Sequence[str], dashboard: DashboardClient) -> None:
    """Stop the jobs, and wait until all have ended."""
    for job_id in _live(ids, dashboard):
        dashboard.stop_job(job_id)
    deadline = time.monotonic() + _END_LIMIT
    while _live(ids, dashboard) and time.monotonic() < deadline:
        threading.Event().wait(_LOOK)


def _delete(ids: Sequence[str], dashboard: DashboardClient, output: Output) -> None:
    """Delete the records of jobs that have just ended."""
    if ids:
        threading.Event().wait(SETTLED)
    for job_id in ids:
        try:
            dashboard.delete_job(job_id)
        except JobNotFound:
            continue  # a submission that did not get there
        except JobConflict as error:
            output.note(f"job {job_id} is left there: {one_line(str(error))}")


def _live(ids: Sequence[str], dashboard: DashboardClient) -> list[str]:
    live = {info.submission_id for info in dashboard.list_jobs() if not info.status.is_terminal}
    return [job_id for job_id in ids if job_id in live]
