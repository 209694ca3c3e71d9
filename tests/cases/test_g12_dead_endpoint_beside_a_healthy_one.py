"""G12: forty jobs on a black hole must not slow four on a healthy dashboard."""

from __future__ import annotations

import threading

from jobinfo_cache import Cluster, DashboardClient, JobInfo, JobInfoCache, Settings
from jobinfo_cache.testing import FakeClock, SimulatedDashboard, settle
from tests.support import TIMEOUT, ScriptedDashboard

INTERVAL = 3.0
SECONDS = 93.0  # until after the sixth try at 0, 3, 9, 21, 45 and 93 s


def test_healthy_jobs_stay_fresh_and_the_black_hole_backs_off(clock: FakeClock) -> None:
    """Ages of the healthy stay within an interval; the dead one is tried less and less."""
    with (
        SimulatedDashboard(clock=clock) as well,
        SimulatedDashboard(clock=clock) as hole,
        JobInfoCache(Settings(workers=4, jitter=0.0), clock=clock) as cache,
    ):
        hole.fault("reset")
        for number in range(4):
            well.add_job(f"well-{number}", status="RUNNING")
        good = cache.client(DashboardClient(well.url, timeout=10.0), Cluster("ns", "well", "uid"))
        bad = cache.client(DashboardClient(hole.url, timeout=10.0), Cluster("ns", "hole", "uid"))
        for number in range(40):
            bad.lookup(f"dead-{number}")
        for number in range(4):
            good.lookup(f"well-{number}")
        settle(cache)

        oldest = 0.0
        for _ in range(round(SECONDS / 0.1)):
            clock.advance(0.1)
            settle(cache)
            ages = [good.lookup(f"well-{number}").age for number in range(4)]
            oldest = max([oldest, *(age for age in ages if age is not None)])
            assert None not in ages
        assert oldest <= INTERVAL + 0.1

        # A reset of a new connection is not sent again; one request stands for all forty jobs.
        assert 5 <= len(hole.requests) <= 7
        assert all(bad.lookup(f"dead-{number}").error is not None for number in range(40))
        first, last = hole.requests[:3], hole.requests[-2:]
        assert last[1].at - last[0].at > 2 * (first[1].at - first[0].at)


class Counting(ScriptedDashboard):
    """Gives a permit for each request that it has answered."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.answered = threading.Semaphore(0)

    def get_job_info(self, job_id: str) -> JobInfo:
        info = super().get_job_info(job_id)
        self.answered.release()
        return info


def test_hanging_request_holds_one_worker(clock: FakeClock) -> None:
    """While the black hole holds its one request, all polls of the healthy dashboard go on."""
    well = Counting(clock)
    with (
        SimulatedDashboard(clock=clock) as hole,
        JobInfoCache(Settings(workers=4, jitter=0.0, batching=False), clock=clock) as cache,
        hole.gate() as gate,
    ):
        bad = cache.client(DashboardClient(hole.url, timeout=20.0), Cluster("ns", "hole", "uid"))
        bad._state.cut_short = True  # so that the first request has its full deadline
        for number in range(40):
            bad.lookup(f"dead-{number}")
        gate.wait_for(1)
        good = cache.client(well.client, Cluster("ns", "well", "uid"))
        for number in range(4):
            good.lookup(f"well-{number}")
        for _ in range(6):
            for _ in range(4):
                assert well.answered.acquire(timeout=TIMEOUT)
            clock.advance(INTERVAL)
        assert gate.wait_for(1) == 1
        assert len(hole.requests) == 1
        gate.release()
        settle(cache)
