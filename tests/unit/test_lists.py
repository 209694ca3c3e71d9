"""Tests of list requests against a dashboard over HTTP, counting what it was asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jobinfo_cache import (
    BadResponse,
    Cluster,
    DashboardClient,
    JobInfo,
    JobNotFound,
)
from jobinfo_cache.schedule import Schedule
from jobinfo_cache.testing import FakeClock, SimulatedDashboard, settle
from tests.support import CLUSTER, Core, ScriptedDashboard, make_info, not_found
from tests.unit.rounds import Rounds
from tests.unit.watched import INTERVAL, JOBS, LIST, Watched


@pytest.fixture(autouse=True)
def _durations_are_those_of_the_clock(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is cheaper shall not depend on the machine."""
    monkeypatch.setattr("jobinfo_cache.poller.time", SimpleNamespace(monotonic=clock.monotonic))


@pytest.fixture
def dashboard(clock: FakeClock) -> Iterator[SimulatedDashboard]:
    with SimulatedDashboard(clock=clock) as simulated:
        for job_id in JOBS:
            simulated.add_job(job_id, status="RUNNING")
        yield simulated


@pytest.fixture
def watched(dashboard: SimulatedDashboard, clock: FakeClock) -> Iterator[Watched]:
    made = Watched(dashboard, clock)
    with made.cache:
        yield made


def test_one_list_an_interval_for_all_jobs(watched: Watched) -> None:
    """Where a list is the cheaper way there is one request per interval, and all are fresh."""
    watched.begin()
    watched.prefer(lists=True)
    for _ in range(5):
        watched.advance(INTERVAL)
        assert watched.new_paths() == [LIST]
        assert all((watched.client.lookup(job).age or 0.0) <= INTERVAL for job in JOBS)


def test_one_single_request_an_interval_and_job_where_that_is_cheaper(watched: Watched) -> None:
    """Where lists are dearer each live job is asked about once per interval, and never more."""
    watched.begin()
    watched.prefer(lists=False)
    watched.advance(INTERVAL)
    assert sorted(watched.new_paths()) == [f"{LIST}{job_id}" for job_id in JOBS]


def test_never_lists_without_batching(dashboard: SimulatedDashboard, clock: FakeClock) -> None:
    """With `batching=False` no list is ever asked for, however cheap it would be."""
    watched = Watched(dashboard, clock, batching=False)
    with watched.cache:
        watched.read_all()
        watched.prefer(lists=True)
        watched.advance(4 * INTERVAL)
        assert LIST not in watched.new_paths()
        assert watched.cache.stats().requests_list == 0


def test_terminal_jobs_leave_the_list(watched: Watched) -> None:
    """Of the jobs in a list only the tracked live ones are refreshed; the rest ask for nothing."""
    watched.begin()
    for job_id in JOBS:
        watched.dashboard.set_status(job_id, "SUCCEEDED")
    watched.advance(INTERVAL)
    watched.new_paths()
    watched.advance(5 * INTERVAL)
    assert watched.new_paths() == []
    assert {watched.client.get_job_info(job_id).status for job_id in JOBS} == {"SUCCEEDED"}


def test_missing_job_is_confirmed_singly(watched: Watched) -> None:
    """A job that a list lacks is asked about by itself, in the same round, and only it is."""
    watched.begin()
    watched.prefer(lists=True)
    watched.dashboard.remove_job(JOBS[7])
    watched.advance(INTERVAL)
    assert watched.new_paths() == [LIST, f"{LIST}{JOBS[7]}"]
    with pytest.raises(JobNotFound):
        watched.client.get_job_info(JOBS[7])
    watched.client.get_job_info(JOBS[8])


def test_job_that_only_the_list_lacks_is_no_failure(watched: Watched) -> None:
    """When the single request finds what the list lacked, nobody hears of it."""
    watched.begin()
    watched.prefer(lists=True)
    with watched.dashboard.gate(f"{LIST}{JOBS[7]}") as gate:
        watched.dashboard.remove_job(JOBS[7])
        for _ in range(30):
            watched.clock.advance(0.1)
        gate.wait_for(1)
        watched.dashboard.add_job(JOBS[7], status="RUNNING")
    settle(watched.cache)
    assert watched.client.get_job_info(JOBS[7]).status == "RUNNING"
    assert watched.cache.stats().polls_failed["not_found"] == 0


