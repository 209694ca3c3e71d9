"""What the store holds for one job, and for one cluster."""

from __future__ import annotations

import contextlib
import math
import weakref
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from jobinfo_cache.costs import Costs
from jobinfo_cache.errors import DashboardError
from jobinfo_cache.job import JobInfo
from jobinfo_cache.model import Cluster, JobChange

if TYPE_CHECKING:
    from jobinfo_cache.clock import Event
    from jobinfo_cache.dashboard import DashboardClient

__all__ = ["NOTHING", "ClusterState", "Entry", "Record"]

LRUKey = tuple[str, str, str, str]


@dataclass(slots=True)  # not frozen: that makes it three times as dear to make
class Record:
    """The outcomes of a job's polls so far: never changed, replaced whole by the next outcome.

    `info` is the last good answer and `error` the newest outcome if that is a failure; the times
    are when their requests were sent, on the monotonic clock.
    """

    info: JobInfo | None = None
    info_at: float = -math.inf
    error: DashboardError | None = None
    error_at: float = -math.inf
    failures: int = 0
    failing_since: datetime | None = None
    listed: bytes | None = None
    """The digest of the list that `info` is from."""
    superseded: bool = False
    """The job was asked to stop after all this was answered."""

    @property
    def is_terminal(self) -> bool:
        return self.info is not None and self.info.status.is_terminal

    @property
    def outcome(self) -> JobInfo | DashboardError | None:
        """The newest outcome; None once it is superseded."""
        return None if self.superseded else self.error or self.info

    def after_answer(self, info: JobInfo, sent_at: float, listed: bytes | None = None) -> Record:
        """The record once `info` has come in reply to a request sent at `sent_at`.

        `listed` is the digest of the list that it came in.
        """
        return Record(info=info, info_at=sent_at, listed=listed)

    def after_failure(self, error: DashboardError, sent_at: float) -> Record:
        """The record once a request sent at `sent_at` has failed."""
        return replace(
            self,
            error=error,
            error_at=sent_at,
            failures=self.failures + 1,
            failing_since=self.failing_since or error.fetched_at,
            superseded=False,
        )

    def supersede(self) -> Record:
        """The record once the job was asked to stop: known, and neither fresh nor told."""
        return replace(self, superseded=True)

    def change_to(self, new: Record, entry: Entry) -> JobChange | None:
        """What `on_change` is to be told of the step from this record to `new`, if anything."""
        if new.error is not None:
            if type(new.error) is type(self.error):
                return None
            error = new.error.fresh(new.info)
            return JobChange(entry.state.cluster, entry.job_id, self.info, new.info, error)
        if (
            self.error is None
            and self.info is not None
            and new.info is not None
            and self.info.status == new.info.status
        ):
            return None
        return JobChange(entry.state.cluster, entry.job_id, self.info, new.info, None)


NOTHING = Record()


class Entry:
    """One job in the store, from its first read to its removal.

    A job that is removed and read again gets a new entry: a reply belongs to the entry that its
    request was sent for, and to no other. Reads stamp `read_again`, `read_at` and `read_outcome`
    without a lock; all other fields change under the store's lock.
    """

    # CPython lays the slots out by name: what a read touches lies side by side, in one or two
    # lines of the processor's cache.
    __slots__ = (
        "asked_at",
        "due_at",
        "in_flight",
        "is_missing",
        "job_id",
        "joins_at",
        "not_before",
        "read_again",
        "read_at",
        "read_outcome",
        "readable_info",
        "readable_until",
        "record",
        "session",
        "spreads",
        "state",
        "terminal_at",
        "told",
        "wanted_at",
    )

    def __init__(self, state: ClusterState, job_id: str, now: float) -> None:
        self.state = state
        self.job_id = job_id
        self.record = NOTHING
        self.readable_info: JobInfo | None = None  # what a hit returns
        self.readable_until = -math.inf  # until when it does
        self.read_at = now
        self.read_again = False  # since it was placed in the order of reads
        self.read_outcome: JobInfo | DashboardError | None = None  # by the newest read
        self.told: Record | None = None  # the newest failure that `get_job_info` has raised
        # When to poll, on the monotonic clock:
        self.due_at = now
        self.joins_at = now  # from when it takes part in a round that others have begun
        self.not_before = -math.inf  # the end of its own backoff
        self.wanted_at = -math.inf  # only an answer to a request sent from here on will do
        self.asked_at = -math.inf  # when the newest request was sent
        self.in_flight = False
        self.is_missing = False  # a list lacked it, and it was not asked for singly since
        self.spreads = False  # its next delay is the cluster's draw from the whole interval
        self.terminal_at = -math.inf
        self.session: str | None = None  # that of the head at the newest good answer

    def hold(self, record: Record, fresh_until: float = -math.inf) -> None:
        """Replace the record; reads without demands of their own return its info until then."""
        # A hit looks at the time, and then takes the info, without the lock: so the time is put
        # off last, and brought forward first.
        self.readable_until = min(self.readable_until, fresh_until)
        self.record = record
        self.readable_info = record.info
        self.readable_until = fresh_until

    @property
    def lru_key(self) -> LRUKey:
        # A plain tuple of plain strings: lru-dict is safe with keys hashed in C only.
        namespace, name, uid = self.state.cluster
        return namespace, name, uid, self.job_id

    @property
    def is_current(self) -> bool:
        """True while this, and no later one, is the job's entry in the store."""
        return self.state.entries.get(self.job_id) is self

    @property
    def is_live(self) -> bool:
        return not self.record.is_terminal

    @property
    def is_placeholder(self) -> bool:
        return self.record is NOTHING


