"""Tests of the whole cache on a fake clock, with its threads and a simulated dashboard."""

from __future__ import annotations

import gc
import queue
import subprocess
import sys
import textwrap
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from jobinfo_cache import (
    CacheClosed,
    CachedDashboardClient,
    Cluster,
    DashboardClient,
    DashboardUnavailable,
    InvalidJobId,
    JobChange,
    JobInfo,
    JobInfoCache,
    JobNotFound,
    JobStatus,
    Settings,
    TryAgain,
    WaitTimeout,
)
from jobinfo_cache.testing import FakeClock, SimulatedDashboard, settle
from tests.support import CLUSTER, TIMEOUT, Core, ScriptedDashboard, make_info

MakeCache = Callable[..., JobInfoCache]
FOR_EVER = float("inf")


@pytest.fixture
def dashboard(clock: FakeClock) -> Iterator[SimulatedDashboard]:
    with SimulatedDashboard(clock=clock) as dashboard:
        yield dashboard


@pytest.fixture
def make_cache(clock: FakeClock) -> Iterator[MakeCache]:
    """Makes caches on the fake clock, and closes them."""
    caches = []

    def make(on_change: Callable[[JobChange], object] | None = None, **settings: Any) -> Any:
        fields = {"jitter": 0.0, "batching": False, "workers": 2, **settings}
        cache = JobInfoCache(Settings(**fields), on_change=on_change, clock=clock)
        caches.append(cache)
        return cache

    yield make
    for cache in caches:
        assert cache.close(TIMEOUT)


@pytest.fixture
def http(dashboard: SimulatedDashboard) -> Iterator[DashboardClient]:
    with closing(DashboardClient(dashboard.url, proxies={}, timeout=TIMEOUT)) as client:
        yield client


def names() -> list[str]:
    return sorted(
        thread.name for thread in threading.enumerate() if thread.name.startswith("jobinfo")
    )


def read_after_settling(client: CachedDashboardClient, job_id: str) -> str:
    """The status of a job that was not read before."""
    with pytest.raises(TryAgain):
        client.get_job_info(job_id)
    settle(client._cache)
    return client.get_job_info(job_id).status