@pytest.mark.parametrize("fault", ["500", "503", "garbage", "reset", "404"])
def test_failing_list_falls_back_to_single_requests(watched: Watched, fault: str) -> None:
    """A list that fails is no outcome: the same round asks singly, and later rounds do so too."""
    watched.begin()
    watched.prefer(lists=True)
    fail_lists(watched.dashboard, fault)
    watched.advance(INTERVAL)
    paths = watched.new_paths()
    assert set(paths) == {LIST, *(f"{LIST}{job_id}" for job_id in JOBS)}
    assert all((watched.client.lookup(job).age or 0.0) <= INTERVAL for job in JOBS)
    assert sum(watched.cache.stats().polls_failed.values()) == 0
    watched.advance(INTERVAL)
    assert LIST not in watched.new_paths()


def fail_lists(dashboard: SimulatedDashboard, fault: str) -> None:
    """Fail the requests for the list, and none for a single job."""
    dashboard.fault(fault, path=LIST)
    for job_id in JOBS:
        dashboard.fault("slow:0", path=f"{LIST}{job_id}")


def test_oversized_list_falls_back_to_single_requests(
    dashboard: SimulatedDashboard, clock: FakeClock
) -> None:
    """A list beyond `max_response_bytes` is given up, and each job is asked about singly."""
    watched = Watched(dashboard, clock)
    with watched.cache:
        watched.client = watched.cache.client(
            DashboardClient(dashboard.url, timeout=10.0, max_response_bytes=4000),
            Cluster("ns", "small", "uid"),
        )
        watched.begin()
        watched.prefer(lists=True)
        watched.advance(INTERVAL)
        assert sorted(watched.new_paths()) == [LIST, *(f"{LIST}{job_id}" for job_id in JOBS)]
        assert all(watched.client.lookup(job_id).fresh for job_id in JOBS)


def test_slow_list_gives_way_to_single_requests(watched: Watched) -> None:
    """When lists have become slower than the single requests, those are made again."""
    watched.begin()
    watched.prefer(lists=True)
    watched.advance(INTERVAL)
    assert watched.new_paths() == [LIST]
    watched.prefer(lists=False)
    watched.advance(INTERVAL)
    assert LIST not in watched.new_paths()


def test_list_is_parsed_once(dashboard: SimulatedDashboard, clock: FakeClock) -> None:
    """Parsing a list is one call of `json_loads` for all the jobs in it."""
    watched = Watched(dashboard, clock)
    bodies: list[bytes] = []

    def loads(body: bytes) -> Any:
        bodies.append(body)
        return json.loads(body)

    with watched.cache:
        watched.client = watched.cache.client(
            DashboardClient(dashboard.url, timeout=10.0, json_loads=loads),
            Cluster("ns", "loads", "uid"),
        )
        watched.begin()
        watched.prefer(lists=True)
        watched.advance(INTERVAL)
        bodies.clear()
        dashboard.set_status(JOBS[0], "PENDING")
        watched.advance(INTERVAL)
        assert len(bodies) == 1


def test_jobs_of_one_cluster_are_drawn_together(clock: FakeClock) -> None:
    """Jobs first read at different moments of an interval come to share one list request."""
    rounds = Rounds(clock, batching=True, jitter=0.1)
    client, dashboard = rounds.cluster("one")
    lists: list[float] = []

    def listed() -> list[JobInfo]:
        lists.append(clock.monotonic())
        return [make_info(submission_id=job_id, fetched_at=clock.now()) for job_id in JOBS]

    dashboard.list_jobs = listed  # type: ignore[method-assign]
    for job_id in JOBS:
        client.lookup(job_id)
        rounds.run_for(0.2)
    client._state.costs.took_single(1.0)
    rounds.run_for(40 * INTERVAL)

    lists.clear()
    dashboard.asked.clear()
    rounds.run_for(10 * INTERVAL)
    # With jitter an interval lasts from 2.7 to 3 s.
    assert 10 <= len(lists) <= 12
    assert len(dashboard.asked) <= 1  # the costs of a single request are measured now and then


