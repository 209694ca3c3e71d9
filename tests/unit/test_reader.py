"""Tests of what a read returns, without threads: each round is made by the test."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone
from enum import Enum
from typing import Any

import pytest

from jobinfo_cache import (
    CacheClosed,
    Cluster,
    DashboardError,
    DashboardUnavailable,
    InvalidJobId,
    JobNotFound,
    TryAgain,
    WaitTimeout,
)
from jobinfo_cache.testing import FakeClock
from tests.support import (
    CLUSTER,
    START,
    Core,
    TickingClock,
    make_info,
    not_found,
    unavailable,
)

TERMINAL = ["STOPPED", "SUCCEEDED", "FAILED"]


def fail_to_start() -> None:
    raise RuntimeError("can't start new thread")


class TestFirstRead:
    """Nothing is known of the job."""

    def test_stores_a_placeholder_and_schedules_one_poll(self, clock: FakeClock) -> None:
        """A first read says "pending", and has stored a placeholder and scheduled its cluster."""
        core = Core(clock)
        with pytest.raises(TryAgain) as raised:
            core.read()

        assert raised.value.reason == "pending"
        assert 0 < raised.value.retry_after < 1
        assert raised.value.last_info is None
        assert core.entry().is_placeholder
        assert set(core.pool.take()) == {(CLUSTER, 0.0)}
        assert core.dashboard.asked == []

    def test_an_enum_member_names_the_job_that_it_holds(self, clock: FakeClock) -> None:
        """A member of a text enum and its content are one job, on a miss and on a hit."""

        class Id(str, Enum):
            """Texts as enum members."""

            A = "a"

        core = Core(clock)
        assert core.reason(Id.A) == "pending"
        core.poll()

        assert core.dashboard.asked == ["a"]
        assert core.read(Id.A) is core.read("a")
        assert [type(job_id) for job_id in core.state.entries] == [str]

    def test_messages_are_one_line_whatever_the_cluster_is_called(self, clock: FakeClock) -> None:
        """A line end in the cluster's name is shown as an escape."""
        core = Core(clock)
        client = core.cache.client(core.dashboard.client, Cluster("a\nb", "c"))
        with pytest.raises(TryAgain, match=r"a\\nb/c: no new answer") as again:
            client.get_job_info("x")
        with pytest.raises(WaitTimeout, match=r"a\\nb/c: not there") as timeout:
            client.wait("x", timeout=0.0)

        assert str(again.value).isprintable()
        assert str(timeout.value).isprintable()

    def test_lookup_says_that_nothing_is_known(self, clock: FakeClock) -> None:
        """A first lookup returns a snapshot without anything, and schedules the poll as well."""
        core = Core(clock)
        snapshot = core.client.lookup("a")

        assert (snapshot.job_id, snapshot.cluster) == ("a", CLUSTER)
        assert (snapshot.info, snapshot.error, snapshot.fetched_at, snapshot.age) == (None,) * 4
        assert (snapshot.fresh, snapshot.known, snapshot.failures) == (False, False, 0)
        assert snapshot.failing_since is None
        assert snapshot.retry_after is not None
        assert 0 < snapshot.retry_after < 1
        assert core.pool.take()[0] == (CLUSTER, 0.0)

    def test_second_read_stays_pending_and_adds_no_entry(self, clock: FakeClock) -> None:
        """A placeholder read again is the same placeholder."""
        core = Core(clock)
        core.add("a")
        entry = core.entry()

        assert core.reason() == "pending"
        assert core.entry() is entry
        assert core.cache.stats().entries == 1

    def test_read_of_a_placeholder_asserts_its_cluster_again(self, clock: FakeClock) -> None:
        """A poll that was lost to an interrupt is lost until the next read only."""
        core = Core(clock)
        core.add("a")
        core.pool.take()
        clock.advance(0.5)

        assert core.reason() == "pending"
        assert core.pool.take() == [(CLUSTER, 0.0)]

    def test_lookup_of_a_placeholder_without_age_bound(self, clock: FakeClock) -> None:
        """Without any bound on ages a placeholder is pending too, and its cluster asserted."""
        core = Core(clock, max_age=None)
        core.add("a")
        core.pool.take()
        clock.advance(0.5)
        core.client.lookup("a")

        assert core.pool.take() == [(CLUSTER, 0.0)]
        stats = core.cache.stats()
        assert (stats.reads_pending, stats.reads_hit) == (2, 0)

    def test_failed_start_stores_and_counts_nothing(self, clock: FakeClock) -> None:
        """If threads cannot be started the error comes unchanged, and nothing was stored."""
        core = Core(clock, start=fail_to_start)
        with pytest.raises(RuntimeError, match=r"^can't start new thread$"):
            core.read()

        stats = core.cache.stats()
        assert (stats.entries, stats.reads_hit, stats.reads_pending) == (0, 0, 0)
        assert core.pool.take() == []

    def test_start_is_asked_for_first_reads_only(self, clock: FakeClock) -> None:
        """A read of a job that is held starts nothing, whatever it finds."""
        core = Core(clock)
        core.add("a")
        core.engine.reader.start = fail_to_start

        assert core.reason() == "pending"
        core.poll()
        assert core.read().status == "RUNNING"


