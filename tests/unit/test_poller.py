"""Tests of rounds: which requests are sent, when, and what their outcomes lead to."""

from __future__ import annotations

import gc
import itertools
import logging
import weakref
from datetime import timedelta

import pytest

from jobinfo_cache import (
    BadResponse,
    Cluster,
    DashboardAuthError,
    DashboardError,
    DashboardUnavailable,
    JobInfo,
)
from jobinfo_cache.testing import FakeClock
from tests.support import START, Core, ScriptedDashboard, make_info, not_found, unavailable


def gaps(dashboard: ScriptedDashboard, job_id: str = "a") -> list[float]:
    """The times between requests for one job."""
    times = [
        at for asked, at in zip(dashboard.asked, dashboard.asked_at, strict=True) if asked == job_id
    ]
    return [later - earlier for earlier, later in itertools.pairwise(times)]


class TestRhythm:
    """Live jobs are asked about every interval."""

    def test_interval_is_from_sending_to_sending(self, clock: FakeClock) -> None:
        """The time that a reply takes does not lengthen the interval."""
        core = Core(clock, poll_interval=3.0)
        core.dashboard.during = lambda: clock.advance(0.5)
        core.add("a")
        core.poll_for(60.0)

        assert gaps(core.dashboard)[1:] == pytest.approx([3.0] * len(gaps(core.dashboard)[1:]))
        assert len(gaps(core.dashboard)) >= 18

    def test_first_delay_is_drawn_from_the_whole_interval(self, clock: FakeClock) -> None:
        """After first contact clusters that were reached together spread out."""
        first = []
        for _ in range(40):
            core = Core(clock, poll_interval=3.0)
            core.add("a")
            core.poll_for(3.001)
            first.append(gaps(core.dashboard)[0])

        assert min(first) < 1.0
        assert max(first) > 2.0
        assert max(first) <= 3.001

    def test_jitter_shortens_by_its_share_at_most(self, clock: FakeClock) -> None:
        """With jitter, intervals are between (1 - jitter) × interval and the interval."""
        core = Core(clock, poll_interval=3.0, jitter=0.5, expiry=1e6)
        core.add("a")
        core.poll_for(600.0)
        later = gaps(core.dashboard)[1:]

        assert min(later) >= 1.5 - 1e-6
        assert max(later) <= 3.0 + 1e-6
        assert max(later) - min(later) > 0.5

    @pytest.mark.parametrize("status", ["STOPPED", "SUCCEEDED", "FAILED"])
    def test_what_has_ended_is_not_asked_again(self, clock: FakeClock, status: str) -> None:
        """A terminal job leaves the rounds; the others stay."""
        core = Core(clock, "RUNNING")
        core.dashboard.script("a", status)
        core.add("a", "b")
        core.poll_for(30.0)

        assert core.dashboard.asked.count("a") == 1
        assert core.dashboard.asked.count("b") >= 10

    def test_nothing_is_left_when_all_have_ended(self, clock: FakeClock) -> None:
        """A cluster without a live job has no next round, and keeps no connection."""
        core = Core(clock, "SUCCEEDED")
        core.add("a", "b")

        assert core.poll() is None
        assert core.dashboard.closed == 1

    def test_unknown_cluster_has_no_round(self, clock: FakeClock) -> None:
        """A cluster that nobody knows any more is let go."""
        core = Core(clock)

        assert core.engine.poller.poll_cluster(Cluster("ns", "gone")) is None
        assert core.dashboard.asked == []

    def test_round_before_its_time_asks_nothing(self, clock: FakeClock) -> None:
        """However often a cluster is visited, no job is asked about before it is due."""
        core = Core(clock, poll_interval=3.0)
        core.add("a")
        core.poll_for(3.0)
        clock.advance(core.poll() or 0.0)
        core.poll()
        asked = len(core.dashboard.asked)
        for _ in range(10):
            clock.advance(0.29)
            core.poll()

        assert len(core.dashboard.asked) == asked

    def test_jobs_of_one_cluster_share_rounds(self, clock: FakeClock) -> None:
        """A job that is almost due joins the round of another that is due."""
        core = Core(clock, poll_interval=3.0, jitter=0.1)
        core.add("a")
        core.poll_for(4.0)
        clock.advance(core.poll() or 0.0)
        core.poll()
        clock.advance(0.1)
        core.add("b")
        core.poll_for(60.0)
        times = {job_id: set[float]() for job_id in "ab"}
        for job_id, at in zip(core.dashboard.asked, core.dashboard.asked_at, strict=True):
            times[job_id].add(at)

        assert times["a"] & times["b"]

    def test_no_job_starves_on_a_slow_dashboard(self, clock: FakeClock) -> None:
        """Where a round takes longer than the interval, all jobs still get their turn."""
        core = Core(clock, poll_interval=3.0, expiry=1e6)
        core.dashboard.during = lambda: clock.advance(0.1)
        jobs = [f"job-{number}" for number in range(50)]
        core.add(*jobs)
        core.poll_for(30.0)
        counts = [core.dashboard.asked.count(job_id) for job_id in jobs]

        assert min(counts) >= 3, counts

    @pytest.mark.parametrize("act", ["forget", "close"])
    def test_job_that_goes_in_mid_round_is_not_asked_about(
        self, clock: FakeClock, act: str
    ) -> None:
        """A job that was forgotten since the round began, or with the whole cache, is left out."""
        core = Core(clock)
        core.add("a", "b", "c")

        def go() -> None:
            if act == "forget":
                core.client.forget("b")
            else:
                core.cache.close()

        core.dashboard.during = go
        core.poll()

        assert core.dashboard.asked == (["a", "c"] if act == "forget" else ["a"])

    def test_turn_of_a_slow_cluster_is_short(self, clock: FakeClock) -> None:
        """A worker turns to others after a short while, and what is left is due at once."""
        core = Core(clock)
        core.dashboard.during = lambda: clock.advance(0.3)
        core.add(*"abcdef")

        assert core.poll() == 0.0
        assert len(core.dashboard.asked) <= 2


