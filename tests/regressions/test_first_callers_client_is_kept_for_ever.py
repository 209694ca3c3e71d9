"""Lessons 2.5, 6.8: polls use the token and the address of the reader that came first."""

from __future__ import annotations

from jobinfo_cache import DashboardAuthError, DashboardClient, JobInfo
from jobinfo_cache.testing import FakeClock, SimulatedDashboard, settle
from tests.cases.support import CLUSTER, case


def test_a_new_token_is_used_by_the_next_poll(clock: FakeClock) -> None:
    """The client that a later reconcile brings replaces the first one."""
    with case(clock) as it:
        it.dashboard.add_job("a", status="RUNNING")
        it.dashboard.set_token("new")
        it.client = it.cache.client(DashboardClient(it.dashboard.url, token="old"), CLUSTER)
        refused = it.follow()
        it.client = it.cache.client(DashboardClient(it.dashboard.url, token="new"), CLUSTER)
        it.intervals(2)

        assert isinstance(refused, DashboardAuthError)
        assert isinstance(it.read(), JobInfo)


def test_a_new_address_is_used_by_the_next_poll(clock: FakeClock) -> None:
    """The old dashboard is not asked any more."""
    with case(clock) as it, SimulatedDashboard(clock=clock) as moved:
        it.dashboard.add_job("a", status="RUNNING")
        moved.add_job("a", status="SUCCEEDED")
        it.follow()
        asked = it.asked()
        it.cache.client(moved.url, CLUSTER)
        settle(it.cache)
        it.intervals(1)

        assert it.status() == "SUCCEEDED"
        assert it.asked() == asked
