"""G18: waiting for the next poll must not cost a thread for each job."""

from __future__ import annotations

import threading

import pytest

from jobinfo_cache import Cluster, DashboardClient, JobInfoCache, Settings
from jobinfo_cache.testing import FakeClock, SimulatedDashboard, settle
from tests.support import ScriptedDashboard

JOBS = 2000
OWN = ("jobinfo-worker", "jobinfo-dispatcher", "jobinfo-timer", "jobinfo-cleanup")


@pytest.mark.parametrize("clusters", [1, 20])
def test_threads_for_2000_polled_jobs(clusters: int) -> None:
    """2,000 jobs that wait for their next poll, in 30 s of real time, need `workers` + 3."""
    settings = Settings(poll_interval=30.0)
    with SimulatedDashboard() as dashboard, JobInfoCache(settings) as cache:
        for number in range(JOBS):
            dashboard.add_job(f"job-{number}", status="RUNNING")
        for number in range(JOBS):
            cluster = Cluster("ns", str(number % clusters), "uid")
            cache.client(DashboardClient(dashboard.url, timeout=10.0), cluster).lookup(
                f"job-{number}"
            )
        settle(cache, 25.0)
        assert cache.stats().placeholders == 0
        own = [thread.name for thread in threading.enumerate() if thread.name.startswith(OWN)]
        timers = [name for name in own if name.startswith("jobinfo-timer")]
        assert len(own) <= settings.workers + 3
        assert len(timers) <= 1


def test_one_timer_for_2000_delayed_clusters(clock: FakeClock) -> None:
    """However many clusters wait, one timer is armed."""
    with JobInfoCache(Settings(jitter=0.0), clock=clock) as cache:
        for number in range(JOBS):
            dashboard = ScriptedDashboard(clock)
            client = cache.client(dashboard.client, Cluster("ns", str(number), "uid"))
            client.lookup("a")
        settle(cache)
        assert cache.stats().delayed == JOBS
        timers = [timer for timer in clock.pending() if timer.name == "jobinfo-timer"]
        assert len(timers) == 1