class TestBackoff:
    """After failures."""

    def test_of_the_dashboard(self, clock: FakeClock) -> None:
        """A dead dashboard is asked after 1, 2, 4, … intervals, up to the cap."""
        core = Core(clock, unavailable(), poll_interval=3.0, max_backoff=20.0, expiry=1e6)
        core.add("a")
        core.poll_for(90.0)

        assert gaps(core.dashboard) == pytest.approx([3.0, 6.0, 12.0, 20.0, 20.0, 20.0])

    def test_of_one_job(self, clock: FakeClock) -> None:
        """A job that is not found is asked for after 1, 2, 4, … intervals, up to the cap."""
        core = Core(clock, not_found(), poll_interval=3.0, max_backoff=20.0, expiry=1e6)
        core.add("a")
        core.poll_for(90.0)

        assert gaps(core.dashboard) == pytest.approx([3.0, 6.0, 12.0, 20.0, 20.0, 20.0])

    def test_of_one_job_holds_up_no_other(self, clock: FakeClock) -> None:
        """The neighbours of a job that fails by itself keep their rhythm."""
        core = Core(clock, "RUNNING", poll_interval=3.0)
        core.dashboard.script("a", not_found())
        core.add("a", "b")
        core.poll_for(60.0)

        assert core.dashboard.asked.count("b") >= 20
        assert core.dashboard.asked.count("a") <= 7

    def test_one_request_tells_of_an_outage(self, clock: FakeClock) -> None:
        """A dead dashboard gets one request a round, not one for each job."""
        core = Core(clock, unavailable(), poll_interval=3.0)
        core.add(*"abcdef")
        core.poll()
        clock.advance(3.0)
        core.poll()

        assert len(core.dashboard.asked) == 2
        assert [core.client.lookup(job_id).failures for job_id in "abcdef"] == [2] * 6
        assert core.cache.stats().polls_failed["unavailable"] == 2

    def test_starts_anew_after_a_success(self, clock: FakeClock) -> None:
        """An outage that is over does not lengthen the next one, nor its failing_since."""
        core = Core(
            clock,
            *[unavailable()] * 4,
            "RUNNING",
            unavailable(),
            unavailable(),
            "RUNNING",
            poll_interval=3.0,
        )
        core.add("a")
        core.poll_for(51.5)
        lengths = gaps(core.dashboard)
        snapshot = core.client.lookup("a")

        assert lengths[:4] == pytest.approx([3.0, 6.0, 12.0, 24.0])
        assert lengths[5] == pytest.approx(3.0)
        assert snapshot.failures == 2
        assert snapshot.failing_since == START + timedelta(
            seconds=core.dashboard.asked_at[5] - 1000.0
        )

    def test_failing_since_is_the_first_of_the_row(self, clock: FakeClock) -> None:
        """`failures` counts failures in a row of any kind; `failing_since` is their beginning."""
        core = Core(clock, "RUNNING", unavailable(), not_found(), poll_interval=3.0)
        core.add("a")
        core.poll()
        core.poll_for(15.0)
        snapshot = core.client.lookup("a")

        assert snapshot.failures >= 2
        assert snapshot.failing_since == START + timedelta(
            seconds=core.dashboard.asked_at[1] - core.dashboard.asked_at[0]
        )

    def test_retry_after_is_kept(self, clock: FakeClock) -> None:
        """What the server named counts, in full, if it is longer than the backoff."""
        core = Core(clock, unavailable(retry_after=17.0), poll_interval=3.0, jitter=0.5)
        core.add("a")
        core.poll_for(40.0)

        assert gaps(core.dashboard)[0] == pytest.approx(17.0)

    def test_retry_after_is_capped(self, clock: FakeClock) -> None:
        """A Retry-After beyond `max_backoff` counts as that."""
        core = Core(clock, unavailable(retry_after=1e6), poll_interval=3.0, max_backoff=30.0)
        core.add("a")
        core.poll_for(61.0)

        assert gaps(core.dashboard) == pytest.approx([30.0, 30.0])

    def test_spread_after_an_outage(self, clock: FakeClock) -> None:
        """After an outage the next delay is drawn from the whole interval again."""
        first = []
        for _ in range(40):
            core = Core(clock, unavailable(), "RUNNING", poll_interval=3.0)
            core.add("a")
            core.poll_for(6.001)
            first.append(gaps(core.dashboard)[1])

        assert min(first) < 1.0
        assert max(first) > 2.0

    def test_direct_answer_ends_it(self, clock: FakeClock) -> None:
        """A dashboard that answers a direct request is polled again without waiting."""
        core = Core(clock, unavailable(), unavailable(), unavailable(), "RUNNING")
        core.add("a")
        core.poll_for(10.0)
        assert len(core.dashboard.asked) == 3
        core.pool.take()
        core.client.get_version()

        assert core.pool.take() == [(core.client.cluster, 0.0)]
        core.poll()
        assert core.read().status == "RUNNING"


