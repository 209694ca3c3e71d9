"""Many threads at once, with the interpreter switching as often as it can, in child processes."""

from __future__ import annotations

import pytest

from tests.threads.support import succeed

CROWD = """
    import random, sys, threading, time
    from jobinfo_cache import Cluster, JobInfo, JobInfoCache, Settings, TryAgain
    from jobinfo_cache.errors import DashboardError
    from jobinfo_cache.job import JobInfo
    from datetime import datetime, timezone

    sys.setswitchinterval(1e-6)
    SECONDS, SIZE = float(sys.argv[1]), 20
    ORDER = ["PENDING", "RUNNING", "SUCCEEDED"]

    class Dashboard:
        url = "http://127.0.0.1:1"
        def __init__(self):
            self.inside, self.faults, self.numbers = 0, [], {}
        def get_job_info(self, job_id):
            self.inside += 1
            if self.inside > 1:
                self.faults.append("two polls of one cluster at once")
            number = self.numbers[job_id] = self.numbers.get(job_id, 0) + 1
            self.inside -= 1
            status = ORDER[min(number // 20, 2)]
            return JobInfo({"status": status, "metadata": {"n": number}},
                           fetched_at=datetime.now(timezone.utc))
        def close(self): pass
        def stop_job(self, job_id): return True

    said = {}
    def on_change(change):
        if said.get((change.cluster, change.job_id)) == change.new.status:
            faults.append("said twice")

    faults = []
    cache = JobInfoCache(Settings(cache_size=SIZE, poll_interval=0.02, expiry=0.5,
        cleanup_interval=0.05, batching=False, workers=3), on_change=on_change)
    dashboards = [Dashboard() for _ in range(3)]
    clients = [cache.client(d, Cluster("ns", f"c{n}", "u")) for n, d in enumerate(dashboards)]
    ends = time.monotonic() + SECONDS

    def reader(seed):
        draw, newest = random.Random(seed), {}
        while time.monotonic() < ends:
            number, job_id = draw.randrange(3), f"j{draw.randrange(9)}"
            try:
                info = clients[number].get_job_info(job_id)
            except (TryAgain, DashboardError):
                continue
            n = info.metadata["n"]
            if n < newest.get((number, job_id), 0):
                faults.append("an older state came back")
            newest[number, job_id] = n

    def writer(seed):
        draw = random.Random(seed)
        while time.monotonic() < ends:
            client, job_id = clients[draw.randrange(3)], f"j{draw.randrange(9)}"
            draw.choice([client.forget, client.stop_job, client.peek, client.lookup])(job_id)
            stats = cache.stats()
            if stats.entries > SIZE:
                faults.append(f"{stats.entries} entries")

    works = [reader] * 6 + [writer] * 2
    threads = [threading.Thread(target=work, args=(n,)) for n, work in enumerate(works)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    store = cache._engine.store
    with store.lock:
        held = sum(len(state.entries) for state in store.clusters())
        listed = len(store.entries())
    if held != listed:
        faults.append(f"{held} in clusters, {listed} in order")
    assert cache.close(10)
    for dashboard in dashboards:
        faults += dashboard.faults
        assert dashboard.numbers, "nobody was polled"
    assert not faults, faults[:5]
    assert not [t for t in threading.enumerate() if t.name.startswith("jobinfo")]
"""

MEMORY = """
    import gc, resource, sys
    from jobinfo_cache import Cluster, JobInfoCache, Settings
    from jobinfo_cache.job import JobInfo
    from jobinfo_cache.testing import FakeClock

    def rss():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()

    class Dashboard:
        url = "http://127.0.0.1:1"
        def get_job_info(self, job_id):
            return JobInfo({"status": "SUCCEEDED"}, fetched_at=clock.now())
        def close(self): pass

    total = int(sys.argv[1])
    clock = FakeClock()
    cache = JobInfoCache(Settings(cache_size=1000, batching=False), clock=clock)
    engine, client = cache._engine, cache.client(Dashboard(), Cluster("ns", "one", "u"))
    engine.pool.add = lambda key: None  # the rounds are made here
    engine.pool.start = engine.cleanup.start = lambda: None
    before = None
    for number in range(total):
        client.lookup(f"job-{number}")
        if number % 500 == 499:
            while client.peek(f"job-{number}") is None or not client.peek(f"job-{number}").known:
                engine.poller.poll_cluster(client.cluster)
                clock.advance(3.0)
                client.lookup(f"job-{number}")
            for old in range(number - 499, number + 1):
                client.lookup(f"job-{old}")
        if number == total // 4:
            gc.collect()
            before = rss()
    gc.collect()
    stats = cache.stats()
    assert stats.entries <= 1000
    assert stats.evicted + stats.expired + stats.entries > total * 0.9
    assert rss() - before < 4_000_000, f"grown by {rss() - before} bytes"
"""


@pytest.mark.parametrize(
    "seconds",
    ["2", pytest.param("60", marks=[pytest.mark.stress, pytest.mark.timeout(200)])],
)
def test_a_crowd_of_readers_and_writers_sees_no_older_state(seconds: str) -> None:
    """Reads, forgets, stops, evictions and expiries at once: no crash, no lie, no leak."""
    succeed(CROWD, seconds, timeout=180)


@pytest.mark.parametrize(
    "ids",  # the seconds are for work, not for waiting: a busy machine takes its time
    [
        pytest.param("200000", marks=pytest.mark.timeout(300)),
        pytest.param("10000000", marks=[pytest.mark.stress, pytest.mark.timeout(3600)]),
    ],
)
def test_memory_stays_flat_over_many_distinct_ids(ids: str) -> None:
    """What was evicted leaves nothing behind."""
    succeed(MEMORY, ids, timeout=3600)
