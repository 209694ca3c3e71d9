"""A list that is what it was, byte for byte, is not read again; its jobs are as new as it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jobinfo_cache import Cluster, DashboardClient, JobInfo
from jobinfo_cache.testing import FakeClock, SimulatedDashboard, settle
from tests.unit.watched import INTERVAL, JOBS, LIST, Watched


class Parsed:
    """`json.loads` that keeps what it was given."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    def __call__(self, body: bytes) -> Any:
        self.bodies.append(body)
        return json.loads(body)

    @property
    def lists(self) -> list[bytes]:
        return [body for body in self.bodies if body.startswith(b"[")]


@pytest.fixture
def parsed() -> Parsed:
    return Parsed()


@pytest.fixture
def watched(clock: FakeClock, parsed: Parsed) -> Iterator[Watched]:
    """All jobs were read from a list twice."""
    with SimulatedDashboard(clock=clock) as dashboard:
        for job_id in JOBS:
            dashboard.add_job(job_id, status="RUNNING")
        watched = Watched(dashboard, clock, jitter=0.1)
        with watched.cache:
            client = DashboardClient(dashboard.url, timeout=10.0, json_loads=parsed)
            watched.client = watched.cache.client(client, Cluster("ns", "loads", "uid"))
            watched.begin()
            watched.prefer(lists=True)
            watched.advance(2 * INTERVAL)
            watched.new_paths()
            parsed.bodies.clear()
            yield watched


def ages(watched: Watched) -> list[float]:
    return [watched.client.lookup(job_id).age or 0.0 for job_id in JOBS]


def test_an_unchanged_list_is_not_read_again(watched: Watched, parsed: Parsed) -> None:
    """Nothing is parsed, and every job is as new as the request, for people too."""
    before = watched.client.get_job_info(JOBS[0])
    watched.advance(INTERVAL)
    after = watched.client.get_job_info(JOBS[0])

    assert (watched.new_paths(), parsed.bodies) == ([LIST], [])
    assert max(ages(watched)) < INTERVAL
    assert 0.9 * INTERVAL <= (after.fetched_at - before.fetched_at).total_seconds() <= INTERVAL
    assert after.raw == before.raw


def end_one(watched: Watched) -> None:
    watched.dashboard.set_status(JOBS[1], "SUCCEEDED")


def add_one(watched: Watched) -> None:
    watched.dashboard.add_job("another", status="PENDING")


def remove_one(watched: Watched) -> None:
    watched.dashboard.remove_job("job-39")


@pytest.mark.parametrize("change", [end_one, add_one, remove_one])
def test_a_changed_list_is_read(
    watched: Watched, parsed: Parsed, change: Callable[[Watched], None]
) -> None:
    """Whatever changed in it, for the round that sees it, and no later one."""
    change(watched)
    watched.advance(INTERVAL)
    assert len(parsed.lists) == 1
    parsed.bodies.clear()
    watched.advance(INTERVAL)
    assert parsed.bodies == []


def test_the_end_of_a_job_is_seen(watched: Watched) -> None:
    end_one(watched)
    watched.advance(INTERVAL)
    assert watched.client.get_job_info(JOBS[1]).status == "SUCCEEDED"
    assert watched.client.get_job_info(JOBS[2]).status == "RUNNING"


def test_a_job_that_was_not_read_from_it_has_the_list_read(
    watched: Watched, parsed: Parsed
) -> None:
    """The list may be known, and one of the jobs in it may not: once they share a round."""
    watched.client.forget(JOBS[1])
    watched.advance(INTERVAL / 2)
    watched.client.lookup(JOBS[1])
    settle(watched.cache)
    watched.advance(30 * INTERVAL)
    assert len(parsed.lists) == 1
    assert max(ages(watched)) < INTERVAL


def test_what_a_single_request_brought_is_not_taken_for_the_lists(watched: Watched) -> None:
    """A job that changed and changed back is shown as the newest answer has it."""
    watched.dashboard.set_status(JOBS[1], "PENDING")
    watched.prefer(lists=False)
    watched.advance(INTERVAL)
    assert watched.client.get_job_info(JOBS[1]).status == "PENDING"

    watched.dashboard.set_status(JOBS[1], "RUNNING")
    watched.prefer(lists=True)
    watched.advance(INTERVAL)
    assert watched.client.get_job_info(JOBS[1]).status == "RUNNING"


def test_the_same_list_ends_an_outage(watched: Watched) -> None:
    """After failures the jobs are as fresh as after any other list."""
    watched.dashboard.fault("503")
    watched.advance(INTERVAL)
    assert watched.client.lookup(JOBS[1]).error is not None
    watched.dashboard.fault(None)
    watched.advance(3 * INTERVAL)
    assert all(watched.client.lookup(job_id).fresh for job_id in JOBS)


def test_the_same_list_confirms_a_job_after_a_stop(watched: Watched) -> None:
    """A job that has not ended yet is fresh again once a list from after the stop says so."""
    watched.dashboard.stop_delay = 100 * INTERVAL
    watched.client.stop_job(JOBS[1])
    assert not watched.client.lookup(JOBS[1]).fresh
    watched.advance(INTERVAL)
    assert watched.client.get_job_info(JOBS[1]).status == "RUNNING"


class Choosy(DashboardClient):
    """Lists what it wants to."""

    def list_jobs(self) -> list[JobInfo]:
        return [job for job in super().list_jobs() if job.submission_id != JOBS[1]]


def test_the_method_of_a_subclass_is_used(clock: FakeClock) -> None:
    """A list that a subclass makes is its own, and is read each time."""
    with SimulatedDashboard(clock=clock) as dashboard:
        for job_id in JOBS:
            dashboard.add_job(job_id, status="RUNNING")
        watched = Watched(dashboard, clock)
        with watched.cache:
            client = Choosy(dashboard.url, timeout=10.0)
            watched.client = watched.cache.client(client, Cluster("ns", "sub", "uid"))
            watched.begin()
            watched.prefer(lists=True)
            watched.advance(INTERVAL)
            watched.new_paths()
            watched.advance(INTERVAL)
            assert watched.new_paths() == [LIST, f"{LIST}{JOBS[1]}"]


def test_a_method_that_was_replaced_is_used(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a test of a controller may do it, in the class itself."""
    ended = JobInfo({"submission_id": JOBS[1], "status": "FAILED"}, fetched_at=watched.clock.now())
    monkeypatch.setattr(DashboardClient, "list_jobs", lambda _: [ended])
    watched.advance(INTERVAL)
    assert watched.client.get_job_info(JOBS[1]).status == "FAILED"