class TestOutcomes:
    """Whatever comes back is an outcome."""

    @pytest.mark.parametrize(
        ("outcome", "kind"),
        [
            (not_found(), "not_found"),
            (unavailable(), "unavailable"),
            (DashboardAuthError("no", status_code=401), "auth"),
            (BadResponse("odd", status_code=200), "bad_response"),
            (ValueError("odd"), "internal"),
            (SystemExit(3), "internal"),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_failures_are_counted_by_kind(
        self, clock: FakeClock, outcome: BaseException, kind: str
    ) -> None:
        """Each failed poll counts under its kind, and only there."""
        core = Core(clock, outcome)
        core.add("a")
        core.poll()

        stats = core.cache.stats()
        kinds = ("not_found", "unavailable", "auth", "bad_response", "internal")
        assert stats.polls_failed == {each: int(each == kind) for each in kinds}
        assert (stats.polls_ok, stats.requests_single) == (0, 1)

    @pytest.mark.parametrize("fault", [ValueError("odd"), SystemExit(3), KeyboardInterrupt()])
    def test_odd_error_is_an_internal_fault(self, clock: FakeClock, fault: BaseException) -> None:
        """An exception that is no DashboardError becomes one, with its cause, and is retried."""
        core = Core(clock, fault, "RUNNING", poll_interval=3.0)
        core.add("a")
        core.poll()
        with pytest.raises(DashboardError) as raised:
            core.read()

        assert type(raised.value) is DashboardError
        assert raised.value.__cause__ is fault
        assert raised.value.fetched_at == START
        assert raised.value.url == core.dashboard.url
        core.poll_for(3.0)
        assert core.read().status == "RUNNING"

    def test_answer_that_is_none_is_an_internal_fault(self, clock: FakeClock) -> None:
        """A dashboard client that returns no JobInfo is never believed."""
        core = Core(clock)

        def nothing(job_id: str) -> JobInfo:
            return None  # type: ignore[return-value]

        core.dashboard.get_job_info = nothing  # type: ignore[method-assign]
        core.add("a")
        core.poll()

        with pytest.raises(DashboardError):
            core.read()

    def test_odd_error_of_get_version_ends_no_round(self, clock: FakeClock) -> None:
        """A session that cannot be asked for, for whatever reason, keeps no job waiting."""
        core = Core(clock)
        dashboard = ScriptedDashboard(clock, "RUNNING")

        def odd() -> dict[str, object]:
            raise RuntimeError("odd")

        dashboard.get_version = odd  # type: ignore[method-assign]
        client = core.cache.client(dashboard.client, Cluster("ns", "without-uid"))
        client.lookup("a")
        client.lookup("b")
        core.engine.poller.poll_cluster(client.cluster)

        assert sorted(dashboard.asked) == ["a", "b"]
        assert client.get_job_info("b").status == "RUNNING"

    def test_session_that_cannot_be_had_is_asked_for_seldom(self, clock: FakeClock) -> None:
        """Where only the jobs are served, not each poll is followed by a request in vain."""
        core = Core(clock)
        dashboard = ScriptedDashboard(clock, "RUNNING")
        asked_at: list[float] = []

        def hang() -> dict[str, object]:
            asked_at.append(clock.monotonic())
            raise unavailable()

        dashboard.get_version = hang  # type: ignore[method-assign]
        client = core.cache.client(dashboard.client, Cluster("ns", "without-uid"))
        for _ in range(100):
            client.lookup("a")
            core.engine.poller.poll_cluster(client.cluster)
            clock.advance(1.0)

        assert len(dashboard.asked) > 30
        assert len(asked_at) == 2
        assert asked_at[1] - asked_at[0] >= 60.0

    def test_kept_failure_keeps_no_frame(self, clock: FakeClock) -> None:
        """An error that is cached lets go of all that its frames held."""

        class Witness:
            """Something big."""

        witnesses: list[weakref.ref[Witness]] = []
        core = Core(clock)

        def fail(job_id: str) -> JobInfo:
            witness = Witness()
            witnesses.append(weakref.ref(witness))
            try:
                raise OSError("low")
            except OSError as error:
                raise unavailable() from error

        core.dashboard.get_job_info = fail  # type: ignore[method-assign]
        core.add("a")
        core.poll()
        gc.collect()

        assert isinstance(core.client.lookup("a").error, DashboardUnavailable)
        assert [witness() for witness in witnesses] == [None]


class TestOnChange:
    """User code is called in a worker."""

    def test_what_it_raises_is_logged_and_counted(
        self, clock: FakeClock, caplog: pytest.LogCaptureFixture
    ) -> None:
        """An `on_change` that raises changes nothing else, whatever it raises."""

        def on_change(change: object) -> None:
            raise SystemExit("odd")

        core = Core(clock, on_change=on_change)
        core.add("a", "b")
        delay = core.poll()

        assert core.cache.stats().callbacks_failed == 2
        assert core.read("b").status == "RUNNING"
        assert delay is not None
        records = [record for record in caplog.records if record.levelno == logging.WARNING]
        assert len(records) == 2
        assert all(record.exc_info for record in records)

    def test_no_lock_is_held(self, clock: FakeClock) -> None:
        """It may call any method of the cache, and sees the new answer."""
        seen: list[object] = []

        def on_change(change: object) -> None:
            client = core.client
            seen.append(client.get_job_info("a").status)
            client.lookup("b")
            client.stop_job("b")
            core.cache.forget("ns", "one", "b")
            core.cache.stats()

        core = Core(clock, "SUCCEEDED", on_change=on_change)
        core.add("a")
        core.poll()

        assert seen == ["SUCCEEDED"]
        assert core.cache.stats().callbacks_failed == 0

    def test_wait_in_it_is_refused(self, clock: FakeClock) -> None:
        """`wait` would block the thread that polls: it is a RuntimeError there, and only there."""
        errors: list[BaseException] = []

        def on_change(change: object) -> None:
            with pytest.raises(RuntimeError, match="on_change") as raised:
                core.client.wait("a", timeout=0.0)
            errors.append(raised.value)

        core = Core(clock, "SUCCEEDED", on_change=on_change)
        core.add("a")
        core.poll()

        assert len(errors) == 1
        assert core.client.wait("a", timeout=0.0).status == "SUCCEEDED"

    def test_close_in_it_ends_the_calls(self, clock: FakeClock) -> None:
        """None starts after `close` was called, be it in the middle of a round."""
        calls: list[object] = []

        def on_change(change: object) -> None:
            calls.append(change)
            core.cache.close(0.0)

        core = Core(clock, on_change=on_change)
        core.add("a", "b", "c")
        core.poll()

        assert len(calls) == 1


class TestLogging:
    """What an operator sees."""

    def test_outage_and_recovery(self, clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
        """The first failure of a dashboard is a WARNING, the next ones are not; INFO recovers."""
        caplog.set_level(logging.INFO, "jobinfo_cache")
        core = Core(clock, unavailable(), unavailable(), unavailable(), "RUNNING")
        core.add("a", "b")
        core.poll_for(30.0)

        levels = [record.levelname for record in caplog.records]
        assert levels == ["WARNING", "INFO"]
        assert "ns/one" in caplog.records[0].getMessage()
        assert caplog.records[0].name.startswith("jobinfo_cache")

    def test_healthy_rounds_say_nothing(
        self, clock: FakeClock, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Polls that go well are silent above DEBUG."""
        caplog.set_level(logging.INFO, "jobinfo_cache")
        core = Core(clock, "PENDING", "RUNNING", "SUCCEEDED")
        core.add("a")
        core.poll_for(30.0)

        assert caplog.records == []


class TestList:
    """One list request instead of many single ones."""

    def test_serves_all_its_jobs(self, clock: FakeClock) -> None:
        """Where a list is cheaper it is one request for all, and counted as such."""
        core = Core(clock, batching=True, poll_interval=3.0)
        jobs = [f"job-{number}" for number in range(100)]
        listed = [make_info("SUCCEEDED", submission_id=job_id) for job_id in jobs]
        core.dashboard.list_jobs = lambda: listed  # type: ignore[method-assign]
        core.add(*jobs)
        core.poll_for(10.0)

        stats = core.cache.stats()
        assert [core.read(job_id).status for job_id in jobs[1:]] == ["SUCCEEDED"] * 99
        assert stats.requests_list >= 1
        assert stats.requests_single < 10

    def test_is_never_used_when_switched_off(self, clock: FakeClock) -> None:
        """With `batching=False` each job is asked for singly."""
        core = Core(clock, batching=False, poll_interval=3.0)
        core.add(*[f"job-{number}" for number in range(100)])
        core.poll()

        stats = core.cache.stats()
        assert (stats.requests_list, stats.requests_single) == (0, 100)

    def test_job_that_it_lacks_is_confirmed_singly(self, clock: FakeClock) -> None:
        """A job missing from a list is not "not found" before a request of its own says so."""
        core = Core(clock, "RUNNING", batching=True, poll_interval=3.0)
        jobs = [f"job-{number}" for number in range(100)]
        listed = [make_info("RUNNING", submission_id=job_id) for job_id in jobs[:-2]]
        core.dashboard.list_jobs = lambda: listed  # type: ignore[method-assign]
        core.dashboard.script(jobs[-1], not_found(jobs[-1]))
        core.add(*jobs)
        core.poll_for(10.0)

        assert core.cache.stats().requests_list >= 1
        assert core.read(jobs[-2]).status == "RUNNING"
        assert core.client.lookup(jobs[-1]).error is not None
        assert core.dashboard.asked.count(jobs[-1]) >= 1

    def test_that_fails_falls_back(self, clock: FakeClock) -> None:
        """A list that fails, for whatever reason, is replaced by single requests."""
        core = Core(clock, "SUCCEEDED", batching=True, poll_interval=3.0)

        def fail() -> list[JobInfo]:
            raise ValueError("one corrupt record")

        core.dashboard.list_jobs = fail  # type: ignore[method-assign]
        jobs = [f"job-{number}" for number in range(30)]
        core.add(*jobs)
        core.poll_for(10.0)

        assert [core.read(job_id).status for job_id in jobs] == ["SUCCEEDED"] * 30

    def test_reply_older_than_a_write_is_dropped(self, clock: FakeClock) -> None:
        """What a list says of a job that was stopped meanwhile is not stored."""
        core = Core(clock, "RUNNING", batching=True, poll_interval=3.0)
        jobs = [f"job-{number}" for number in range(100)]

        def stop_then_list() -> list[JobInfo]:
            if not lists:
                core.client.stop_job(jobs[50])
            lists.append(True)
            return [make_info("SUCCEEDED", submission_id=job_id) for job_id in jobs]

        lists: list[bool] = []
        core.dashboard.list_jobs = stop_then_list  # type: ignore[method-assign]
        core.add(*jobs)
        core.poll()

        assert core.read(jobs[51]).status == "SUCCEEDED"
        peeked = core.client.peek(jobs[50])
        assert peeked is not None
        assert peeked.info is None or peeked.info.status == "RUNNING"
        assert core.cache.stats().stale_replies_dropped >= 1
