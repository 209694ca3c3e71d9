"""G16: an LRU that is used by several threads, with a callback, crashes the interpreter."""

from __future__ import annotations

from tests.threads.support import succeed

PROGRAM = """
    import sys, threading
    from jobinfo_cache import Cluster, JobInfoCache, Settings
    from jobinfo_cache.testing import SimulatedDashboard

    sys.setswitchinterval(1e-6)
    with SimulatedDashboard() as dashboard:
        cache = JobInfoCache(Settings(cache_size=5, poll_interval=0.05, expiry=0.1,
                                      cleanup_interval=0.01))
        client = cache.client(dashboard.url, Cluster("ns", "one", "u1"))

        def read(seed):
            for number in range(1500):
                client.lookup(f"j{(number * 7 + seed) % 1000}")
                assert cache.stats().entries <= 5

        threads = [threading.Thread(target=read, args=(n,)) for n in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert cache.close(10)
"""


def test_8_threads_over_1000_keys_in_a_cache_for_5() -> None:
    """The child ends with 0, a silent stderr, and never more than five entries."""
    succeed(PROGRAM)