class ClusterState:
    """One incarnation of a cluster: its dashboard, its entries, and how its dashboard fares.

    It lives as long as somebody holds a client of the cluster or an entry of it is in the store.
    Changed under the store's lock.
    """

    __slots__ = (
        "__weakref__",
        "asked_at",
        "cluster",
        "contact_at",
        "costs",
        "cut_short",
        "dashboard",
        "entries",
        "failed_at",
        "failing",
        "failures",
        "fresh_until",
        "is_asking",
        "latency",
        "next_due",
        "not_before",
        "replaced",
        "said_restart",
        "session",
        "session_at",
        "session_due",
        "share",
        "spread_due",
        "waiters",
        "written",
    )

    #: Seconds; the guess of a request's duration until the first one is measured. A dashboard on
    #: loopback needs 10 ms, and the first request has a connection to open.
    FIRST_LATENCY = 0.1

    def __init__(self, cluster: Cluster, dashboard: DashboardClient) -> None:
        self.cluster = cluster
        self.dashboard = dashboard
        self.replaced: list[weakref.ref[DashboardClient]] = []  # those before that one
        self.entries: dict[str, Entry] = {}
        self.waiters: dict[str, list[Event]] = {}  # by job id; told of each outcome and removal
        self.start_over()

    def start_over(self) -> None:
        """Forget all but the cluster and its dashboard."""
        self.entries.clear()
        self.waiters.clear()
        self.failing = ""  # the kind of failure that the dashboard is in
        self.failures = 0  # of the dashboard, in a row
        self.failed_at = -math.inf  # the newest of them
        self.not_before = -math.inf  # the end of the dashboard's backoff
        self.contact_at = -math.inf  # when the dashboard was first reached, or again
        self.cut_short = False  # its first request was ended early: the next may take its time
        self.costs = Costs()
        self.spread_due = -math.inf  # when those polled at first contact are due again
        self.latency = self.FIRST_LATENCY
        self.next_due = -math.inf  # when the next round begins
        self.share = 0.0  # of the jitter, drawn once a round so that its jobs stay together
        self.is_asking = False  # a poll is under way
        self.asked_at = -math.inf  # when the newest request was sent
        self.fresh_until = -math.inf  # until when the answers that it brings are fresh
        self.written: set[str] = set()  # the ids of jobs stopped, forgotten, … since it was sent
        # See `session.py`; None: not asked for yet.
        self.session: str | None = None
        self.session_at = self.session_due = -math.inf  # asked for; to be asked for again
        self.said_restart: str | None = None

    @property
    def was_reached(self) -> bool:
        """True once the dashboard has answered anything."""
        return self.contact_at != -math.inf

    def replace_dashboard(self, dashboard: DashboardClient) -> None:
        """Have later requests use another client; those under way go on with the old one."""
        self.replaced = [ref for ref in self.replaced if ref() is not None]
        with contextlib.suppress(TypeError):  # not each fake of a user's can be referred to
            self.replaced.append(weakref.ref(self.dashboard))
        self.dashboard = dashboard

    def dashboards(self) -> list[DashboardClient]:
        """All clients that a request of this cluster may be using."""
        replaced = [client for ref in self.replaced if (client := ref()) is not None]
        return [self.dashboard, *replaced]

    @property
    def has_live_entries(self) -> bool:
        return any(entry.is_live for entry in list(self.entries.values()))

    def tell_waiters(self, job_id: str) -> None:
        for event in self.waiters.get(job_id, ()):
            event.set()