class Listing(ScriptedDashboard):
    """Lists the jobs that it was told to; single requests and lists take so many seconds."""

    def __init__(self, clock: FakeClock, *listed: str) -> None:
        super().__init__(clock)
        self.listed = list(listed)
        self.lists = 0
        self.single_takes = self.list_takes = 0.0
        self.session_name = "session_1"
        self.during = lambda: clock.advance(self.single_takes)

    def list_jobs(self) -> list[JobInfo]:
        self.lists += 1
        self._clock.advance(self.list_takes)
        now = self._clock.now()
        return [make_info(submission_id=job_id, fetched_at=now) for job_id in self.listed]

    def get_version(self) -> dict[str, Any]:
        return {"session_name": self.session_name}


class TestOneRound:
    """Rounds of a cluster whose requests last as long as the test says."""

    def core(self, clock: FakeClock, *listed: str, cluster: Cluster = CLUSTER) -> Core:
        """A core whose dashboard is a `Listing`, in `self.dashboard`."""
        core = Core(clock, batching=True, poll_interval=INTERVAL)
        self.dashboard = Listing(clock, *listed)
        core.client = core.cache.client(self.dashboard.client, cluster)
        core.state = core.client._state
        return core

    @pytest.mark.parametrize(
        ("single_takes", "list_takes", "lists"), [(0.01, 1.0, False), (0.05, 0.1, True)]
    )
    def test_cheaper_way_is_told_by_durations(
        self,
        clock: FakeClock,
        monkeypatch: pytest.MonkeyPatch,
        single_takes: float,
        list_takes: float,
        lists: bool,
    ) -> None:
        """After one try of both, what the requests have taken decides between them."""
        # A moment in the midst of the first round would part its jobs for good, without jitter.
        monkeypatch.setattr(Schedule, "_spread", lambda *_: INTERVAL / 2)
        core = self.core(clock, *"abcde")
        self.dashboard.single_takes, self.dashboard.list_takes = single_takes, list_takes
        core.add(*"abcde")
        core.poll()
        assert (self.dashboard.asked, self.dashboard.lists) == (["a"], 1)
        core.poll_for(5 * INTERVAL)
        if lists:
            assert self.dashboard.asked == ["a"]
            assert self.dashboard.lists >= 5
        else:
            assert self.dashboard.lists == 1
            assert len(self.dashboard.asked) >= 5 * 4

    def test_single_request_is_measured_now_and_then(self, clock: FakeClock) -> None:
        """Where lists win, one single request in 64 rounds sees whether they still do."""
        core = self.core(clock, *"abcde")
        core.add(*"abcde")
        core.poll_for(70 * INTERVAL)
        assert len(self.dashboard.asked) == 2
        assert self.dashboard.lists >= 69

    def test_answer_is_as_old_as_the_list_request(self, clock: FakeClock) -> None:
        """`fetched_at` is when the list was asked for, however long it took."""
        core = self.core(clock, *"abc")
        self.dashboard.list_takes = 0.5
        core.add(*"abc")
        sent = clock.now()
        core.poll()
        assert (self.dashboard.lists, core.read("b").fetched_at) == (1, sent)

    def test_job_that_fails_by_itself_is_asked_for_singly(self, clock: FakeClock) -> None:
        """A list does not hide that a job's own request fails; it keeps its own backoff."""
        core = self.core(clock, *"ab")
        for job_id in "cd":
            self.dashboard.script(job_id, BadResponse("odd", status_code=200))
        core.add(*"cdab")
        core.poll()
        assert (self.dashboard.asked, self.dashboard.lists) == (["c", "d"], 1)
        self.dashboard.listed = list("abcd")
        core.poll_for(3.5 * INTERVAL)
        assert self.dashboard.asked == ["c", "d"] * 3  # after 0, 1 and 3 intervals
        assert [core.client.lookup(job_id).failures for job_id in "cd"] == [3, 3]

    def test_listed_jobs_notice_a_restart(self, clock: FakeClock) -> None:
        """A job that a list has answered for knows its head: its loss by a restart is said."""
        core = self.core(clock, *"abc", cluster=Cluster("ns", "two"))
        core.add(*"abc")
        core.poll()
        assert (self.dashboard.asked, self.dashboard.lists) == (["a"], 1)
        self.dashboard.session_name = "session_2"
        self.dashboard.listed = ["a", "c"]
        self.dashboard.script("b", not_found("b"))
        core.poll_for(INTERVAL)
        with pytest.raises(JobNotFound, match="restarted"):
            core.read("b")

    def test_list_of_an_old_address_is_dropped(self, clock: FakeClock) -> None:
        """When the cluster moves while a list is under way, none of its answers is stored."""
        core = self.core(clock, *"abc")
        new = Listing(clock, *"abc")
        new.url = "http://127.0.0.1:2"
        listed = self.dashboard.list_jobs

        def list_and_move() -> list[JobInfo]:
            core.cache.client(new.client, CLUSTER)
            return listed()

        self.dashboard.list_jobs = list_and_move  # type: ignore[method-assign]
        core.add(*"abc")
        core.poll()
        assert (self.dashboard.asked, self.dashboard.lists) == (["a"], 1)
        assert core.cache.stats().stale_replies_dropped == 2
        assert [core.client.lookup(job_id).info for job_id in "bc"] == [None, None]
        core.poll_for(INTERVAL)
        assert all(core.client.lookup(job_id).fresh for job_id in "abc")

    def test_client_without_lists_is_never_asked_for_one(self, clock: FakeClock) -> None:
        """A user's own fake that has only `get_job_info` is asked singly, and no list counts."""
        core = self.core(clock)
        scripted = ScriptedDashboard(clock)
        bare = SimpleNamespace(url="http://127.0.0.1:3", get_job_info=scripted.get_job_info)
        core.cache.client(cast(DashboardClient, bare), CLUSTER)
        core.add(*"abc")
        core.poll()
        assert scripted.asked == ["a", "b", "c"]
        assert core.cache.stats().requests_list == 0

    def test_missing_job_is_not_listed_again_before_its_own_request(self, clock: FakeClock) -> None:
        """When a turn ends before what a list lacked is confirmed, the next turns do just that."""
        core = self.core(clock)
        self.dashboard.script("a", "SUCCEEDED")
        self.dashboard.single_takes, self.dashboard.list_takes = 1.0, 0.5
        core.add(*"abc")
        for _ in range(3):
            core.poll()
        assert (self.dashboard.asked, self.dashboard.lists) == (["a", "b", "c"], 1)

    def test_driver_job_is_found_by_its_job_id(self, clock: FakeClock) -> None:
        """Jobs without a submission are in the list as well, under their job ids."""
        core = self.core(clock)
        found = [make_info(job_id=job_id) for job_id in ("02000000", "03000000")]
        self.dashboard.list_jobs = lambda: found  # type: ignore[method-assign]
        core.add("01000000", "02000000", "03000000")
        core.poll()
        assert self.dashboard.asked == ["01000000"]
        assert core.read("03000000").job_id == "03000000"

    def test_another_address_is_measured_anew(self, clock: FakeClock) -> None:
        """Lists that failed at the old address are no reason against them at the new one."""
        core = Core(clock, batching=True)  # whose dashboard fails all lists
        core.add(*"abc")
        core.poll()
        assert core.dashboard.asked == ["a", "b", "c"]
        new = Listing(clock, *"abc")
        new.url = "http://127.0.0.1:2"
        core.cache.client(new.client, CLUSTER)
        core.poll_for(2 * INTERVAL)
        assert new.lists >= 1
