"""The scenario that the design was first tested with: one job's life in eight steps.

Each poll is awaited by `settle`, so that time passes on the fake clock only.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobinfo_cache import (
    Cluster,
    DashboardUnavailable,
    JobInfoCache,
    Settings,
    TryAgain,
)
from jobinfo_cache.testing import FakeClock, settle
from tests.support import ScriptedDashboard, make_info

CLUSTER = Cluster("test-namespace", "raycluster-async-job-info-query", "uid")
INTERVAL = 3.0
EXPIRY = 600.0


@pytest.fixture
def dashboard(clock: FakeClock) -> ScriptedDashboard:
    return ScriptedDashboard(clock)


@pytest.fixture
def cache(clock: FakeClock) -> Iterator[JobInfoCache]:
    settings = Settings(poll_interval=INTERVAL, expiry=EXPIRY, jitter=0.0)
    with JobInfoCache(settings, clock=clock) as cache:
        yield cache


def advance(cache: JobInfoCache, clock: FakeClock, seconds: float) -> None:
    """Let time pass in steps that no poll and no cleanup is longer than."""
    while seconds > 0:
        step = min(seconds, INTERVAL / 2)
        clock.advance(step)
        settle(cache)
        seconds -= step


def test_life_of_a_job(cache: JobInfoCache, dashboard: ScriptedDashboard, clock: FakeClock) -> None:
    """Pending, known, failing once, known again, ended, left alone, and dropped."""
    refused = DashboardUnavailable("no route to host")
    dashboard.script("job", make_info("NEW"), refused, "SUCCEEDED")
    client = cache.client(dashboard.client, CLUSTER)

    # 1. Nothing is known: the read says so, and has one poll made in the background.
    with pytest.raises(TryAgain) as pending:
        client.get_job_info("job")
    settle(cache)
    assert pending.value.reason == "pending"
    assert dashboard.asked == ["job"]

    # 2. What was fetched is returned.
    assert client.get_job_info("job") == make_info("NEW")

    # 3. An interval later it was polled again, and that failed: the failure is raised.
    advance(cache, clock, INTERVAL + 0.001)
    assert len(dashboard.asked) == 2
    with pytest.raises(DashboardUnavailable, match="no route to host") as raised:
        client.get_job_info("job")
    assert raised.value.last_info == make_info("NEW")

    # 4. It is raised once; the polling goes on by itself.
    with pytest.raises(TryAgain) as again:
        client.get_job_info("job")
    assert again.value.reason == "pending"
    assert len(dashboard.asked) == 2

    # 5. The next poll finds the end.
    advance(cache, clock, INTERVAL + 0.001)
    assert client.get_job_info("job").status == "SUCCEEDED"
    assert len(dashboard.asked) == 3

    # 6. What has ended is returned from memory, and never asked about again.
    advance(cache, clock, INTERVAL + 0.001)
    assert client.get_job_info("job").status == "SUCCEEDED"
    advance(cache, clock, 5 * INTERVAL)
    assert len(dashboard.asked) == 3

    # 7. When nobody has read it for the expiry, the next cleanup drops it.
    advance(cache, clock, EXPIRY - 5 * INTERVAL - 10 * INTERVAL)
    assert client.peek("job") is not None
    advance(cache, clock, 20 * INTERVAL)
    assert client.peek("job") is None
    assert cache.stats().entries == 0
    assert len(dashboard.asked) == 3


def test_job_that_cannot_be_asked_about(
    cache: JobInfoCache, dashboard: ScriptedDashboard, clock: FakeClock
) -> None:
    """Step 8: a failure that lasts is told once for each poll, and the entry goes unread."""
    dashboard.script("other", DashboardUnavailable("no such host"))
    client = cache.client(dashboard.client, CLUSTER)

    with pytest.raises(TryAgain):
        client.get_job_info("other")
    settle(cache)
    for delay in (INTERVAL, 2 * INTERVAL):
        with pytest.raises(DashboardUnavailable, match="no such host"):
            client.get_job_info("other")
        with pytest.raises(TryAgain):
            client.get_job_info("other")
        advance(cache, clock, delay + 0.02)
    assert len(dashboard.asked) == 3

    advance(cache, clock, EXPIRY + 10 * INTERVAL)
    assert client.peek("other") is None
    asked = len(dashboard.asked)
    advance(cache, clock, 5 * INTERVAL)
    assert len(dashboard.asked) == asked
