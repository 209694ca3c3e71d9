"""The values that users get: immutable, and safe to share between threads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from jobinfo_cache.job import JobInfo

if TYPE_CHECKING:
    from jobinfo_cache.errors import DashboardError

__all__ = ["Cluster", "JobChange", "JobSnapshot", "Stats"]


class _ClusterFields(NamedTuple):
    namespace: str
    name: str
    uid: str = ""


class Cluster(_ClusterFields):
    """The identity of one incarnation of a cluster: namespace, name, and uid.

    Names are taken as they are, never truncated or rewritten; `str()` is one line for messages,
    with the control characters of a name as escapes. With a `uid` a cluster that was
    deleted and made again under the same name is another one. Raises `ValueError` when the
    namespace or the name is empty or any part is not a `str`.

    .. versionadded:: 0.1.0
    """

    __slots__ = ()

    def __new__(cls, namespace: str, name: str, uid: str = "") -> Cluster:
        for field, value in (("namespace", namespace), ("name", name), ("uid", uid)):
            if not isinstance(value, str):
                raise ValueError(f"Cluster {field} is {value!r}; it must be a str")
            if not value and field != "uid":
                raise ValueError(f"Cluster {field} is empty; it must name the cluster")
        # What they hold: a member of an enum, for one, says another text.
        return super().__new__(cls, *map(str.__str__, (namespace, name, uid)))

    @classmethod
    def _make(cls, iterable: Iterable[Any]) -> Cluster:  # type: ignore[override]
        return cls(*iterable)

    def __str__(self) -> str:
        text = f"{self.namespace}/{self.name}" + (f" ({self.uid})" if self.uid else "")
        if text.isprintable():
            return text
        return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


@dataclass(frozen=True)
class JobSnapshot:
    """All that the cache holds about one job at one moment.

    `known` is True when there is an `info`. `fresh` is True when `get_job_info` would return it
    now. `info` is the last good answer and stays while polls fail; `fetched_at` (aware UTC) and
    `age` (seconds) are its own. `error` is the newest failure, None when the newest poll was
    good; `failures` in a row since `failing_since` (aware UTC).
    `retry_after` is the time in seconds until asking again makes sense; None when terminal.

    .. versionadded:: 0.1.0
    """

    job_id: str
    cluster: Cluster
    info: JobInfo | None
    error: DashboardError | None
    fresh: bool
    fetched_at: datetime | None
    age: float | None
    failures: int
    failing_since: datetime | None
    retry_after: float | None

    @property
    def known(self) -> bool:
        """True when the dashboard has answered about the job: `info` is not None."""
        return self.info is not None


@dataclass(frozen=True)
class JobChange:
    """What `on_change` is told: a job's status changed, it started to fail, or it recovered.

    `old` is the answer before (None: this is the first), `new` the last good answer.
    `error` is set when failing started or changed its kind, and None otherwise.

    .. versionadded:: 0.1.0
    """

    cluster: Cluster
    job_id: str
    old: JobInfo | None
    new: JobInfo | None
    error: DashboardError | None


@dataclass(frozen=True)
class Stats:
    """Counters and gauges of a cache at one moment.

    Gauges: `entries`, of which `live` (not terminal) and `placeholders` (no outcome yet);
    `workers`, of which `workers_busy`; clusters `queued` for a worker and `delayed` until their
    time; `oldest_age`, in seconds, of the answers about live jobs (None without one);
    `capacity_exceeded`. All else counts since the cache was made. `polls_failed` is by kind.

    .. versionadded:: 0.1.0
    """

    entries: int
    live: int
    placeholders: int
    workers: int
    workers_busy: int
    queued: int
    delayed: int
    reads_hit: int
    reads_pending: int
    reads_stale: int
    reads_failed: int
    polls_ok: int
    polls_failed: Mapping[str, int]
    requests_single: int
    requests_list: int
    evicted: int
    expired: int
    forgotten: int
    stale_replies_dropped: int
    callbacks_failed: int
    oldest_age: float | None
    capacity_exceeded: bool
