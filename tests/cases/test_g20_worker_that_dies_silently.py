"""G20: whatever a poll raises, the worker lives, the fault is told, and polling goes on."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import Any, cast

import pytest

from jobinfo_cache import (
    Cluster,
    DashboardClient,
    DashboardError,
    JobInfo,
    JobInfoCache,
    Settings,
)
from jobinfo_cache.testing import FakeClock, settle
from tests.support import make_info

WORKERS = 4


class Own(BaseException):
    """A user's own, and not even an `Exception`."""


FAULTS: list[BaseException] = [
    ValueError("odd"),
    KeyError("key"),
    RecursionError("deep"),
    MemoryError(),
    Own("own"),
    SystemExit(3),
    KeyboardInterrupt(),
    GeneratorExit(),
]


class Raising:
    """A dashboard client of a user's own that raises what it is given, and then answers."""

    url = "http://127.0.0.1:1"

    def __init__(self, faults: Iterator[BaseException]) -> None:
        self._faults = faults
        self._lock = threading.Lock()
        self.threads: set[threading.Thread] = set()

    def get_job_info(self, job_id: str) -> JobInfo:
        with self._lock:
            self.threads.add(threading.current_thread())
            fault = next(self._faults, None)
        if fault is not None:
            raise fault
        return make_info("RUNNING", submission_id=job_id)

    def get_version(self) -> dict[str, Any]:
        return {}


def test_faults_of_all_kinds(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    """Each job shows its fault with the cause, then its status; one record for each fault."""
    caplog.set_level(logging.WARNING)
    faults = [*FAULTS][: WORKERS * 2]
    dashboards = [Raising(iter([fault])) for fault in faults]
    with JobInfoCache(Settings(jitter=0.0, workers=WORKERS), clock=clock) as cache:
        clients = [
            cache.client(cast(DashboardClient, dashboard), Cluster("ns", f"c{number}", "uid"))
            for number, dashboard in enumerate(dashboards)
        ]
        for client in clients:
            client.lookup("a")
        settle(cache)
        for client, fault in zip(clients, faults, strict=True):
            with pytest.raises(DashboardError, match=f"raised {type(fault).__name__}") as caught:
                client.get_job_info("a")
            assert type(caught.value) is DashboardError
            assert caught.value.__cause__ is fault
        records = [record for record in caplog.records if record.name == "jobinfo_cache.poller"]
        assert len(records) == len(faults)
        assert {record.exc_info[0] for record in records if record.exc_info} == {
            type(fault) for fault in faults
        }
        assert cache.stats().polls_failed["internal"] == len(faults)

        clock.advance(3.0)
        settle(cache)
        assert [client.get_job_info("a").status for client in clients] == ["RUNNING"] * len(faults)
        threads = {thread for dashboard in dashboards for thread in dashboard.threads}
        assert all(thread.is_alive() for thread in threads)
        assert len(threads) <= WORKERS == cache.stats().workers


def test_faults_that_go_on_are_not_a_flood(
    clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    """One job whose polls always raise backs off, and the others are polled on."""

    class Half(Raising):
        def get_job_info(self, job_id: str) -> JobInfo:
            if job_id == "bad":
                raise ValueError("odd")
            return super().get_job_info(job_id)

    dashboard = Half(iter(()))
    with JobInfoCache(Settings(jitter=0.0, workers=1), clock=clock) as cache:
        client = cache.client(cast(DashboardClient, dashboard), Cluster("ns", "one", "uid"))
        for job_id in ("bad", "good"):
            client.lookup(job_id)
        for _ in range(100):
            settle(cache)
            clock.advance(3.0)
        settle(cache)
        assert client.get_job_info("good").status == "RUNNING"
        age = client.lookup("good").age
        assert age is not None
        assert age <= 3.1
    # 300 s at 3, 6, 12, 24, 48, 60, 60, … s.
    assert len(caplog.records) <= 12


def test_callback_that_raises_anything(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    """It is logged and counted, and nothing else happens."""
    faults = iter(FAULTS)

    def on_change(_change: object) -> None:
        if (fault := next(faults, None)) is not None:
            raise fault

    dashboard = Raising(iter(()))
    with JobInfoCache(Settings(jitter=0.0), on_change=on_change, clock=clock) as cache:
        client = cache.client(cast(DashboardClient, dashboard), Cluster("ns", "one", "uid"))
        for number in range(len(FAULTS)):
            client.lookup(f"job-{number}")
        settle(cache)
        assert cache.stats().callbacks_failed == len(FAULTS)
        for number in range(len(FAULTS)):
            assert client.get_job_info(f"job-{number}").status == "RUNNING"
    assert len(caplog.records) == len(FAULTS)
