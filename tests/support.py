"""What the unit tests have in common: answers, a scripted dashboard, and a cache without threads.

Nothing here starts a thread. A scripted dashboard calls `during` between a request and its reply,
so that a test can put any act between the two.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from datetime import datetime, timedelta, timezone
from typing import Any, cast

import pytest

from jobinfo_cache import (
    Cluster,
    DashboardClient,
    DashboardUnavailable,
    JobChange,
    JobInfo,
    JobInfoCache,
    JobNotFound,
    Settings,
    TryAgain,
    WorkerPool,
)
from jobinfo_cache.entry import Entry
from jobinfo_cache.testing import FakeClock

START = datetime(2026, 1, 1, tzinfo=timezone.utc)  # what `FakeClock.now` begins with
CLUSTER = Cluster("ns", "one", "uid-1")  # with a uid: nobody asks for its head's session
TIMEOUT = 10.0  # seconds; only a failure uses them up

Outcome = str | JobInfo | BaseException


def make_info(status: str = "RUNNING", *, fetched_at: datetime = START, **fields: Any) -> JobInfo:
    """An answer with that status; `fields` are further ones of its JSON."""
    return JobInfo({"status": status, **fields}, fetched_at=fetched_at)


def not_found(job_id: str = "a") -> JobNotFound:
    return JobNotFound("no such job", job_id=job_id, status_code=404)


def unavailable(retry_after: float | None = None) -> DashboardUnavailable:
    return DashboardUnavailable("refused", retry_after=retry_after)


class ScriptedDashboard:
    """Answers what it was told to, and notes what it was asked, and when."""

    def __init__(self, clock: FakeClock, *outcomes: Outcome) -> None:
        self.url = "http://127.0.0.1:1"
        self.asked: list[str] = []
        self.asked_at: list[float] = []
        self.closed = 0
        self.during: Callable[[], object] = lambda: None  # between a request and its reply
        self._clock = clock
        self._outcomes: dict[str | None, list[Outcome]] = {None: list(outcomes or ["RUNNING"])}

    def script(self, job_id: str | None, *outcomes: Outcome) -> None:
        """The next outcomes for a job (None: all others); the last of them repeats."""
        self._outcomes[job_id] = list(outcomes)

    def get_job_info(self, job_id: str) -> JobInfo:
        self.asked.append(job_id)
        self.asked_at.append(self._clock.monotonic())
        outcomes = self._outcomes.get(job_id, self._outcomes[None])
        outcome = outcomes.pop(0) if len(outcomes) > 1 else outcomes[0]
        self.during()
        if isinstance(outcome, BaseException):
            raise outcome
        return make_info(outcome) if isinstance(outcome, str) else outcome

    def list_jobs(self) -> list[JobInfo]:
        raise unavailable()

    def stop_job(self, job_id: str) -> bool:
        return True

    def delete_job(self, job_id: str) -> None:
        return None

    def submit_job(self, entrypoint: str, *, submission_id: str | None = None, **_: Any) -> str:
        return submission_id or "raysubmit_1"

    def get_version(self) -> dict[str, Any]:
        return {"session_name": "session_1"}

    def close(self) -> None:
        self.closed += 1

    @property
    def client(self) -> DashboardClient:
        """Itself, as what the library's annotations ask for."""
        return cast(DashboardClient, self)


class TickingClock(FakeClock):
    """A clock on which some time passes between any two looks at it, as on real ones."""

    def monotonic(self) -> float:
        self._tick()
        return super().monotonic()

    def now(self) -> datetime:
        self._tick()
        return super().now()

    def _tick(self) -> None:
        self._monotonic += 2**-20
        self._now += timedelta(seconds=2**-20)


class RecordingPool(WorkerPool):
    """A pool that never starts a thread, and notes what is added, as (key, delay)."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(lambda key: None, clock=clock)
        self.added: list[tuple[Hashable, float]] = []

    def start(self) -> None:
        """Nothing to start."""

    @property
    def is_running(self) -> bool:
        return True

    def add(self, key: Hashable) -> None:
        self.added.append((key, 0.0))

    def add_after(self, key: Hashable, delay: float) -> None:
        self.added.append((key, delay))

    def take(self) -> list[tuple[Hashable, float]]:
        """What was added since this was last called."""
        added, self.added = self.added, []
        return added


class Core:
    """A cache without a thread, and a scripted dashboard: the test makes the rounds itself.

    Jitter and list requests are off unless the settings say otherwise.
    """

    def __init__(
        self,
        clock: FakeClock,
        *outcomes: Outcome,
        start: Callable[[], None] = lambda: None,
        on_change: Callable[[JobChange], object] | None = None,
        **settings: Any,
    ) -> None:
        self.clock = clock
        self.changes: list[JobChange] = []
        self.cache = JobInfoCache(
            Settings(**{"jitter": 0.0, "batching": False, **settings}),
            on_change=on_change or self.changes.append,
            clock=clock,
        )
        self.engine = self.cache._engine
        self.store = self.engine.store
        self.pool = RecordingPool(clock)
        self.engine.pool = self.engine.reader._pool = self.pool
        self.engine.reader.start = start
        self.dashboard = ScriptedDashboard(clock, *outcomes)
        self.client = self.cache.client(self.dashboard.client, CLUSTER)
        self.state = self.client._state

    def read(self, job_id: str = "a", **demands: Any) -> JobInfo:
        return self.client.get_job_info(job_id, **demands)

    def reason(self, job_id: str = "a", **demands: Any) -> str:
        """The reason of the `TryAgain` that a read raises."""
        with pytest.raises(TryAgain) as raised:
            self.read(job_id, **demands)
        return raised.value.reason

    def add(self, *job_ids: str) -> None:
        """Have the jobs read for the first time."""
        for job_id in job_ids:
            self.client.lookup(job_id)

    def poll(self) -> float | None:
        """One turn of a worker; returns in how many seconds the next one is."""
        return self.engine.poller.poll_cluster(self.state.cluster)

    def poll_for(self, seconds: float) -> None:
        """Turns as a pool has them, until so much time has passed."""
        ends = self.clock.monotonic() + seconds
        delay = self.poll()
        while delay is not None and delay <= ends - self.clock.monotonic():
            self.clock.advance(delay)
            delay = self.poll()
        self.clock.advance(max(ends - self.clock.monotonic(), 0.0))

    def entry(self, job_id: str = "a") -> Entry:
        return self.state.entries[job_id]
