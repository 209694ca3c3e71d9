"""What is under way when a cache is closed, and what is left on the wire after it."""

from __future__ import annotations

import threading
import time
from datetime import datetime, timezone

import pytest

from jobinfo_cache import (
    CacheClosed,
    CachedDashboardClient,
    Cluster,
    DashboardClient,
    DashboardUnavailable,
    JobChange,
    JobInfoCache,
    TryAgain,
)
from jobinfo_cache.testing import FakeClock, SimulatedDashboard, settle
from tests.threads.support import CLUSTER, TIMEOUT, HeldDashboard

JOB = "/api/jobs/a"


def follow(
    cache: JobInfoCache, client: DashboardClient, cluster: Cluster = CLUSTER
) -> CachedDashboardClient:
    """A client of the cache, whose job has been polled once."""
    cached = cache.client(client, cluster)
    cached.lookup("a")
    settle(cache)
    return cached


def poll_now(client: CachedDashboardClient) -> None:
    with pytest.raises(TryAgain):
        client.get_job_info("a", newer_than=datetime.now(timezone.utc))


def kept(client: DashboardClient) -> int:
    return len(client._transport._kept._idle)


def test_request_to_a_replaced_client_is_cut_off() -> None:
    """A poll that hangs at the client before the newest one holds `close` up no longer."""
    with SimulatedDashboard() as dashboard:
        dashboard.add_job("a", status="RUNNING")
        cache = JobInfoCache()
        client = follow(cache, DashboardClient(dashboard.url, token="old", timeout=3600.0))
        with dashboard.gate(JOB) as gate:
            poll_now(client)
            assert gate.wait_for(1, TIMEOUT)
            cache.client(DashboardClient(dashboard.url, token="new", timeout=3600.0), CLUSTER)
            assert cache.close(TIMEOUT)


def test_nothing_is_sent_after_a_close_in_on_change() -> None:
    """The first answer of a cluster without a uid is followed by a question, but not once closed.

    Nor is its connection kept.
    """
    closed = threading.Event()

    def close(_: JobChange) -> None:
        cache.close(TIMEOUT)
        closed.set()

    with SimulatedDashboard() as dashboard:
        dashboard.add_job("a", status="RUNNING")
        cache = JobInfoCache(on_change=close)
        client = cache.client(DashboardClient(dashboard.url), Cluster("ns", "without-uid"))
        client.lookup("a")
        assert closed.wait(TIMEOUT)
        assert cache.close(TIMEOUT)
        assert [request.path for request in dashboard.requests] == [JOB]
        assert kept(client._state.dashboard) == 0


def test_nothing_is_sent_after_a_close_while_a_header_is_asked_for() -> None:
    """A poll that has not come to sending when the cache is closed is not sent any more."""
    asked, answers = threading.Event(), threading.Event()
    answers.set()

    def header() -> str:
        asked.set()
        assert answers.wait(TIMEOUT)
        return "value"

    with SimulatedDashboard() as dashboard:
        dashboard.add_job("a", status="RUNNING")
        cache = JobInfoCache()
        client = follow(cache, DashboardClient(dashboard.url, headers={"X-Asked": header}))
        asked.clear()
        answers.clear()
        poll_now(client)
        assert asked.wait(TIMEOUT)
        sent = len(dashboard.requests)
        assert not cache.close(0.0)
        deadline = time.monotonic() + TIMEOUT
        while not client._state.dashboard._transport._aborted:  # by the dispatcher, soon
            assert time.monotonic() < deadline
            threading.Event().wait(0.01)
        answers.set()
        assert cache.close(TIMEOUT)
        assert len(dashboard.requests) == sent
        assert kept(client._state.dashboard) == 0


def test_direct_request_that_failed_leaves_no_connection() -> None:
    """A dashboard that answers direct requests with 500 only has its connection closed too."""
    with SimulatedDashboard() as dashboard, JobInfoCache() as cache:
        client = cache.client(DashboardClient(dashboard.url), CLUSTER)
        dashboard.fault("500")
        with pytest.raises(DashboardUnavailable):
            client.list_jobs()
        assert kept(client._state.dashboard) == 1
        assert cache.close(TIMEOUT)
        assert kept(client._state.dashboard) == 0


def test_close_cuts_off_no_request_but_its_own() -> None:
    """A dashboard client may serve two caches, and the program itself, beside each other."""
    outcomes: list[object] = []
    with SimulatedDashboard() as dashboard, JobInfoCache() as other:
        dashboard.add_job("a", status="RUNNING")
        shared = DashboardClient(dashboard.url, timeout=3600.0)
        cache = JobInfoCache()
        follow(cache, shared)
        theirs = follow(other, shared)
        with dashboard.gate(JOB) as gate:
            poll_now(theirs)
            direct = threading.Thread(target=lambda: outcomes.append(shared.get_job_info("a")))
            direct.start()
            assert gate.wait_for(2, TIMEOUT)
            assert cache.close(TIMEOUT)
        direct.join(TIMEOUT)
        settle(other)
        assert theirs.lookup("a").error is None
        assert [getattr(outcome, "status", outcome) for outcome in outcomes] == ["RUNNING"]
        shared.close()


def test_close_in_a_signal_handler_amid_the_first_wait(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupted `wait` may hold the lock of its event: `close` leaves that to a thread."""
    cache = JobInfoCache(clock=clock)
    closed: list[bool] = []

    class Interrupted(threading.Event):
        """A signal comes while its lock is held."""

        def clear(self) -> None:
            with self._cond:  # type: ignore[attr-defined]
                closed.append(cache.close(0.0))

    monkeypatch.setattr(clock, "event", Interrupted)
    client = cache.client(HeldDashboard(clock).client, CLUSTER)
    with pytest.raises(CacheClosed):
        client.wait("a", timeout=TIMEOUT)

    assert len(closed) == 1
    assert cache.close(TIMEOUT)
