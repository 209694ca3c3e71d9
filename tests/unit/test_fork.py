"""Tests of a process that forks while a cache is at work."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator

import pytest

from jobinfo_cache import CacheClosed, CachedDashboardClient, JobInfoCache, TryAgain
from jobinfo_cache.testing import FakeClock, settle
from tests.support import CLUSTER, TIMEOUT, ScriptedDashboard

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@pytest.fixture
def dashboard(clock: FakeClock) -> ScriptedDashboard:
    return ScriptedDashboard(clock, "SUCCEEDED")


@pytest.fixture
def cache(clock: FakeClock) -> Iterator[JobInfoCache]:
    with JobInfoCache(clock=clock) as cache:
        yield cache


@pytest.fixture
def client(cache: JobInfoCache, dashboard: ScriptedDashboard) -> CachedDashboardClient:
    return cache.client(dashboard.client, CLUSTER)


def in_child(check: Callable[[], object]) -> int:
    """The exit code of a forked child: 0 if the check is true there; negative if it hangs."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(8)
        try:
            os._exit(0 if check() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def serves(client: CachedDashboardClient) -> bool:
    """In the child: the cache is empty, starts anew at the first read, and closes."""
    cache = client._cache
    stats = cache.stats()
    if (stats.entries, stats.queued, stats.workers_busy) != (0, 0, 0):
        return False
    if client.peek("a") is not None:
        return False
    try:
        client.get_job_info("a")
    except TryAgain:
        settle(cache)
    return client.get_job_info("a").status == "SUCCEEDED" and cache.close(TIMEOUT)


def test_child_starts_anew(cache: JobInfoCache, client: CachedDashboardClient) -> None:
    """The child's cache is empty and has threads of its own; the parent's goes on."""
    client.lookup("a")
    settle(cache)

    assert in_child(lambda: serves(client)) == 0
    assert client.get_job_info("a").status == "SUCCEEDED"
    client.lookup("b")
    settle(cache)
    assert client.get_job_info("b").status == "SUCCEEDED"


def test_child_of_a_cache_at_work(
    cache: JobInfoCache, client: CachedDashboardClient, dashboard: ScriptedDashboard
) -> None:
    """A poll that is under way at the fork is the parent's alone."""
    inside, gate = threading.Event(), threading.Event()

    def hang() -> None:
        inside.set()
        gate.wait(TIMEOUT)

    dashboard.during = hang
    client.lookup("a")
    assert inside.wait(TIMEOUT)

    def check() -> bool:
        dashboard.during = lambda: None
        return serves(client)

    assert in_child(check) == 0
    gate.set()
    settle(cache)
    assert client.get_job_info("a").status == "SUCCEEDED"


def test_locks_that_are_held_at_the_fork(
    cache: JobInfoCache, client: CachedDashboardClient
) -> None:
    """The child waits for no lock that a thread of the parent held."""
    client.lookup("a")
    settle(cache)
    held, release = threading.Event(), threading.Event()
    engine = cache._engine

    def hold() -> None:
        with (
            engine.store.lock,
            engine.connections._lock,
            engine.pool._dispatcher.queue._lock,
            engine.pool._dispatcher._start_lock,
            engine.cleanup._start_lock,
        ):
            held.set()
            release.wait(TIMEOUT)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(TIMEOUT)
    code = in_child(lambda: serves(client))
    release.set()
    thread.join(TIMEOUT)

    assert code == 0


def test_closed_cache_stays_closed(cache: JobInfoCache, client: CachedDashboardClient) -> None:
    """A cache that was closed before the fork refuses reads in the child too."""
    client.lookup("a")
    assert cache.close(TIMEOUT)

    def check() -> bool:
        with pytest.raises(CacheClosed):
            client.get_job_info("a")
        return threading.active_count() == 1 and cache.close(TIMEOUT)

    assert in_child(check) == 0


def test_cache_that_was_never_used(client: CachedDashboardClient) -> None:
    """A cache whose threads were not started yet works in both processes."""
    assert in_child(lambda: serves(client)) == 0
    assert in_child(lambda: serves(client)) == 0
