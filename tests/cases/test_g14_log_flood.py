"""G14: the log of a long outage is a few lines, whatever the number of jobs and polls."""

from __future__ import annotations

import logging

import pytest

from jobinfo_cache import Cluster, DashboardClient, JobInfoCache, Settings
from jobinfo_cache.testing import FakeClock, SimulatedDashboard, settle

JOBS = 50
POLLS = 100


@pytest.mark.parametrize("fault", ["refuse", "503", "reset", "401"])
@pytest.mark.parametrize("batching", [True, False], ids=["lists", "singles"])
def test_outage_of_a_dashboard(
    fault: str, batching: bool, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    """A hundred failed polls for fifty jobs: first failure, two reminders, one recovery."""
    caplog.set_level(logging.INFO)
    settings = Settings(poll_interval=3.0, max_backoff=3.0, jitter=0.0, batching=batching)
    with (
        SimulatedDashboard(clock=clock) as dashboard,
        JobInfoCache(settings, clock=clock) as cache,
    ):
        client = cache.client(
            DashboardClient(dashboard.url, timeout=10.0, proxies={}), Cluster("ns", "one", "uid")
        )
        for number in range(JOBS):
            dashboard.add_job(f"job-{number}", status="RUNNING")
            client.lookup(f"job-{number}")
        for _ in range(5):
            clock.advance(3.0)
            settle(cache)
        assert caplog.records == [], "nothing is said while all is well"

        dashboard.fault(fault)
        while client.lookup("job-0").failures < POLLS:
            clock.advance(3.0)
            settle(cache)
        warnings = [record.getMessage() for record in caplog.records]
        assert [message.split(" error=")[0] for message in warnings] == [
            f"a dashboard fails cluster='ns/one (uid)' failures={count}" for count in (1, 10, 100)
        ]
        assert all(record.levelno == logging.WARNING for record in caplog.records)
        assert all(record.exc_info is None for record in caplog.records), "no tracebacks"

        caplog.clear()
        dashboard.fault(None)
        for _ in range(5):
            clock.advance(3.0)
            settle(cache)
        (recovery,) = caplog.records
        assert recovery.levelno == logging.INFO
        assert recovery.getMessage() == "a dashboard answers again cluster='ns/one (uid)'"
    assert caplog.records == [recovery]


def test_job_that_cannot_be_read(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    """A record that makes no sense is said as rarely, and does not stop the others."""
    caplog.set_level(logging.INFO)
    settings = Settings(poll_interval=3.0, max_backoff=3.0, jitter=0.0, batching=False)
    with (
        SimulatedDashboard(clock=clock) as dashboard,
        JobInfoCache(settings, clock=clock) as cache,
    ):
        for job_id in ("a", "b"):
            dashboard.add_job(job_id, status="RUNNING")
        dashboard.fault("garbage", path="/api/jobs/a")
        client = cache.client(
            DashboardClient(dashboard.url, timeout=10.0, proxies={}), Cluster("ns", "one", "uid")
        )
        client.lookup("b")
        while client.lookup("a").failures < POLLS:
            settle(cache)
            clock.advance(3.0)
        settle(cache)
        assert client.get_job_info("b").status == "RUNNING"
    assert len(caplog.records) == 3
    assert {record.name for record in caplog.records} == {"jobinfo_cache.poller"}


def test_unknown_jobs_are_no_news(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    """That a job is not found is for its reader to know: the log is silent at INFO."""
    caplog.set_level(logging.INFO)
    with (
        SimulatedDashboard(clock=clock) as dashboard,
        JobInfoCache(Settings(jitter=0.0), clock=clock) as cache,
    ):
        client = cache.client(
            DashboardClient(dashboard.url, timeout=10.0, proxies={}), Cluster("ns", "one", "uid")
        )
        for _ in range(10):
            for number in range(JOBS):
                client.lookup(f"job-{number}")
            settle(cache)
            clock.advance(60.0)
        settle(cache)
    assert caplog.records == []


def test_changes_are_said_at_debug(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    """One line for each change of a job's status, and no higher."""
    caplog.set_level(logging.DEBUG, "jobinfo_cache")
    with (
        SimulatedDashboard(clock=clock) as dashboard,
        JobInfoCache(Settings(jitter=0.0), clock=clock) as cache,
    ):
        dashboard.add_job("a", status="PENDING")
        client = cache.client(
            DashboardClient(dashboard.url, timeout=10.0, proxies={}), Cluster("ns", "one", "uid")
        )
        for status in ("PENDING", "RUNNING", "RUNNING", "SUCCEEDED"):
            dashboard.set_status("a", status)
            client.lookup("a")
            settle(cache)
            clock.advance(3.0)
        settle(cache)
    changes = [record for record in caplog.records if "a job changed" in record.getMessage()]
    assert [record.__dict__["status"] for record in changes] == ["PENDING", "RUNNING", "SUCCEEDED"]
    assert all(record.levelno == logging.DEBUG for record in changes)