class TestAnswer:
    """The newest outcome is a JobInfo."""

    def test_fresh_one_is_returned(self, clock: FakeClock) -> None:
        """An answer is returned until it is `max_age` old, as the very same object."""
        core = Core(clock, max_age=60.0)
        core.add("a")
        core.poll()
        first = core.read()
        clock.advance(60.0)

        assert core.read() is first
        clock.advance(0.001)
        assert core.reason() == "stale"

    def test_time_is_that_of_the_request(self, clock: FakeClock) -> None:
        """`fetched_at` is when the request was sent, however long the reply took."""
        core = Core(clock)
        core.add("a")
        core.dashboard.during = lambda: clock.advance(1.5)
        core.poll()

        snapshot = core.client.lookup("a")
        assert snapshot.fetched_at == core.read().fetched_at == START
        assert snapshot.age == pytest.approx(1.5)

    def test_reply_later_than_max_age_is_not_fresh(self, clock: FakeClock) -> None:
        """An answer is as old as its request, so it can come too late to be returned."""
        core = Core(clock, max_age=1.0)
        core.add("a")
        core.dashboard.during = lambda: clock.advance(1.5)
        core.poll()

        assert core.reason() == "stale"

    @pytest.mark.parametrize("status", TERMINAL)
    def test_terminal_one_is_always_fresh_enough(self, clock: FakeClock, status: str) -> None:
        """What has ended is returned at any age, whatever the read demands."""
        core = Core(clock, status)
        core.add("a")
        core.poll()
        clock.advance(500.0)

        tomorrow = clock.now() + timedelta(days=1)
        assert core.read(max_age=0.0, newer_than=tomorrow).status == status
        assert core.client.lookup("a", max_age=0.0).fresh
        assert core.client.lookup("a").retry_after is None

    @pytest.mark.parametrize("status", ["PENDING", "RUNNING", "SUSPENDED", "succeeded"])
    def test_other_statuses_age(self, clock: FakeClock, status: str) -> None:
        """A status that is not terminal, known or not, is stale when it is too old."""
        core = Core(clock, status)
        core.add("a")
        core.poll()
        clock.advance(1.0)

        assert core.read(max_age=1.0).status == status
        assert core.reason(max_age=0.5) == "stale"

    def test_argument_wins_over_the_setting(self, clock: FakeClock) -> None:
        """`max_age` of the read takes the place of the settings', in both directions."""
        core = Core(clock, max_age=10.0)
        core.add("a")
        core.poll()
        clock.advance(20.0)

        assert core.reason() == "stale"
        assert core.read(max_age=20.0).status == "RUNNING"

    def test_without_bound_any_age_will_do(self, clock: FakeClock) -> None:
        """With `max_age=None` in the settings there is no bound."""
        core = Core(clock, max_age=None)
        core.add("a")
        core.poll()
        clock.advance(500.0)

        assert core.read().status == "RUNNING"

    def test_stale_one_is_in_the_error(self, clock: FakeClock) -> None:
        """`TryAgain("stale")` carries the answer that was too old."""
        core = Core(clock)
        core.add("a")
        core.poll()
        clock.advance(1.0)
        with pytest.raises(TryAgain) as raised:
            core.read(max_age=0.5)

        assert raised.value.last_info == make_info()
        assert raised.value.retry_after > 0

    def test_stale_read_brings_the_poll_forward_once(self, clock: FakeClock) -> None:
        """However many reads find an answer too old, one poll is brought forward."""
        core = Core(clock, poll_interval=3.0)
        core.add("a")
        core.poll()
        clock.advance(0.01)
        core.pool.take()

        for _ in range(3):
            assert core.reason(max_age=0.0) == "stale"
        assert core.pool.take() == [(CLUSTER, 0.0)]
        core.poll()
        assert len(core.dashboard.asked) == 2


