"""Ask for a Ray job's status without ever waiting for the network."""

from jobinfo_cache._version import __version__
from jobinfo_cache.cache import JobInfoCache
from jobinfo_cache.client import CachedDashboardClient
from jobinfo_cache.dashboard import DashboardClient
from jobinfo_cache.errors import (
    BadResponse,
    CacheClosed,
    DashboardAuthError,
    DashboardError,
    DashboardUnavailable,
    InvalidJobId,
    JobConflict,
    JobInfoCacheError,
    JobNotFound,
    TryAgain,
    WaitTimeout,
)
from jobinfo_cache.job import JobInfo
from jobinfo_cache.job_status import JobStatus
from jobinfo_cache.model import Cluster, JobChange, JobSnapshot, Stats
from jobinfo_cache.pool import WorkerPool
from jobinfo_cache.settings import Settings

__all__ = [
    "BadResponse",
    "CacheClosed",
    "CachedDashboardClient",
    "Cluster",
    "DashboardAuthError",
    "DashboardClient",
    "DashboardError",
    "DashboardUnavailable",
    "InvalidJobId",
    "JobChange",
    "JobConflict",
    "JobInfo",
    "JobInfoCache",
    "JobInfoCacheError",
    "JobNotFound",
    "JobSnapshot",
    "JobStatus",
    "Settings",
    "Stats",
    "TryAgain",
    "WaitTimeout",
    "WorkerPool",
    "__version__",
]