class TestReading:
    """Reads are answered from memory; polls go on in the background."""

    def test_status_is_followed_to_its_end(
        self,
        make_cache: MakeCache,
        dashboard: SimulatedDashboard,
        http: DashboardClient,
        clock: FakeClock,
    ) -> None:
        """A job is seen PENDING, RUNNING and SUCCEEDED, in that order, and then left alone."""
        cache = make_cache(poll_interval=3.0)
        client = cache.client(http, CLUSTER)
        dashboard.add_job("a", pending=5.0, running=5.0)
        seen = [read_after_settling(client, "a")]
        for _ in range(8):
            clock.advance(3.0)
            settle(cache)
            seen.append(client.get_job_info("a").status)

        assert list(dict.fromkeys(seen)) == ["PENDING", "RUNNING", "SUCCEEDED"]
        asked = len(dashboard.requests)
        clock.advance(60.0)
        settle(cache)
        assert len(dashboard.requests) == asked

    def test_each_poll_is_one_request(
        self,
        make_cache: MakeCache,
        dashboard: SimulatedDashboard,
        http: DashboardClient,
        clock: FakeClock,
    ) -> None:
        """However many reads there are, a job is asked about once an interval."""
        cache = make_cache(poll_interval=3.0)
        client = cache.client(http, CLUSTER)
        dashboard.add_job("a", status="RUNNING")
        read_after_settling(client, "a")
        for _ in range(10):
            clock.advance(3.0)
            settle(cache)
            for _ in range(20):
                client.get_job_info("a")

        assert 10 <= len(dashboard.requests) <= 12
        stats = cache.stats()
        assert stats.reads_hit == 201
        assert stats.polls_ok == stats.requests_single == len(dashboard.requests)

    def test_unknown_job(
        self, make_cache: MakeCache, dashboard: SimulatedDashboard, http: DashboardClient
    ) -> None:
        """A job that the dashboard does not know is told once, and then again pending."""
        cache = make_cache()
        client = cache.client(http, CLUSTER)
        with pytest.raises(TryAgain):
            client.get_job_info("nope")
        settle(cache)
        with pytest.raises(JobNotFound) as raised:
            client.get_job_info("nope")

        assert raised.value.job_id == "nope"
        with pytest.raises(TryAgain):
            client.get_job_info("nope")

    def test_outage_and_recovery(
        self,
        make_cache: MakeCache,
        dashboard: SimulatedDashboard,
        http: DashboardClient,
        clock: FakeClock,
    ) -> None:
        """While the dashboard fails the last answer stays readable; then polling recovers."""
        changes: list[JobChange] = []
        cache = make_cache(changes.append, poll_interval=3.0)
        client = cache.client(http, CLUSTER)
        dashboard.add_job("a", status="RUNNING")
        read_after_settling(client, "a")
        dashboard.fault("503")
        clock.advance(3.0)
        settle(cache)
        snapshot = client.lookup("a")
        assert isinstance(snapshot.error, DashboardUnavailable)
        assert snapshot.info is not None
        assert snapshot.info.status == "RUNNING"
        dashboard.fault(None)
        clock.advance(3.0)
        settle(cache)

        assert client.get_job_info("a").status == "RUNNING"
        kinds = [change.error and change.error.kind for change in changes]
        assert kinds == [None, "unavailable", None]

    def test_placeholders_and_gauges(
        self, make_cache: MakeCache, dashboard: SimulatedDashboard, http: DashboardClient
    ) -> None:
        """The gauges say what is held, and how old the oldest live answer is."""
        cache = make_cache()
        client = cache.client(http, CLUSTER)
        dashboard.add_job("live", status="RUNNING")
        dashboard.add_job("over", status="SUCCEEDED")
        gate = dashboard.gate()
        for job_id in ("live", "over"):
            client.lookup(job_id)
        gate.wait_for(1)
        stats = cache.stats()
        assert (stats.entries, stats.live, stats.placeholders) == (2, 2, 2)
        assert (stats.workers, stats.workers_busy, stats.oldest_age) == (2, 1, None)
        gate.release()
        settle(cache)

        stats = cache.stats()
        assert (stats.entries, stats.live, stats.placeholders) == (2, 1, 0)
        assert (stats.workers_busy, stats.queued, stats.delayed) == (0, 0, 1)
        assert stats.oldest_age == 0.0

    def test_reader_does_not_wait_for_a_poll(
        self, make_cache: MakeCache, dashboard: SimulatedDashboard, http: DashboardClient
    ) -> None:
        """While a request hangs, every read returns, and at most one request is out."""
        cache = make_cache()
        client = cache.client(http, CLUSTER)
        dashboard.add_job("a", status="RUNNING")
        with dashboard.gate() as gate:
            for _ in range(100):
                with pytest.raises(TryAgain):
                    client.get_job_info("a")
            gate.wait_for(1)
            for _ in range(100):
                client.lookup("a")
                client.peek("a")
            assert len(dashboard.requests) == 1
        settle(cache)

        assert client.get_job_info("a").status == "RUNNING"

    def test_clusters_do_not_wait_for_each_other(
        self,
        make_cache: MakeCache,
        dashboard: SimulatedDashboard,
        http: DashboardClient,
        clock: FakeClock,
    ) -> None:
        """A dashboard that hangs delays none but its own cluster."""
        cache = make_cache(workers=2)
        dashboard.add_job("a", status="RUNNING")
        dashboard.gate()
        cache.client(http, CLUSTER).lookup("a")
        with SimulatedDashboard(clock=clock) as healthy:
            healthy.add_job("b", status="SUCCEEDED")
            with closing(DashboardClient(healthy.url, proxies={}, timeout=TIMEOUT)) as other:
                told: queue.SimpleQueue[bool] = queue.SimpleQueue()
                cache._engine.notifier._on_change = lambda change: told.put(True)
                client = cache.client(other, Cluster("ns", "two", "uid"))
                client.lookup("b")
                assert told.get(timeout=TIMEOUT)
                assert client.get_job_info("b").status == "SUCCEEDED"
        dashboard.fault(None)
        dashboard.close()