class TestNewerThan:
    """A read demands an answer to a request sent at some moment or later."""

    def test_answer_since_then_will_do(self, clock: FakeClock) -> None:
        """An answer to a request sent at that very moment is new enough."""
        core = Core(clock)
        core.add("a")
        core.poll()
        clock.advance(1.0)

        assert core.read(newer_than=START).fetched_at == START
        assert core.reason(newer_than=START + timedelta(seconds=0.5)) == "stale"

    def test_answer_is_as_new_as_it_says(self) -> None:
        """An answer is new enough for its own `fetched_at`, though looking at clocks takes time."""
        core = Core(TickingClock())
        core.add("a")
        core.poll()
        info = core.read()

        assert core.read(newer_than=info.fetched_at) is info

    def test_answer_to_an_earlier_request_is_not(self) -> None:
        """An answer is not new enough for a moment after its request was sent."""
        core = Core(TickingClock())
        core.add("a")
        core.poll()
        wanted = core.read().fetched_at + timedelta(milliseconds=1)
        core.clock.advance(1.0)

        assert core.reason(newer_than=wanted) == "stale"

    def test_any_time_zone_will_do(self, clock: FakeClock) -> None:
        """The moment may be in any zone."""
        core = Core(clock)
        core.add("a")
        core.poll()
        zone = timezone(timedelta(hours=9))

        assert core.read(newer_than=START.astimezone(zone)).status == "RUNNING"

    def test_instant_is_taken_at_the_read(self, clock: FakeClock) -> None:
        """A wall clock that jumps between poll and read leaves the distance to now decisive."""
        core = Core(clock)
        core.add("a")
        core.poll()
        clock.advance(2.0)
        clock.jump(-3600.0)

        assert core.reason(newer_than=clock.now() - timedelta(seconds=1)) == "stale"
        assert core.read(newer_than=clock.now() - timedelta(seconds=3)).status == "RUNNING"

    @pytest.mark.parametrize("ahead", [0.5, 2.0, 2.99, 3.5, 100.0])
    def test_one_in_the_future_brings_no_poll_before(self, clock: FakeClock, ahead: float) -> None:
        """Polls keep their rhythm until a future moment that a read demands; then one is due."""
        core = Core(clock, poll_interval=3.0)
        core.add("a")
        core.poll()
        clock.advance(3.0)
        core.poll()
        wanted = clock.now() + timedelta(seconds=ahead)
        core.pool.take()

        assert core.reason(newer_than=wanted) == "stale"
        for _, delay in core.pool.take():
            assert delay == pytest.approx(ahead)
        core.poll()
        assert len(core.dashboard.asked) == 2
        core.poll_for(min(ahead, 3.0) + 0.001)
        assert core.dashboard.asked_at[2] >= 1003.0 + min(ahead, 3.0) - 1e-6

    @pytest.mark.parametrize("value", [datetime(2026, 1, 1), "2026-01-01", 5.0])
    def test_what_is_no_aware_datetime_is_refused(self, clock: FakeClock, value: Any) -> None:
        """A naive datetime, or none, is a ValueError that shows it; nothing is stored."""
        core = Core(clock)
        for read in (core.client.get_job_info, core.client.lookup):
            with pytest.raises(ValueError, match="newer_than is"):
                read("a", newer_than=value)
        assert core.cache.stats().entries == 0

    @pytest.mark.parametrize("value", [-1.0, math.nan, "1"])
    def test_impossible_max_age_is_refused(self, clock: FakeClock, value: Any) -> None:
        """A `max_age` that is negative, nan or no number is a ValueError that shows it."""
        core = Core(clock)
        for read in (core.client.get_job_info, core.client.lookup):
            with pytest.raises(ValueError, match="max_age is"):
                read("a", max_age=value)

    def test_demand_during_a_poll_brings_another(self, clock: FakeClock) -> None:
        """A poll under way since before the moment will not do: the next follows at once."""
        core = Core(clock, poll_interval=3.0)
        core.add("a")
        core.poll()
        clock.advance(3.0)

        def demand() -> None:
            clock.advance(0.2)
            if len(core.dashboard.asked) == 2:
                assert core.reason(newer_than=clock.now()) == "stale"

        core.dashboard.during = demand
        delay = core.poll()
        assert delay is not None
        assert delay <= 0.001
        clock.advance(delay)
        core.poll()
        assert len(core.dashboard.asked) == 3

    def test_poll_under_way_that_will_do_brings_no_other(self, clock: FakeClock) -> None:
        """A poll sent late enough answers the demand: none is added."""
        core = Core(clock, poll_interval=3.0)
        core.add("a")
        core.poll()
        clock.advance(3.0)
        core.pool.take()
        core.dashboard.during = lambda: core.reason(newer_than=clock.now())
        delay = core.poll()

        assert core.pool.take() == []
        assert delay == pytest.approx(3.0)


