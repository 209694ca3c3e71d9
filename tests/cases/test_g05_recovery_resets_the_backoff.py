"""G05: an outage that is over must not count in the next one."""

from __future__ import annotations

from itertools import pairwise

import pytest

from jobinfo_cache import Cluster, DashboardClient, JobInfoCache, Settings
from jobinfo_cache.testing import FakeClock, SimulatedDashboard, settle

INTERVAL = 3.0
SLOT = 0.01  # seconds; the pool rounds due times up to this


def test_one_blip_after_an_outage_is_retried_at_the_base_delay(clock: FakeClock) -> None:
    """Six 500s, a 200, one more 500: the next try comes after one interval, not after 64."""
    with (
        SimulatedDashboard(clock=clock) as dashboard,
        JobInfoCache(Settings(jitter=0.0), clock=clock) as cache,
    ):
        dashboard.add_job("a", status="RUNNING")
        client = cache.client(
            DashboardClient(dashboard.url, timeout=10.0), Cluster("ns", "one", "uid")
        )

        def go_until(count: int) -> None:
            """Move on until the dashboard has had so many requests."""
            client.lookup("a")
            settle(cache)
            while len(dashboard.requests) < count:
                clock.advance(SLOT)
                settle(cache)

        dashboard.fault("500", times=6)
        go_until(6)
        outage = client.lookup("a")
        assert outage.failures == 6
        assert outage.failing_since is not None

        go_until(7)  # the 200
        well = client.lookup("a")
        assert (well.failures, well.failing_since, well.error) == (0, None, None)

        dashboard.fault("500", times=1)
        go_until(8)  # the blip
        blip = client.lookup("a")
        assert blip.failures == 1
        assert blip.failing_since is not None
        assert blip.failing_since > outage.failing_since

        go_until(9)
        times = [request.at for request in dashboard.requests]
        gaps = [later - earlier for earlier, later in pairwise(times)]
        assert gaps[:6] == pytest.approx([3, 6, 12, 24, 48, 60], abs=2 * SLOT)
        assert gaps[7] == pytest.approx(INTERVAL, abs=2 * SLOT)
        assert client.get_job_info("a").status == "RUNNING"
