"""Snapshots of jobs, for tests of what is shown of them."""

from __future__ import annotations

from typing import Any

from jobinfo_cache import DashboardError, JobSnapshot
from tests.support import CLUSTER, START, make_info

NOW = START.timestamp() * 1000  # as dashboards write it


def make_snapshot(
    job_id: str,
    status: str | None = "RUNNING",
    *,
    age: float = 0.0,
    error: DashboardError | None = None,
    failures: int = 0,
    retry_after: float | None = 3.0,
    **fields: Any,
) -> JobSnapshot:
    """What the cache says of a job; without a status it has never been answered about."""
    info = None if status is None else make_info(status, **fields)
    return JobSnapshot(
        job_id=job_id,
        cluster=CLUSTER,
        info=info,
        error=error,
        fresh=error is None,
        fetched_at=None if info is None else info.fetched_at,
        age=None if info is None else age,
        failures=failures,
        failing_since=None,
        retry_after=retry_after,
    )