class TestFailure:
    """The newest outcome is a failure."""

    def test_is_raised_once(self, clock: FakeClock) -> None:
        """A failure that no one was told is raised once; then the read is pending."""
        core = Core(clock, not_found())
        core.add("a")
        core.poll()
        with pytest.raises(JobNotFound) as raised:
            core.read()

        assert (raised.value.job_id, raised.value.status_code) == ("a", 404)
        assert (raised.value.last_info, raised.value.fetched_at) == (None, START)
        assert [core.reason(), core.reason()] == ["pending", "pending"]

    def test_next_failure_is_raised_again(self, clock: FakeClock) -> None:
        """Each poll that fails may be told once, though the failures are alike."""
        core = Core(clock, unavailable(), poll_interval=3.0)
        core.add("a")
        core.poll()
        with pytest.raises(DashboardUnavailable):
            core.read()
        clock.advance(3.0)
        core.poll()

        with pytest.raises(DashboardUnavailable):
            core.read()
        assert core.reason() == "pending"

    def test_answer_after_an_untold_failure_wins(self, clock: FakeClock) -> None:
        """The newest outcome counts: a failure that was followed by an answer is not raised."""
        core = Core(clock, not_found(), "RUNNING", poll_interval=3.0)
        core.add("a")
        core.poll()
        core.poll_for(3.0)

        assert core.read().status == "RUNNING"

    def test_lookup_and_peek_do_not_use_it_up(self, clock: FakeClock) -> None:
        """A snapshot shows the failure, as often as asked, and leaves it to be raised."""
        core = Core(clock, not_found())
        core.add("a")
        core.poll()
        for _ in range(2):
            assert isinstance(core.client.lookup("a").error, JobNotFound)
            peeked = core.client.peek("a")
            assert peeked is not None
            assert isinstance(peeked.error, JobNotFound)

        with pytest.raises(JobNotFound):
            core.read()
        assert isinstance(core.client.lookup("a").error, JobNotFound)

    def test_exceptions_are_fresh(self, clock: FakeClock) -> None:
        """Each snapshot and each raise hands out an exception of its own, with one cause."""
        core = Core(clock, ZeroDivisionError("odd"))
        core.add("a")
        core.poll()
        shown = [core.client.lookup("a").error, core.client.lookup("a").error]
        with pytest.raises(DashboardError) as raised:
            core.read()

        errors = [*shown, raised.value]
        assert len({id(error) for error in errors}) == 3
        assert len({str(error) for error in errors}) == 1
        for error in errors:
            assert error is not None
            assert type(error) is DashboardError
            assert isinstance(error.__cause__, ZeroDivisionError)

    def test_last_good_answer_stays_readable(self, clock: FakeClock) -> None:
        """While polls fail, the last good answer is in the snapshot and in the error."""
        core = Core(clock, "RUNNING", unavailable(), poll_interval=3.0)
        core.add("a")
        core.poll()
        core.poll_for(3.0)
        snapshot = core.client.lookup("a")

        assert snapshot.info == make_info()
        assert (snapshot.fresh, snapshot.known, snapshot.failures) == (False, True, 1)
        assert snapshot.failing_since is not None
        assert snapshot.fetched_at == START
        assert snapshot.age == clock.monotonic() - 1000.0
        with pytest.raises(DashboardUnavailable) as raised:
            core.read()
        assert raised.value.last_info == make_info()
        with pytest.raises(TryAgain) as again:
            core.read()
        assert again.value.last_info == make_info()

    def test_old_one_is_polled_again_instead(self, clock: FakeClock) -> None:
        """An untold failure that is too old is not raised: a poll is brought forward."""
        core = Core(clock, not_found(), poll_interval=3.0)
        core.add("a")
        core.poll()
        clock.advance(2.0)
        with pytest.raises(TryAgain):
            core.read(max_age=1.0)
        assert core.client.lookup("a", max_age=1.0).error is None
        assert core.client.lookup("a").error is not None

        core.poll_for(1.001)
        with pytest.raises(JobNotFound):
            core.read(max_age=1.0)

    def test_read_never_shortens_a_backoff(self, clock: FakeClock) -> None:
        """Demanding reads of a job in backoff bring no request before its end."""
        core = Core(clock, not_found(), poll_interval=3.0)
        core.add("a")
        core.poll()
        core.poll_for(3.0)
        assert len(core.dashboard.asked) == 2
        for _ in range(5):
            clock.advance(1.0)
            with pytest.raises(TryAgain):
                core.read(newer_than=clock.now())
            core.poll()
        assert len(core.dashboard.asked) == 2

        clock.advance(1.0)
        core.poll()
        assert len(core.dashboard.asked) == 3

    def test_read_never_shortens_a_retry_after(self, clock: FakeClock) -> None:
        """What the server named is kept, however demanding the reads of whichever job."""
        core = Core(clock, unavailable(retry_after=40.0), poll_interval=3.0)
        core.add("a")
        core.poll()
        core.pool.take()
        clock.advance(1.0)
        for job_id in ("a", "b"):
            with pytest.raises(TryAgain) as raised:
                core.read(job_id, newer_than=clock.now())
            assert raised.value.retry_after >= 39.0
        core.poll()
        clock.advance(38.9)
        core.poll()
        assert len(core.dashboard.asked) == 1
        clock.advance(0.2)
        core.poll()
        assert len(core.dashboard.asked) == 2


