"""Tests of entries: capacity, removals, late replies, changes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jobinfo_cache import Cluster, JobInfo, JobNotFound, JobStatus, TryAgain, store
from jobinfo_cache.testing import FakeClock
from tests.support import CLUSTER, Core, ScriptedDashboard, make_info, not_found, unavailable

Act = Callable[[Core], object]

WRITES: dict[str, Act] = {
    "forget": lambda core: core.client.forget("a"),
    "forget_by_name": lambda core: core.cache.forget("ns", "one", "a"),
    "forget_cluster": lambda core: core.cache.forget("ns", "one"),
    "stop": lambda core: core.client.stop_job("a"),
    "delete": lambda core: core.client.delete_job("a"),
    "submit": lambda core: core.client.submit_job("true", submission_id="a"),
}


def read_or_wait(core: Core, job_id: str) -> JobInfo | None:
    try:
        return core.read(job_id)
    except TryAgain:
        return None


class TestCapacity:
    """No more than `cache_size` entries."""

    def test_least_recently_read_goes(self, clock: FakeClock) -> None:
        """A new job takes the place of one that was read less recently than the others."""
        core = Core(clock, cache_size=3)
        core.add("a", "b", "c")
        core.poll()
        for job_id in ("a", "b", "c"):
            core.read(job_id)
        core.add("d")
        kept, goes = sorted(core.state.entries)[:2]
        core.read(kept)
        core.add("e")

        assert sorted(core.state.entries) == [kept, "d", "e"]
        assert goes not in core.state.entries
        stats = core.cache.stats()
        assert (stats.evicted, stats.entries, stats.capacity_exceeded) == (2, 3, True)

    def test_polling_is_no_reading(self, clock: FakeClock) -> None:
        """Being polled does not make an entry recent; one told again after the poll goes."""
        core = Core(clock, "SUCCEEDED", cache_size=2)
        core.dashboard.script("a", "RUNNING")
        core.add("a", "b")
        core.poll()
        for job_id in ("a", "b"):
            core.read(job_id)
        core.add("c")

        assert sorted(core.state.entries) == ["b", "c"]

    def test_untold_outcome_is_kept(self, clock: FakeClock) -> None:
        """An entry whose newest outcome no one has seen yet is not evicted, but others are."""
        core = Core(clock, cache_size=2)
        core.add("a", "b")
        core.poll()
        clock.advance(29.9)
        core.read("b")
        core.add("c")

        assert sorted(core.state.entries) == ["a", "c"]

    def test_untold_outcome_that_nobody_comes_for_goes(self, clock: FakeClock) -> None:
        """Ten intervals after its last read an entry makes room whatever its outcome."""
        core = Core(clock, cache_size=1)
        core.add("a")
        core.poll_for(29.9)
        core.add("b")
        assert sorted(core.state.entries) == ["a"]
        core.poll_for(0.1)
        core.add("b")

        assert sorted(core.state.entries) == ["b"]

    def test_entry_without_an_outcome_is_kept(self, clock: FakeClock) -> None:
        """A job that was never asked about, for its dashboard's backoff, waits for that."""
        core = Core(clock, unavailable(retry_after=60.0), cache_size=2)
        core.add("a")
        core.poll()
        core.add("b")
        clock.advance(50.0)
        core.add("c")

        assert sorted(core.state.entries) == ["b", "c"]
        assert core.reason("d") == "pending"
        assert sorted(core.state.entries) == ["b", "c"]

    def test_untold_failure_is_kept(self, clock: FakeClock) -> None:
        """That holds for a failure too; once it was raised, its entry may go."""
        core = Core(clock, not_found(), cache_size=1)
        core.add("a")
        core.poll()
        core.add("b")
        assert sorted(core.state.entries) == ["a"]
        with pytest.raises(JobNotFound):
            core.read("a")
        core.add("b")

        assert sorted(core.state.entries) == ["b"]

    @pytest.mark.parametrize("how", ["get", "lookup"])
    def test_placeholders_are_not_evicted(self, clock: FakeClock, how: str) -> None:
        """If there are only placeholders the new job is refused, and told when to come back."""
        core = Core(clock, cache_size=2, poll_interval=3.0)
        for job_id in ("a", "b"):
            read_or_wait(core, job_id)
        core.pool.take()
        if how == "get":
            with pytest.raises(TryAgain) as raised:
                core.read("c")
            assert (raised.value.reason, raised.value.retry_after) == ("pending", 3.0)
        else:
            assert core.client.lookup("c").retry_after == 3.0

        assert sorted(core.state.entries) == ["a", "b"]
        stats = core.cache.stats()
        assert (stats.evicted, stats.capacity_exceeded, stats.reads_pending) == (0, True, 3)
        core.poll()
        assert core.dashboard.asked == ["a", "b"]

    def test_placeholder_that_was_looked_up_is_not_evicted(self, clock: FakeClock) -> None:
        """A lookup that found nothing has handed out no outcome."""
        core = Core(clock, cache_size=2)
        core.add("a", "b", "c")

        assert sorted(core.state.entries) == ["a", "b"]

    def test_room_is_made_even_if_all_were_read(self, clock: FakeClock) -> None:
        """If all entries were read since the last eviction, the least recently read still goes."""
        core = Core(clock, cache_size=2)
        core.add("a", "b")
        core.poll()
        for job_id in ("a", "b"):
            core.read(job_id)
        core.add("c")

        assert len(core.state.entries) == 2
        assert "c" in core.state.entries
        assert core.cache.stats().evicted == 1

    @pytest.mark.parametrize("status", ["RUNNING", "SUCCEEDED"])
    def test_everyone_gets_answers_in_turn(self, clock: FakeClock, status: str) -> None:
        """With more jobs than places, each of them gets answers again and again."""
        core = Core(clock, status, cache_size=3, poll_interval=3.0)
        answers = dict.fromkeys("abcdef", 0)
        for _ in range(60):
            for job_id in answers:
                answers[job_id] += read_or_wait(core, job_id) is not None
            core.poll()
            clock.advance(1.0)

        assert min(answers.values()) >= 3, answers
        assert core.cache.stats().entries <= 3

    def test_eviction_of_what_has_ended_exceeds_nothing(self, clock: FakeClock) -> None:
        """A terminal entry that makes room is no sign of a working set that is too large."""
        core = Core(clock, "SUCCEEDED", cache_size=1)
        core.add("a")
        core.poll()
        core.read("a")
        core.add("b")

        stats = core.cache.stats()
        assert (stats.evicted, stats.capacity_exceeded) == (1, False)

    def test_excess_ends_after_expiry(self, clock: FakeClock) -> None:
        """`capacity_exceeded` lasts until nothing was refused or evicted for `expiry`."""
        core = Core(clock, cache_size=1, expiry=100.0)
        core.add("a", "b")
        clock.advance(99.0)
        assert core.cache.stats().capacity_exceeded
        clock.advance(1.0)

        assert not core.cache.stats().capacity_exceeded

    def test_excess_is_said_once(self, clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
        """While it lasts, one warning says that the cache is full; the next time, another."""
        core = Core(clock, cache_size=1, expiry=100.0)
        core.add("a", "b", "c")
        core.poll()
        core.add("d")
        core.poll()
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        clock.advance(200.0)
        core.add("a", "b")
        core.poll()

        assert sum("full" in record.getMessage() for record in caplog.records) == 2

    def test_excess_is_said_though_no_job_is_polled(
        self, clock: FakeClock, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A refusal among jobs that have all ended has a worker come to say so, once."""
        core = Core(clock, "SUCCEEDED", cache_size=2)
        core.add("a", "b")
        assert core.poll() is None
        core.pool.take()
        core.add("c")
        assert core.pool.take() == [(CLUSTER, 0.0)]
        core.poll()
        core.add("c")

        assert ["full" in record.getMessage() for record in caplog.records] == [True]
        assert core.pool.take() == []

    def test_new_job_waits_for_the_round_while_capacity_is_exceeded(self, clock: FakeClock) -> None:
        """Beyond capacity a new job is not asked about before its cluster's next round."""
        core = Core(clock, cache_size=2, poll_interval=3.0)
        core.add("a", "b")
        core.poll_for(4.0)
        clock.advance(core.poll() or 0.0)
        assert core.poll() == pytest.approx(3.0)
        core.read("a")
        clock.advance(1.0)
        assert core.reason("c") == "pending"

        assert sorted(core.state.entries) == ["b", "c"]
        assert core.poll() == pytest.approx(2.0)
        assert "c" not in core.dashboard.asked
        clock.advance(2.0)
        core.poll()
        assert "c" in core.dashboard.asked

    def test_new_job_of_an_idle_cluster_is_polled_though_capacity_is_exceeded(
        self, clock: FakeClock
    ) -> None:
        """A cluster that was not asked for an interval has no round to wait for: a new job is
        asked about at once."""
        core = Core(clock, "SUCCEEDED", cache_size=2)
        core.add("a")
        core.poll()
        core.read("a")
        other = core.cache.client(core.dashboard.client, Cluster("ns", "other", "uid"))
        for job_id in ("x", "y", "z"):
            other.lookup(job_id)
        assert core.cache.stats().capacity_exceeded
        core.cache.forget("ns", "other")
        clock.advance(3.0)
        with pytest.raises(TryAgain) as raised:
            core.read("b")

        assert raised.value.retry_after < 1.0
        core.poll()
        assert core.read("b").status == "SUCCEEDED"

    def test_jobs_that_have_ended_are_asked_about_once_an_interval(self, clock: FakeClock) -> None:
        """Beyond capacity the return of one waits as that of a live job does."""
        core = Core(clock, "SUCCEEDED", cache_size=2)
        core.add("a", "b", "c")
        clock.advance(1.0)
        core.poll()
        for job_id in ("a", "b"):
            core.read(job_id)
        core.add("c", "a", "b")
        core.poll()
        assert core.dashboard.asked == ["a", "b"]
        core.poll_for(3.0)

        assert core.dashboard.asked == ["a", "b", "c", "a"]
        assert core.dashboard.asked_at == [1001.0, 1001.0, 1004.0, 1004.0]

    def test_new_job_waits_for_no_backoff_of_another(self, clock: FakeClock) -> None:
        """The cluster's next round may be a minute away: a new job waits for an interval."""
        core = Core(clock, cache_size=2, poll_interval=3.0)
        core.dashboard.script("a", not_found())
        core.add("a", "b", "c")
        core.client.forget("b")
        core.client.forget("c")
        core.poll_for(100.0)
        clock.advance(1.0)
        assert core.state.next_due - clock.monotonic() > 30.0
        with pytest.raises(TryAgain) as raised:
            core.read("d")

        assert raised.value.retry_after < 3.2
        core.poll_for(3.0)
        assert core.dashboard.asked[-1] == "d"


class TestWaiting:
    """Jobs that were refused get a place in turn, whoever reads."""

    def test_place_goes_to_the_one_refused_first(self, clock: FakeClock) -> None:
        """A read that makes room gives the place to the job that has waited longest."""
        core = Core(clock, cache_size=1)
        core.add("a", "b", "c")
        core.poll()
        core.read("a")
        core.add("c")
        assert sorted(core.state.entries) == ["b"]
        core.poll_for(3.0)
        core.read("b")
        core.add("d")

        assert sorted(core.state.entries) == ["c"]

    def test_new_job_waits_behind_the_others(self, clock: FakeClock) -> None:
        """A job that is new does not take a free place that others wait for."""
        core = Core(clock, cache_size=1)
        core.add("a", "b")
        core.client.forget("a")
        core.add("c")

        assert sorted(core.state.entries) == ["b"]

    def test_one_read_fills_all_free_places(self, clock: FakeClock) -> None:
        """Places that have become free go to as many jobs as wait, at the next read of one."""
        core = Core(clock, cache_size=3)
        core.add("a", "b", "c", "d", "e", "f")
        for job_id in ("a", "b", "c"):
            core.client.forget(job_id)
        core.add("f")

        assert sorted(core.state.entries) == ["d", "e", "f"]

    def test_no_read_takes_long(self, clock: FakeClock) -> None:
        """However many wait and however many places are free, a read places some, and its own."""
        core = Core(clock, cache_size=100)
        core.add(*map(str, range(200)))
        for number in range(100):
            core.client.forget(str(number))
        core.add("new")

        assert len(core.state.entries) == store._MOST_TURNS + 1
        assert "new" in core.state.entries

    def test_place_of_another_cluster_is_polled(self, clock: FakeClock) -> None:
        """The cluster of the job that gets the place is visited, whatever cluster was read."""
        core = Core(clock, cache_size=1)
        other = core.cache.client(ScriptedDashboard(clock).client, Cluster("ns", "two"))
        core.add("a")
        other.lookup("x")
        core.poll()
        core.read("a")
        core.pool.take()
        core.add("b")

        assert [entry.job_id for entry in core.store.entries()] == ["x"]
        assert core.pool.take() == [(other.cluster, 0.0)]

    @pytest.mark.parametrize("outcome", ["RUNNING", not_found()], ids=["answer", "failure"])
    def test_due_job_gives_way(self, clock: FakeClock, outcome: str | JobNotFound) -> None:
        """A job whose outcome was handed out is not polled again while another waits: it goes."""
        core = Core(clock, outcome, cache_size=1)
        core.add("a")
        core.poll()
        core.add("b")
        core.client.lookup("a")
        core.poll_for(4.0)
        assert (core.dashboard.asked, core.cache.stats().evicted) == (["a"], 1)
        assert core.cache.stats().capacity_exceeded
        core.add("a")

        assert sorted(core.state.entries) == ["b"]

    def test_due_job_whose_outcome_no_one_has_seen_stays(self, clock: FakeClock) -> None:
        """It is polled again though another waits."""
        core = Core(clock, cache_size=1)
        core.add("a", "b")
        clock.advance(core.poll() or 0.0)
        core.poll()

        assert core.cache.stats().evicted == 0
        assert core.dashboard.asked == ["a", "a"]

    def test_no_more_give_way_than_wait(self, clock: FakeClock) -> None:
        """As many jobs give way as others wait for a place, less the places that are free."""
        core = Core(clock, cache_size=4)
        core.add("a", "b", "c", "d", "e", "f")
        delay = core.poll()
        core.client.forget("d")
        for job_id in ("a", "b", "c"):
            core.read(job_id)
        clock.advance(delay or 0.0)
        core.poll()

        assert core.cache.stats().evicted == 1
        assert len(core.dashboard.asked) == 4 + 2

    @pytest.mark.parametrize("name", sorted(WRITES.keys() - {"stop"}))
    def test_forgotten_job_waits_no_more(self, clock: FakeClock, name: str) -> None:
        """What is forgotten, deleted or submitted anew gets no place before it is read again."""
        core = Core(clock, cache_size=1)
        core.add("b", "a")
        WRITES[name](core)
        core.client.forget("b")
        core.add("c")

        assert sorted(core.state.entries) == ["c"]

    def test_forgetting_another_changes_nothing(self, clock: FakeClock) -> None:
        """A job goes on waiting when another job, or its namesake elsewhere, is forgotten."""
        core = Core(clock, cache_size=1)
        other = core.cache.client(core.dashboard.client, Cluster("ns", "other", "uid"))
        core.add("b", "a")
        other.forget("a")
        core.cache.forget("ns", "other")
        core.client.forget("b")
        core.add("c")

        assert sorted(core.state.entries) == ["a"]

    def test_job_whose_cluster_nobody_knows_is_passed_over(self, clock: FakeClock) -> None:
        """Once the last client of its cluster is gone, a job is not read any more."""
        core = Core(clock, cache_size=1)
        core.add("a")
        core.cache.client(core.dashboard.client, Cluster("ns", "gone")).lookup("x")
        core.client.forget("a")
        core.add("b")

        assert sorted(core.state.entries) == ["b"]

    def test_job_that_was_not_read_for_long_is_passed_over(self, clock: FakeClock) -> None:
        """A reader that has not come back for ten intervals gets no place."""
        core = Core(clock, cache_size=1)
        core.add("a", "b")
        clock.advance(15.0)
        core.add("c")
        clock.advance(15.0)
        core.client.forget("a")
        core.add("d")

        assert sorted(core.state.entries) == ["c"]

    def test_no_job_is_refused_while_a_place_is_free(self, clock: FakeClock) -> None:
        """A new job gets it, however many wait that nobody reads any more."""
        core = Core(clock, cache_size=1)
        core.add("a", *map(str, range(2 * store._MOST_TURNS)))
        clock.advance(30.0)
        core.client.forget("a")
        core.add("new")

        assert sorted(core.state.entries) == ["new"]

    def test_readers_are_answered_soon_after_a_burst_of_single_reads(
        self, clock: FakeClock
    ) -> None:
        """Jobs that were read once hold and await places for ten intervals, not for `expiry`."""
        core = Core(clock, cache_size=10)
        steady = [f"steady-{number}" for number in range(8)]

        def rounds(number: int) -> list[int]:
            """How many of the steady readers get an answer in each."""
            answered = []
            for _ in range(number):
                answered.append(sum(read_or_wait(core, job) is not None for job in steady))
                core.poll_for(3.0)
            return answered

        assert rounds(3)[1:] == [8, 8]
        core.add(*(f"once-{number}" for number in range(30)))
        rounds(11)
        assert rounds(20) == [8] * 20

    def test_place_expires_after_the_read(self, clock: FakeClock) -> None:
        """Its entry goes `expiry` after the job was read, not after it got its place."""
        core = Core(clock, cache_size=1, expiry=100.0)
        core.add("a", "b")
        clock.advance(20.0)
        core.client.forget("a")
        core.add("c")
        assert sorted(core.state.entries) == ["b"]
        clock.advance(80.0)
        core.engine.cleanup.sweep()

        assert core.state.entries == {}

    @pytest.mark.parametrize("end", ["excess", "close"])
    def test_nobody_waits_after(self, clock: FakeClock, end: str) -> None:
        """When the capacity is not exceeded any more, and after `close`, no job is remembered."""
        core = Core(clock, cache_size=1, expiry=100.0)
        core.add("a", "b")
        assert len(core.store._waiting) == 1
        if end == "close":
            core.store.close()
        else:
            clock.advance(100.0)
            core.engine.cleanup.sweep()

        assert len(core.store._waiting) == 0


class TestExpiry:
    """What nobody reads is dropped by the cleanup."""

    @pytest.mark.parametrize("status", ["RUNNING", "SUCCEEDED"])
    def test_unread_entry_is_dropped(self, clock: FakeClock, status: str) -> None:
        """An entry goes `expiry` after its last read, live or not, and is polled no more."""
        core = Core(clock, status, expiry=100.0)
        core.add("a")
        core.poll()
        core.poll_for(50.0)
        core.read()
        core.poll_for(99.9)
        core.engine.cleanup.sweep()
        assert "a" in core.state.entries
        clock.advance(0.2)
        core.engine.cleanup.sweep()

        assert core.state.entries == {}
        assert core.cache.stats().expired == 1
        asked = len(core.dashboard.asked)
        assert core.poll() is None
        assert len(core.dashboard.asked) == asked

    def test_terminal_entry_lives_from_its_end(self, clock: FakeClock) -> None:
        """A job that ends after its last read stays for `expiry` from then."""
        core = Core(clock, "RUNNING", expiry=100.0)
        core.add("a")
        core.poll_for(90.0)
        core.dashboard.script(None, "SUCCEEDED")
        core.poll_for(5.0)
        clock.advance(core.dashboard.asked_at[-1] + 99.9 - clock.monotonic())
        core.engine.cleanup.sweep()
        assert "a" in core.state.entries
        clock.advance(0.2)
        core.engine.cleanup.sweep()

        assert core.state.entries == {}

    def test_unread_placeholder_is_dropped(self, clock: FakeClock) -> None:
        """A job that never had an outcome goes as well."""
        core = Core(clock, expiry=100.0)
        core.add("a")
        clock.advance(100.0)
        core.engine.cleanup.sweep()

        assert core.cache.stats().entries == 0

    def test_failing_entry_is_dropped(self, clock: FakeClock) -> None:
        """A job of a dead dashboard goes as well when nobody reads it."""
        core = Core(clock, unavailable(), expiry=100.0)
        core.add("a")
        core.poll_for(100.0)
        core.engine.cleanup.sweep()

        assert core.cache.stats().entries == 0


class TestLateReplies:
    """A reply to a request that was sent before the job was written, or forgotten."""

    @pytest.mark.parametrize("act", WRITES.values(), ids=WRITES)
    @pytest.mark.parametrize("outcome", ["SUCCEEDED", not_found()], ids=["answer", "failure"])
    def test_is_dropped(self, clock: FakeClock, act: Act, outcome: str | JobNotFound) -> None:
        """It is not stored; the next poll's outcome is."""
        core = Core(clock, outcome, "RUNNING")
        core.add("a")

        def write_and_read() -> None:
            act(core)
            core.add("a")

        core.dashboard.during = write_and_read
        core.poll()
        core.dashboard.during = lambda: None

        assert core.reason() == "pending"
        assert core.cache.stats().stale_replies_dropped == 1
        assert core.changes == []
        core.poll()
        assert core.read().status == "RUNNING"

    @pytest.mark.parametrize("act", WRITES.values(), ids=WRITES)
    def test_is_dropped_when_nobody_reads(self, clock: FakeClock, act: Act) -> None:
        """It is not stored if nobody has read the job since, either."""
        core = Core(clock, "SUCCEEDED", "RUNNING")
        core.add("a")
        core.dashboard.during = lambda: act(core)
        core.poll()

        peeked = core.client.peek("a")
        assert peeked is None or peeked.info is None
        assert core.cache.stats().stale_replies_dropped == 1

    @pytest.mark.parametrize("act", WRITES.values(), ids=WRITES)
    def test_under_the_other_id_is_dropped(self, clock: FakeClock, act: Act) -> None:
        """Ray knows a submission by two ids: a write by one outdates replies by the other."""
        known = make_info("SUCCEEDED", submission_id="a", job_id="0300")
        core = Core(clock, known)
        core.add("0300")
        core.dashboard.during = lambda: act(core)
        core.poll()

        assert core.cache.stats().stale_replies_dropped == 1
        assert core.changes == []

    def test_of_another_job_is_stored(self, clock: FakeClock) -> None:
        """A write outdates no other job's reply."""
        core = Core(clock, "SUCCEEDED")
        core.add("b")
        core.dashboard.during = lambda: [act(core) for act in list(WRITES.values())[3:]]
        core.poll()

        assert core.read("b").status == "SUCCEEDED"
        assert core.cache.stats().stale_replies_dropped == 0

    def test_after_eviction_is_dropped(self, clock: FakeClock) -> None:
        """A reply for an entry that was evicted meanwhile goes to none that came after it."""
        core = Core(clock, "RUNNING", cache_size=1, poll_interval=3.0)
        core.add("a")
        core.poll()
        core.read("a")
        clock.advance(3.0)
        core.dashboard.during = lambda: core.add("b")
        core.poll()

        assert sorted(core.state.entries) == ["b"]
        stats = core.cache.stats()
        assert (stats.evicted, stats.stale_replies_dropped) == (1, 1)

    def test_after_close_is_dropped(self, clock: FakeClock) -> None:
        """A reply that comes after close is stored nowhere and told to nobody."""
        core = Core(clock, "SUCCEEDED")
        core.add("a")
        core.dashboard.during = core.cache.close
        core.poll()

        assert core.changes == []
        assert core.cache.stats().polls_failed["internal"] == 0

    def test_poll_of_a_forgotten_job_is_not_repeated(self, clock: FakeClock) -> None:
        """Forgetting a job while it is polled ends its polling, and there is nothing to do."""
        core = Core(clock)
        core.add("a")
        core.dashboard.during = lambda: core.client.forget("a")

        assert core.poll() is None
        assert core.dashboard.asked == ["a"]


class TestWrites:
    """What stop, delete, submit and forget do to an entry."""

    def test_stop_makes_a_live_answer_stale(self, clock: FakeClock) -> None:
        """After a stop the old answer is not fresh; the job is asked about at once."""
        core = Core(clock, "RUNNING", "STOPPED")
        core.add("a")
        core.poll()
        core.read()
        core.client.stop_job("a")

        assert core.reason() == "stale"
        peeked = core.client.peek("a")
        assert peeked is not None
        assert peeked.info == make_info("RUNNING")
        core.poll()
        assert core.read().status == JobStatus.STOPPED
        assert [change.new and change.new.status for change in core.changes] == [
            "RUNNING",
            "STOPPED",
        ]

    @pytest.mark.parametrize("status", ["STOPPED", "SUCCEEDED", "FAILED"])
    def test_stop_leaves_what_has_ended(self, clock: FakeClock, status: str) -> None:
        """A terminal entry is as it was after a stop, and not polled again."""
        core = Core(clock, status, "RUNNING")
        core.add("a")
        core.poll()
        core.client.stop_job("a")
        core.poll()

        assert core.read().status == status
        assert core.dashboard.asked == ["a"]

    @pytest.mark.parametrize("act", ["delete", "submit", "forget"])
    def test_others_drop_what_has_ended(self, clock: FakeClock, act: str) -> None:
        """After delete, submit and forget even a terminal answer is gone."""
        core = Core(clock, "SUCCEEDED", "PENDING")
        core.add("a")
        core.poll()
        WRITES[act](core)

        assert core.client.peek("a") is None
        assert core.reason() == "pending"
        core.poll()
        assert core.read().status == JobStatus.PENDING

    def test_delete_drops_both_ids(self, clock: FakeClock) -> None:
        """A job that is held under both of its ids is gone under both."""
        core = Core(clock, make_info("SUCCEEDED", submission_id="a", job_id="0300"))
        core.add("a", "0300")
        core.poll()
        core.client.delete_job("0300")

        assert core.state.entries == {}

    def test_recovery_after_a_stop_is_told(self, clock: FakeClock) -> None:
        """A job that failed when it was stopped recovers with the next answer."""
        core = Core(clock, "RUNNING", not_found(), "RUNNING", poll_interval=3.0)
        core.add("a")
        core.poll()
        core.poll_for(3.0)
        core.client.stop_job("a")
        core.poll()

        told = [(change.new and change.new.status, change.error) for change in core.changes]
        assert told == [("RUNNING", None), ("RUNNING", core.changes[1].error), ("RUNNING", None)]
        assert core.client.lookup("a").failures == 0

    def test_failure_that_goes_on_after_a_stop_is_told_once(self, clock: FakeClock) -> None:
        """A stop does not make the same failure a new one."""
        core = Core(clock, "RUNNING", not_found(), poll_interval=3.0)
        core.add("a")
        core.poll()
        core.poll_for(3.0)
        core.client.stop_job("a")
        core.poll()

        assert [change.error is None for change in core.changes] == [True, False]


class TestChanges:
    """What `on_change` is told."""

    def test_first_status(self, clock: FakeClock) -> None:
        """The first status is a change, from nothing."""
        core = Core(clock, "PENDING")
        core.add("a")
        core.poll()

        [change] = core.changes
        assert (change.cluster, change.job_id) == (CLUSTER, "a")
        assert (change.old, change.new, change.error) == (None, make_info("PENDING"), None)

    def test_only_a_new_status_is_one(self, clock: FakeClock) -> None:
        """An answer with the same status, though otherwise different, is none."""
        core = Core(clock, "PENDING", make_info("PENDING", message="m"), "RUNNING")
        core.add("a")
        core.poll_for(30.0)

        assert [change.new and change.new.status for change in core.changes] == [
            "PENDING",
            "RUNNING",
        ]
        assert core.changes[1].old is not None
        assert core.changes[1].old.message == "m"

    def test_failing_is_told_at_its_start_and_when_its_kind_changes(self, clock: FakeClock) -> None:
        """A failure of the same kind again is no change; `new` stays the last good answer."""
        core = Core(
            clock, "RUNNING", unavailable(), unavailable(), not_found(), not_found(), "RUNNING"
        )
        core.add("a")
        core.poll_for(600.0)

        kinds = [change.error and change.error.kind for change in core.changes]
        assert kinds == [None, "unavailable", "not_found", None]
        assert all(change.new and change.new.status == "RUNNING" for change in core.changes)
        error = core.changes[1].error
        assert error is not None
        assert error.last_info == core.changes[1].new

    def test_recovery_with_a_new_status_is_one_call(self, clock: FakeClock) -> None:
        """A recovery that brings another status is told once."""
        core = Core(clock, "RUNNING", unavailable(), "SUCCEEDED")
        core.add("a")
        core.poll_for(60.0)

        last = core.changes[-1]
        assert len(core.changes) == 3
        assert last.old is not None
        assert last.new is not None
        assert (last.old.status, last.new.status, last.error) == ("RUNNING", "SUCCEEDED", None)

    def test_failure_of_what_was_never_known(self, clock: FakeClock) -> None:
        """A first outcome that is a failure is told, with neither old nor new."""
        core = Core(clock, not_found())
        core.add("a")
        core.poll()

        [change] = core.changes
        assert (change.old, change.new) == (None, None)
        assert isinstance(change.error, JobNotFound)

    def test_outage_is_told_for_each_job(self, clock: FakeClock) -> None:
        """A dashboard that fails is a change of all its jobs that were due."""
        core = Core(clock, unavailable())
        core.add("a", "b", "c")
        core.poll()

        assert sorted(change.job_id for change in core.changes) == ["a", "b", "c"]
        assert core.dashboard.asked == ["a"]


def test_size_is_that_of_all_clusters(clock: FakeClock) -> None:
    """The capacity is one for all clusters together."""
    core = Core(clock, cache_size=2)
    core.add("a")
    core.poll()
    core.read("a")
    other = core.cache.client(ScriptedDashboard(clock).client, Cluster("ns", "two"))
    other.lookup("x")
    other.lookup("y")

    stats = core.cache.stats()
    assert (stats.entries, stats.evicted) == (2, 1)
    assert core.state.entries == {}
