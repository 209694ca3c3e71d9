"""Tests that trouble stays where it is: first tries, and backoffs of dashboards and of jobs."""

from __future__ import annotations

import pytest

from jobinfo_cache import (
    BadResponse,
    Cluster,
    DashboardAuthError,
    DashboardClient,
    DashboardError,
    DashboardUnavailable,
    JobConflict,
    JobInfo,
    JobNotFound,
)
from jobinfo_cache.testing import FakeClock
from tests.support import ScriptedDashboard, not_found, unavailable
from tests.unit.rounds import Rounds


class Hurried(ScriptedDashboard):
    """Notes the timeouts that its requests are given; None is its own."""

    def __init__(self, clock: FakeClock, *outcomes: str | BaseException) -> None:
        super().__init__(clock, *outcomes)
        self.timeouts: list[float | None] = []
        self._timeout: float | None = None

    def with_timeout(self, timeout: float) -> DashboardClient:
        self._timeout = timeout
        return self.client

    def get_job_info(self, job_id: str) -> JobInfo:
        self.timeouts.append(self._timeout)
        self._timeout = None
        return super().get_job_info(job_id)


class TestFirstTry:
    """The first request to a dashboard is given little time."""

    @pytest.fixture(autouse=True)
    def _all_failures_take_that_long(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Any failure of a first try counts as cut short, however soon it comes."""
        monkeypatch.setattr("jobinfo_cache.poller.FIRST_TRY", 0.0)

    def follow(self, clock: FakeClock, *outcomes: str | BaseException) -> tuple[Rounds, Hurried]:
        rounds = Rounds(clock)
        dashboard = Hurried(clock, *outcomes)
        self.client = rounds.cache.client(dashboard.client, Cluster("ns", "one", "uid"))
        self.client.lookup("a")
        return rounds, dashboard

    def test_cut_short_is_repeated_at_once_with_the_full_deadline(self, clock: FakeClock) -> None:
        """It is no outcome: the request is sent again, and may then take its time."""
        rounds, dashboard = self.follow(clock, unavailable(), "RUNNING")
        rounds.run_for(0.0)
        assert dashboard.timeouts == [0.0, None]
        assert self.client.get_job_info("a").status == "RUNNING"
        assert sum(rounds.cache.stats().polls_failed.values()) == 0

    def test_second_failure_is_an_outcome(self, clock: FakeClock) -> None:
        """When the full deadline passes too, the dashboard has failed once, and backs off."""
        rounds, dashboard = self.follow(clock, unavailable())
        rounds.run_for(0.0)
        assert dashboard.timeouts == [0.0, None]
        snapshot = self.client.lookup("a")
        assert snapshot.failures == 1
        assert snapshot.retry_after == pytest.approx(3.0, abs=0.2)
        rounds.run_for(3.0)
        assert dashboard.timeouts == [0.0, None, None]

    def test_answer_is_never_cut_short(self, clock: FakeClock) -> None:
        """A 503 is an answer: it counts at once, however long it took."""
        busy = DashboardUnavailable("busy", status_code=503)
        rounds, dashboard = self.follow(clock, busy)
        rounds.run_for(0.0)
        assert dashboard.timeouts == [0.0]
        assert self.client.lookup("a").failures == 1

    def test_only_the_first_request_hurries(self, clock: FakeClock) -> None:
        """Once a dashboard has answered, all its requests may take their time."""
        rounds, dashboard = self.follow(clock, "RUNNING")
        rounds.run_for(12.0)
        assert len(dashboard.timeouts) >= 4
        assert set(dashboard.timeouts[1:]) == {None}


def test_refused_first_try_is_an_outcome(clock: FakeClock) -> None:
    """A first request that fails at once has not been cut short: its failure is told."""
    rounds = Rounds(clock)
    client, dashboard = rounds.cluster("one", unavailable())
    client.lookup("a")
    rounds.run_for(0.0)
    assert dashboard.asked == ["a"]
    assert client.lookup("a").failures == 1


class TestBackoff:
    """Whom a failure slows down, and what ends it."""

    def fail(self, clock: FakeClock) -> None:
        """Have the dashboard fail until its backoff is long."""
        self.rounds = Rounds(clock)
        self.client, self.dashboard = self.rounds.cluster("one", unavailable())
        self.client.lookup("a")
        self.rounds.run_for(60.0)
        self.dashboard.script(None, "RUNNING")
        self.dashboard.asked.clear()
        self.rounds.run_for(10.0)
        assert self.dashboard.asked == []

    def call(self, answer: DashboardError | None) -> None:
        """A direct call, and what the dashboard answers to it."""

        def get_version() -> dict[str, str]:
            if answer is not None:
                raise answer
            return {}

        self.dashboard.get_version = get_version  # type: ignore[method-assign]
        if answer is None:
            self.client.get_version()
            return
        with pytest.raises(type(answer)):
            self.client.get_version()

    @pytest.mark.parametrize(
        "answer",
        [
            None,
            BadResponse("a redirect", status_code=302),
            BadResponse("a teapot", status_code=418),
            BadResponse("a login page", status_code=200),
            JobNotFound("no such job", job_id="a", status_code=404),
            JobConflict("it lives", job_id="a", status_code=400),
            DashboardAuthError("who are you", status_code=401),
        ],
        ids=repr,
    )
    def test_is_ended_by_any_answer_below_500(
        self, clock: FakeClock, answer: DashboardError | None
    ) -> None:
        """Whatever proves that the dashboard is there ends its backoff, to a direct call too."""
        self.fail(clock)
        self.call(answer)
        self.rounds.run_for(0.0)
        assert self.dashboard.asked == ["a"]

    @pytest.mark.parametrize(
        "answer",
        [
            DashboardUnavailable("refused"),
            DashboardUnavailable("too many", status_code=429),
            DashboardUnavailable("busy", status_code=503),
            BadResponse("not implemented", status_code=501),
        ],
        ids=repr,
    )
    def test_is_not_ended_by_429_or_worse(self, clock: FakeClock, answer: DashboardError) -> None:
        """No answer, "too many requests" and server errors leave the backoff as it is."""
        self.fail(clock)
        self.call(answer)
        self.rounds.run_for(1.0)
        assert self.dashboard.asked == []

    def test_of_one_job_leaves_the_others_alone(self, clock: FakeClock) -> None:
        """A job that is not found is asked for less and less; its neighbours every interval."""
        rounds = Rounds(clock)
        client, dashboard = rounds.cluster("one")
        dashboard.script("bad", not_found("bad"))
        client.lookup("bad")
        client.lookup("good")
        rounds.run_for(93.0)
        # From 0 s on after 3, 6, 12, 24, 48 s: the sixth at 93 s at the latest.
        assert 5 <= dashboard.asked.count("bad") <= 6
        assert 30 <= dashboard.asked.count("good") <= 32

    @pytest.mark.parametrize(("named", "delay"), [(20.0, 20.0), (1.0, 3.0), (1e6, 60.0)])
    def test_honours_retry_after_without_jitter(
        self, clock: FakeClock, named: float, delay: float
    ) -> None:
        """What a server names is waited out in full, up to `max_backoff`, and not shortened."""
        rounds = Rounds(clock, jitter=0.5)
        client, dashboard = rounds.cluster("one", unavailable(named), "RUNNING")
        client.lookup("a")
        rounds.run_for(0.0)
        if named > 3.0:
            rounds.run_for(delay - 0.01)
            assert len(dashboard.asked) == 1
            rounds.run_for(0.02)
        else:
            rounds.run_for(delay)
        assert len(dashboard.asked) >= 2

    def test_of_one_dashboard_leaves_the_others_alone(self, clock: FakeClock) -> None:
        """While one dashboard fails, the jobs of another are asked about every interval."""
        rounds = Rounds(clock)
        bad, bad_dashboard = rounds.cluster("bad", unavailable())
        good, good_dashboard = rounds.cluster("good")
        for client in (bad, good):
            client.lookup("a")
        rounds.run_for(93.0)
        assert 5 <= len(bad_dashboard.asked) <= 6
        assert 30 <= len(good_dashboard.asked) <= 32