class TestPeek:
    """Looking without reading."""

    def test_registers_nothing(self, clock: FakeClock) -> None:
        """A peek at an unknown job is None, and leaves no trace."""
        core = Core(clock, start=fail_to_start)

        assert core.client.peek("a") is None
        stats = core.cache.stats()
        assert (stats.entries, stats.reads_pending, stats.reads_hit) == (0, 0, 0)
        assert core.pool.take() == []

    def test_shows_what_a_lookup_shows(self, clock: FakeClock) -> None:
        """For a job that is held, a peek is the snapshot that a lookup is."""
        core = Core(clock)
        core.add("a")
        core.poll()

        assert core.client.peek("a") == core.client.lookup("a")

    def test_does_not_renew(self, clock: FakeClock) -> None:
        """Peeking does not keep an entry alive."""
        core = Core(clock, expiry=10.0)
        core.add("a")
        clock.advance(9.0)
        core.client.peek("a")
        clock.advance(1.0)
        core.engine.cleanup.sweep()

        assert core.client.peek("a") is None

    def test_stale_peek_brings_nothing_forward(self, clock: FakeClock) -> None:
        """A peek that finds an old answer says so and has nothing polled."""
        core = Core(clock, max_age=1.0)
        core.add("a")
        core.poll()
        clock.advance(2.0)
        core.pool.take()
        snapshot = core.client.peek("a")

        assert snapshot is not None
        assert not snapshot.fresh
        assert core.pool.take() == []


