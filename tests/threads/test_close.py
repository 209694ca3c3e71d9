"""`close` from wherever it may be called, and what is left afterwards."""

from __future__ import annotations

import gc
import os
import threading
import weakref

import pytest

from jobinfo_cache import CacheClosed, JobChange, JobInfoCache, Settings, TryAgain
from jobinfo_cache.testing import FakeClock, SimulatedDashboard, settle
from tests.threads.support import CLUSTER, TIMEOUT, HeldDashboard, run_child, succeed, together


def library_threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("jobinfo")]


def test_close_from_a_callback_does_not_wait_for_itself(clock: FakeClock) -> None:
    """`on_change` may close the cache; all threads end after it."""
    results: list[bool] = []
    done = threading.Event()

    def close(_: JobChange) -> None:
        results.append(cache.close(TIMEOUT))
        done.set()

    cache = JobInfoCache(clock=clock, on_change=close)
    client = cache.client(HeldDashboard(clock, "RUNNING").client, CLUSTER)
    client.lookup("a")

    assert done.wait(TIMEOUT)
    assert results == [True]
    assert cache.close(TIMEOUT)
    assert library_threads() == []


def test_close_from_many_threads_at_once_ends_once(clock: FakeClock) -> None:
    """All closers return True, and reads are refused."""
    cache = JobInfoCache(clock=clock)
    dashboard = HeldDashboard(clock)
    client = cache.client(dashboard.client, CLUSTER)
    client.lookup("a")
    dashboard.next_request()

    assert together([lambda: cache.close(TIMEOUT)] * 20) == [True] * 20
    with pytest.raises(CacheClosed):
        client.get_job_info("a")
    assert library_threads() == []


def test_close_against_readers_leaves_no_entry(clock: FakeClock) -> None:
    """Readers in many threads get an answer or `CacheClosed`, and nothing is stored after it."""
    cache = JobInfoCache(clock=clock)
    client = cache.client(HeldDashboard(clock, "RUNNING").client, CLUSTER)

    def read(number: int) -> None:
        for each in range(50):
            client.lookup(f"{number}-{each}")

    works = [lambda n=n: read(n) for n in range(8)]
    results = together([*works, lambda: cache.close(TIMEOUT)])

    assert results[-1] is True
    assert {type(result) for result in results[:-1]} <= {CacheClosed, type(None)}
    assert cache.stats().entries == 0
    assert library_threads() == []


def test_an_entry_that_slips_in_while_closing_is_not_read(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that had begun before `close` may store after its first look: that is dropped."""
    cache = JobInfoCache(clock=clock)
    client = cache.client(HeldDashboard(clock, "SUCCEEDED").client, CLUSTER)
    client.lookup("a")
    settle(cache)
    entries, pool = client._state.entries, cache._engine.pool
    held, close_pool = dict(entries), pool.close

    def slip_in(timeout: float | None = None) -> bool:
        entries.update(held)
        return close_pool(timeout)

    monkeypatch.setattr(pool, "close", slip_in)
    assert cache.close(TIMEOUT)
    with pytest.raises(CacheClosed):
        client.get_job_info("a")


def test_a_second_cache_is_not_touched_by_the_end_of_the_first(clock: FakeClock) -> None:
    """Two caches in one process share nothing."""
    first, second = JobInfoCache(clock=clock), JobInfoCache(clock=clock)
    dashboard = HeldDashboard(clock, "RUNNING")
    for cache in (first, second):
        cache.client(dashboard.client, CLUSTER).lookup("a")
        settle(cache)
    assert first.close(TIMEOUT)

    assert second.client(dashboard.client, CLUSTER).get_job_info("a").status == "RUNNING"
    assert second.close(TIMEOUT)


def test_a_forgotten_cache_ends_its_threads(clock: FakeClock) -> None:
    """A cache that is dropped without `close` is collected, and nothing of it runs on."""
    cache = JobInfoCache(clock=clock)
    client = cache.client(HeldDashboard(clock, "RUNNING").client, CLUSTER)
    client.lookup("a")
    settle(cache)
    threads = [each for each in threading.enumerate() if each.name.startswith("jobinfo")]
    gone = weakref.ref(cache)
    del cache, client
    gc.collect()

    assert gone() is None
    for thread in threads:
        thread.join(TIMEOUT)
        assert not thread.is_alive()


def test_opening_and_closing_a_thousand_times_leaves_nothing(clock: FakeClock) -> None:
    """Threads and descriptors are as many as before, with real requests in between."""
    with SimulatedDashboard() as dashboard:
        dashboard.add_job("a", status="RUNNING")
        before = None
        for number in range(1000):
            cache = JobInfoCache(Settings(workers=1), clock=clock)
            client = cache.client(dashboard.url, CLUSTER)
            client.lookup("a")
            if number % 50 == 0:
                settle(cache)
            assert cache.close(TIMEOUT)
            if number == 50:
                before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names only
        assert library_threads() == []
        after = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    assert before is not None
    assert after <= before + 3  # the dashboard's own, of connections just closed


SIGNALS = """
    import os, random, signal, sys, threading, time
    from jobinfo_cache import Cluster, JobInfoCache, JobInfoCacheError, Settings
    from jobinfo_cache.testing import SimulatedDashboard

    TIMEOUT = 0.5
    late = []

    def close(*_):
        began = time.monotonic()
        cache.close(TIMEOUT)
        late.append(time.monotonic() - began)

    signal.signal(signal.SIGTERM, close)
    draw = random.Random(int(sys.argv[1]))
    with SimulatedDashboard() as dashboard:
        dashboard.add_job("a", status="RUNNING")
        for number in range(int(sys.argv[2])):
            cache = JobInfoCache(Settings(workers=2, poll_interval=0.01, expiry=1))
            delay = draw.random() * 0.006
            killer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGTERM))
            killer.start()
            client = cache.client(dashboard.url, Cluster("ns", "one"))
            while len(late) == number:
                try:
                    client.get_job_info("a")
                    client.lookup(f"b{draw.random()}")
                    client.forget("a")
                    if draw.random() < 0.01:
                        cache.close(TIMEOUT)
                except JobInfoCacheError:
                    pass
            killer.join()
            assert cache.close(5.0), "threads are left"
    assert len(late) == int(sys.argv[2])
    assert max(late) < TIMEOUT + 1.0, f"close took {max(late)} s"
    left = [t.name for t in threading.enumerate() if t.name.startswith("jobinfo")]
    assert not left, left