class TestForget:
    """Entries that are dropped on request."""

    def test_by_name_whatever_the_uid(self, clock: FakeClock) -> None:
        """All incarnations of a cluster are meant, and no cluster of another name."""
        core = Core(clock)
        clusters = [
            Cluster("ns", "one"),
            Cluster("ns", "one", "uid-2"),
            Cluster("ns", "two"),
            Cluster("other", "one"),
        ]
        clients = [core.cache.client(core.dashboard.client, cluster) for cluster in clusters]
        for client in clients:
            client.lookup("a")
            client.lookup("b")
        core.cache.forget("ns", "one", "a")
        assert [client.peek("a") is None for client in clients] == [True, True, False, False]
        assert all(client.peek("b") for client in clients)
        core.cache.forget("ns", "one")

        assert [client.peek("b") is None for client in clients] == [True, True, False, False]
        assert core.cache.stats().forgotten == 4
        core.cache.forget("ns", "nobody")
        assert core.cache.stats().entries == 4

    def test_works_when_the_client_is_gone(self, clock: FakeClock) -> None:
        """No view of the cluster is needed."""
        core = Core(clock)
        core.cache.client(core.dashboard.client, Cluster("ns", "gone")).lookup("a")
        gc.collect()
        assert core.cache.stats().entries == 1
        core.cache.forget("ns", "gone")

        assert core.cache.stats().entries == 0

    @pytest.mark.parametrize(
        "job_id", ["", "..", "x" * 1025, "a\nb"], ids=lambda job_id: job_id[:2]
    )
    def test_by_name_checks_the_id(self, clock: FakeClock, job_id: str) -> None:
        """An id that can be no job's is refused."""
        with pytest.raises(InvalidJobId):
            Core(clock).cache.forget("ns", "one", job_id)

    def test_ends_the_polling(
        self,
        make_cache: MakeCache,
        dashboard: SimulatedDashboard,
        http: DashboardClient,
        clock: FakeClock,
    ) -> None:
        """A job that was forgotten is not asked about any more, until it is read again."""
        cache = make_cache()
        client = cache.client(http, CLUSTER)
        dashboard.add_job("a", status="RUNNING")
        read_after_settling(client, "a")
        client.forget("a")
        settle(cache)
        asked = len(dashboard.requests)
        clock.advance(60.0)
        settle(cache)
        assert len(dashboard.requests) == asked

        assert read_after_settling(client, "a") == "RUNNING"


class TestWait:
    """The one read that blocks."""

    def test_until_the_end(
        self,
        make_cache: MakeCache,
        dashboard: SimulatedDashboard,
        http: DashboardClient,
        clock: FakeClock,
    ) -> None:
        """Who waits is woken by the poll that finds the end."""
        cache = make_cache()
        client = cache.client(http, CLUSTER)
        dashboard.add_job("a", status="SUCCEEDED")

        assert client.wait("a", timeout=TIMEOUT).status == JobStatus.SUCCEEDED

    def test_timeout_is_of_the_clock(
        self,
        make_cache: MakeCache,
        dashboard: SimulatedDashboard,
        http: DashboardClient,
        clock: FakeClock,
    ) -> None:
        """When `timeout` has passed it raises WaitTimeout with the last answer."""
        cache = make_cache()
        client = cache.client(http, CLUSTER)
        dashboard.add_job("a", status="RUNNING")
        read_after_settling(client, "a")
        outcome: queue.SimpleQueue[BaseException] = queue.SimpleQueue()

        def wait() -> None:
            with pytest.raises(WaitTimeout) as raised:
                client.wait("a", timeout=5.0)
            outcome.put(raised.value)

        thread = threading.Thread(target=wait)
        thread.start()
        while outcome.empty() and clock.monotonic() < 2000.0:
            clock.advance(1.0)
            settle(cache)
        error = outcome.get(timeout=TIMEOUT)
        thread.join(TIMEOUT)

        assert isinstance(error, WaitTimeout)
        assert error.last_info is not None
        assert error.last_info.status == "RUNNING"

    def test_close_ends_it(
        self, make_cache: MakeCache, dashboard: SimulatedDashboard, http: DashboardClient
    ) -> None:
        """Who waits when the cache is closed is told so at once."""
        cache = make_cache()
        client = cache.client(http, CLUSTER)
        outcome: queue.SimpleQueue[BaseException] = queue.SimpleQueue()

        def wait() -> None:
            with pytest.raises(CacheClosed) as raised:
                client.wait("a", timeout=1e6)
            outcome.put(raised.value)

        with dashboard.gate() as gate:
            thread = threading.Thread(target=wait)
            thread.start()
            gate.wait_for(1)
            assert cache.close(TIMEOUT)
            outcome.get(timeout=TIMEOUT)
            thread.join(TIMEOUT)


