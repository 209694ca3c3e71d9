"""The answer to a list request, which is read only if it says something new."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jobinfo_cache.job import JobInfo

__all__ = ["Listing"]


@dataclass(frozen=True)
class Listing:
    """A dashboard's list of jobs, as it came.

    Two with the same `digest` are the same, byte for byte; None tells nothing. `jobs` reads it,
    and raises what `DashboardClient.list_jobs` does when it is no list.
    """

    digest: bytes | None
    jobs: Callable[[], list[JobInfo]]