"""


def test_close_in_a_signal_handler_returns_in_time() -> None:
    """Hundreds of SIGTERMs at random points of reads, forgets and other closes: none hangs."""
    succeed(SIGNALS, "1", "200")


@pytest.mark.stress
@pytest.mark.timeout(300)
def test_close_in_thousands_of_signal_handlers_returns_in_time() -> None:
    """The same, thousands of times."""
    succeed(SIGNALS, str(os.getpid()), "3000", timeout=280)


EXIT = """
    import atexit, sys
    from jobinfo_cache import Cluster, JobInfoCache
    from jobinfo_cache.testing import SimulatedDashboard

    dashboard = SimulatedDashboard().start()
    dashboard.fault("hang")
    cache = JobInfoCache()
    if sys.argv[1] == "atexit":
        atexit.register(cache.close)
    for number in range(1000):
        cluster = Cluster("ns", f"c{number % 100}")
        cache.client(dashboard.url, cluster).lookup(f"j{number}")
    if sys.argv[1] == "close":
        cache.close()
    if sys.argv[1] == "exit":
        sys.exit(3)
    if sys.argv[1] == "raise":
        raise ValueError("of the program")
"""


@pytest.mark.parametrize(
    ("how", "code"), [("end", 0), ("close", 0), ("atexit", 0), ("exit", 3), ("raise", 1)]
)
def test_a_program_ends_with_its_own_exit_code(how: str, code: int) -> None:
    """With a thousand polls queued against a dashboard that hangs, and nobody who closes."""
    child = run_child(EXIT, how, timeout=20)

    assert child.returncode == code
    lines = child.stderr.splitlines()
    assert [line for line in lines if not line.startswith((" ", "Traceback"))] == (
        ["ValueError: of the program"] if how == "raise" else []
    )


FORK = """
    import os, sys, threading
    from jobinfo_cache import Cluster, JobInfoCache, Settings
    from jobinfo_cache.testing import SimulatedDashboard

    sys.setswitchinterval(1e-5)
    with SimulatedDashboard() as dashboard:
        dashboard.add_job("a", status="RUNNING")
        cache = JobInfoCache(Settings(poll_interval=0.02, expiry=5))
        client = cache.client(dashboard.url, Cluster("ns", "one"))
        stop = threading.Event()

        def load():
            number = 0
            while not stop.is_set():
                number += 1
                client.lookup(f"j{number % 50}")
                client.forget(f"j{number % 50}")
                cache.stats()

        threads = [threading.Thread(target=load) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(int(sys.argv[1])):
            pid = os.fork()
            if pid == 0:
                assert cache.stats().entries == 0
                client.wait("a", timeout=10, until=lambda info: info.status == "RUNNING")
                os._exit(0 if cache.close(5) else 4)
            assert os.waitpid(pid, 0)[1] == 0, "a child failed"
        stop.set()
        for thread in threads:
            thread.join()
        client.wait("a", timeout=10, until=lambda info: info.status == "RUNNING")
        assert cache.close(5)
"""


@pytest.mark.parametrize(
    "forks",
    ["10", pytest.param("300", marks=[pytest.mark.stress, pytest.mark.timeout(300)])],
)
def test_a_child_forked_while_threads_hold_locks_works(forks: str) -> None:
    """It starts empty, with threads and connections of its own; the parent goes on."""
    child = run_child(FORK, forks, timeout=250)

    noise = [line for line in child.stderr.splitlines() if "fork" not in line]
    assert (child.returncode, noise) == (0, [])


def test_reads_after_close_are_refused_in_a_new_thread(clock: FakeClock) -> None:
    """A closed cache starts nothing and stores nothing."""
    cache = JobInfoCache(clock=clock)
    client = cache.client(HeldDashboard(clock, "RUNNING").client, CLUSTER)
    assert cache.close(0.0)

    results = together([lambda: client.get_job_info("a")] * 4)
    assert {type(result) for result in results} == {CacheClosed}
    assert not any(isinstance(result, TryAgain) for result in results)
    assert library_threads() == []