class TestCounting:
    """Each read is one of a hit, pending, stale or failed."""

    def test_reads_are_counted_by_what_they_found(self, clock: FakeClock) -> None:
        """Hits, pending, stale and failed reads add up."""
        core = Core(clock, "RUNNING", not_found(), poll_interval=3.0)
        core.reason()
        core.poll()
        core.read()
        core.client.lookup("a")
        clock.advance(1.0)
        core.reason(max_age=0.5)
        clock.advance(2.0)
        core.poll()
        with pytest.raises(JobNotFound):
            core.read()
        core.reason()

        stats = core.cache.stats()
        counted = (stats.reads_hit, stats.reads_pending, stats.reads_stale, stats.reads_failed)
        assert counted == (2, 2, 1, 1)

    @pytest.mark.parametrize("job_id", ["", ".", "..", "x" * 1025, "a\nb", "\x7f", 5])
    def test_impossible_id_is_refused(self, clock: FakeClock, job_id: Any) -> None:
        """No read takes an id that can be no job's, and none of them is counted or stored."""
        core = Core(clock)
        client = core.client
        for read in (client.get_job_info, client.lookup, client.peek, client.forget):
            with pytest.raises(InvalidJobId):
                read(job_id)
        stats = core.cache.stats()
        assert (stats.entries, stats.reads_hit, stats.reads_pending) == (0, 0, 0)


class TestClosed:
    """After close."""

    def test_every_read_is_refused(self, clock: FakeClock) -> None:
        """All reads raise CacheClosed, of what was known too; forget does nothing."""
        core = Core(clock)
        core.add("a")
        core.poll()
        core.cache.close()

        for read in (core.client.get_job_info, core.client.lookup, core.client.peek):
            for job_id in ("a", "b"):
                with pytest.raises(CacheClosed):
                    read(job_id)
        core.client.forget("a")
        core.cache.forget("ns", "one")
        assert core.cache.stats().forgotten == 0


def test_clusters_and_incarnations_share_nothing(clock: FakeClock) -> None:
    """The same job id in another cluster, or another uid of the cluster, is another job."""
    core = Core(clock, "SUCCEEDED")
    core.add("a")
    core.poll()
    for cluster in (Cluster("ns", "one", "uid-2"), Cluster("ns", "two", "uid-1")):
        client = core.cache.client(core.dashboard.client, cluster)
        with pytest.raises(TryAgain):
            client.get_job_info("a")