class TestThreads:
    """Which threads there are, and when."""

    def test_none_before_the_first_read(self, clock: FakeClock) -> None:
        """Making a cache and views, forgetting, peeking, direct requests: nothing starts."""
        before = names()
        cache = JobInfoCache(clock=clock)
        client = cache.client(ScriptedDashboard(clock).client, CLUSTER)
        client.peek("a")
        client.forget("a")
        cache.forget("ns", "one")
        client.get_version()
        client.stop_job("a")
        cache.stats()

        assert names() == before
        assert cache.close()

    def test_no_more_than_promised(
        self, make_cache: MakeCache, dashboard: SimulatedDashboard, clock: FakeClock
    ) -> None:
        """With many clusters there are at most `workers` + 3 threads, each with a name."""
        before = names()
        cache = make_cache(workers=3)
        gate = dashboard.gate()
        clients = []
        for number in range(30):
            http = DashboardClient(dashboard.url, proxies={}, timeout=TIMEOUT)
            client = cache.client(http, Cluster("ns", f"cluster-{number}", "uid"))
            client.lookup("a")
            clients.append(client)
        gate.wait_for(1)
        new = names()
        for name in before:
            new.remove(name)

        assert len(new) <= 3 + 3
        assert all(
            name in ("jobinfo-dispatcher", "jobinfo-timer", "jobinfo-cleanup")
            or name.startswith("jobinfo-worker_")
            for name in new
        )
        assert cache.close(TIMEOUT)
        gate.release()

    def test_refused_thread(self, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
        """If the first read's threads cannot start, it says so; the next read tries again."""
        start = threading.Thread.start
        dashboard = ScriptedDashboard(clock, "SUCCEEDED")
        cache = JobInfoCache(clock=clock)
        client = cache.client(dashboard.client, CLUSTER)
        for refused in ("dispatcher", "cleanup"):

            def refuse(thread: threading.Thread, refused: str = refused) -> None:
                if refused in thread.name:
                    raise RuntimeError("can't start new thread")
                start(thread)

            monkeypatch.setattr(threading.Thread, "start", refuse)
            with pytest.raises(RuntimeError, match=r"^can't start new thread$"):
                client.get_job_info("a")
            assert cache.stats().entries == 0
        monkeypatch.setattr(threading.Thread, "start", start)

        assert read_after_settling(client, "a") == "SUCCEEDED"
        assert cache.close(TIMEOUT)

    def test_forgotten_cache_ends(self, clock: FakeClock) -> None:
        """A cache that nobody holds any more is collected, and its threads end."""
        dashboard = ScriptedDashboard(clock)
        cache = JobInfoCache(clock=clock)
        client = cache.client(dashboard.client, CLUSTER)
        client.lookup("a")
        settle(cache)
        threads = [thread for thread in threading.enumerate() if "jobinfo" in thread.name]
        collected = weakref.ref(cache)
        del cache, client
        gc.collect()

        assert collected() is None
        for thread in threads:
            thread.join(TIMEOUT)
            assert not thread.is_alive()


class TestClose:
    """The end of a cache."""

    def test_nothing_is_left(
        self,
        make_cache: MakeCache,
        dashboard: SimulatedDashboard,
        http: DashboardClient,
        clock: FakeClock,
    ) -> None:
        """Close ends threads and timers, forgets all, and refuses what comes after."""
        before = names()
        cache = make_cache()
        client = cache.client(http, CLUSTER)
        dashboard.add_job("a", status="RUNNING")
        read_after_settling(client, "a")

        assert cache.close(TIMEOUT)
        assert names() == before
        assert clock.pending() == []
        for call in (client.get_job_info, client.lookup, client.peek, client.stop_job):
            with pytest.raises(CacheClosed):
                call("a")
        client.forget("a")
        cache.forget("ns", "one")
        stats = cache.stats()
        assert (stats.entries, stats.polls_ok, stats.queued, stats.delayed) == (0, 1, 0, 0)
        assert cache.close(0.0)

    def test_request_under_way_is_cut_off(
        self, make_cache: MakeCache, dashboard: SimulatedDashboard, http: DashboardClient
    ) -> None:
        """A request that hangs does not hold close up, and its outcome is told to nobody."""
        changes: list[JobChange] = []
        cache = make_cache(changes.append)
        client = cache.client(http, CLUSTER)
        with dashboard.gate() as gate:
            client.lookup("a")
            gate.wait_for(1)

            assert cache.close(TIMEOUT)
        assert changes == []
        assert sum(cache.stats().polls_failed.values()) == 0

    def test_context_manager(self, clock: FakeClock) -> None:
        """Leaving the block closes."""
        with JobInfoCache(clock=clock) as cache:
            client = cache.client(ScriptedDashboard(clock).client, CLUSTER)
            client.lookup("a")
        with pytest.raises(CacheClosed):
            client.lookup("a")

    @pytest.mark.parametrize("timeout", [-1.0, float("nan")])
    def test_impossible_timeout_is_refused(self, clock: FakeClock, timeout: float) -> None:
        """A timeout that is negative or nan is a ValueError that shows it."""
        with pytest.raises(ValueError, match="timeout is"):
            JobInfoCache(clock=clock).close(timeout)

    def test_default_timeout_is_that_of_the_settings(self, clock: FakeClock) -> None:
        """Without an argument `close_timeout` counts: 0 does not wait for what is stuck."""
        inside, gate = threading.Event(), threading.Event()
        dashboard = ScriptedDashboard(clock)

        def hang() -> None:
            inside.set()
            gate.wait(TIMEOUT)

        dashboard.during = hang
        cache = JobInfoCache(Settings(close_timeout=0.0), clock=clock)
        cache.client(dashboard.client, CLUSTER).lookup("a")
        assert inside.wait(TIMEOUT)

        assert not cache.close()
        gate.set()
        assert cache.close(TIMEOUT)

    def test_in_on_change(self, clock: FakeClock) -> None:
        """`on_change` may close the cache; that does not wait for its own thread."""
        outcomes: queue.SimpleQueue[bool] = queue.SimpleQueue()
        cache = JobInfoCache(on_change=lambda _: outcomes.put(cache.close(TIMEOUT)), clock=clock)
        cache.client(ScriptedDashboard(clock).client, CLUSTER).lookup("a")

        assert outcomes.get(timeout=TIMEOUT)
        assert cache.close(TIMEOUT)

    def test_without_reads_closes_connections(self, clock: FakeClock) -> None:
        """A cache that made direct requests only leaves no connection open either."""
        dashboard = ScriptedDashboard(clock)
        cache = JobInfoCache(clock=clock)
        client = cache.client(dashboard.client, CLUSTER)
        client.get_version()
        assert cache.close()

        assert dashboard.closed == 1

    @pytest.mark.parametrize("method", ["abort", "close"])
    def test_dashboard_that_raises_harms_nobody(
        self, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, method: str
    ) -> None:
        """A dashboard client that cannot be closed keeps no other one, and no thread, alive."""
        faults: list[object] = []
        monkeypatch.setattr(threading, "excepthook", faults.append)

        def fail() -> None:
            raise ZeroDivisionError

        dashboards = [ScriptedDashboard(clock) for _ in range(3)]
        setattr(dashboards[1], method, fail)
        cache = JobInfoCache(clock=clock)
        clients = [
            cache.client(dashboard.client, Cluster("ns", f"cluster-{number}", "uid"))
            for number, dashboard in enumerate(dashboards)
        ]
        for client in clients:
            client.lookup("a")
        settle(cache)

        assert cache.close(TIMEOUT)
        assert faults == []
        assert [dashboards[0].closed, dashboards[2].closed] == [1, 1]

    def test_start_that_comes_after_starts_nothing(self, clock: FakeClock) -> None:
        """A read that was under way when the cache was closed starts no thread."""
        before = names()
        cache = JobInfoCache(clock=clock)
        assert cache.close()
        cache._engine.start()

        assert names() == before

    def test_in_a_signal_handler_of_a_direct_call(self, clock: FakeClock) -> None:
        """Close returns though the call that it interrupts holds a lock of the library."""
        cache = JobInfoCache(clock=clock)
        client = cache.client(ScriptedDashboard(clock).client, CLUSTER)
        client.get_version()
        returned = threading.Event()

        def interrupted() -> None:
            with cache._engine.connections._lock:
                cache.close(0.1)
            returned.set()

        threading.Thread(target=interrupted, daemon=True).start()

        assert returned.wait(5.0)


class TestProcess:
    """Programs that use a cache."""

    def test_exit_without_close(self) -> None:
        """A program that forgets close ends by itself, with its exit code and a silent stderr."""
        program = """
            import sys
            from jobinfo_cache import Cluster, DashboardClient, JobInfoCache, TryAgain
            from jobinfo_cache.testing import SimulatedDashboard
            with SimulatedDashboard() as dashboard:
                dashboard.add_job("a", status="RUNNING")
                cache = JobInfoCache()
                client = cache.client(DashboardClient(dashboard.url), Cluster("ns", "one"))
                client.wait("a", timeout=10, until=lambda info: info.status == "RUNNING")
                sys.exit(7)
        """
        ended = subprocess.run(
            [sys.executable, "-W", "error", "-c", textwrap.dedent(program)],
            capture_output=True,
            timeout=20.0,
            check=False,
        )

        assert (ended.returncode, ended.stdout, ended.stderr) == (7, b"", b"")

    def test_import_and_construction_start_nothing(self) -> None:
        """Importing the package and making a cache opens nothing and starts nothing."""
        program = """
            import threading
            import jobinfo_cache
            cache = jobinfo_cache.JobInfoCache()
            assert threading.active_count() == 1, threading.enumerate()
        """
        subprocess.run([sys.executable, "-c", textwrap.dedent(program)], timeout=20.0, check=True)


def test_any_settings_make_a_cache(clock: FakeClock) -> None:
    """The extremes that settings allow can be used."""
    year = 365 * 86_400.0
    extremes = [
        Settings(cache_size=1, workers=1, jitter=0.0),
        Settings(poll_interval=1e-3, expiry=2e-3, max_backoff=1e-3, max_age=1e-3, jitter=0.5),
        Settings(poll_interval=year / 2, expiry=year, max_backoff=year, max_age=year),
    ]
    for settings in extremes:
        cache = JobInfoCache(settings, clock=clock)
        dashboard = ScriptedDashboard(clock, make_info("SUCCEEDED"))
        client = cache.client(dashboard.client, CLUSTER)
        client.lookup("a")
        settle(cache)
        assert client.get_job_info("a").status == "SUCCEEDED"
        assert cache.close(TIMEOUT)


def test_client_of_a_subclass_is_used_as_it_is(clock: FakeClock) -> None:
    """What its owner changes in it later has an effect."""

    class Fake(DashboardClient):
        status = "PENDING"

        def get_job_info(self, job_id: str) -> JobInfo:
            return make_info(self.status)

    fake = Fake("http://127.0.0.1:1")
    with JobInfoCache(clock=clock) as cache:
        client = cache.client(fake, CLUSTER)
        fake.status = "RUNNING"
        client.lookup("a")
        settle(cache)
        assert client.get_job_info("a").status == "RUNNING"
