"""The orders of events that lead a cache astray, each made to happen with real threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from jobinfo_cache import JobChange, JobInfo, JobInfoCache, Settings, TryAgain
from jobinfo_cache.testing import FakeClock, settle
from tests.threads.support import CLUSTER, TIMEOUT, HeldDashboard, together


class Bench:
    """A cache with real threads on a fake clock, and a dashboard that waits for the test."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.changes: list[JobChange] = []
        self.on_change = self.changes.append
        settings = Settings(jitter=0.0, batching=False, workers=2)
        self.cache = JobInfoCache(
            settings, clock=clock, on_change=lambda change: self.on_change(change)
        )
        self.dashboard = HeldDashboard(clock)
        self.client = self.cache.client(self.dashboard.client, CLUSTER)

    def first_read(self) -> None:
        with pytest.raises(TryAgain):
            self.client.get_job_info("a")

    def known_as(self, status: str) -> None:
        """Have the job read and answered for."""
        self.first_read()
        self.dashboard.next_request().answer(status)
        settle(self.cache)


@pytest.fixture
def bench(clock: FakeClock) -> Iterator[Bench]:
    bench = Bench(clock)
    yield bench
    bench.dashboard.answers = "RUNNING"
    assert bench.cache.close(TIMEOUT)


def test_stop_between_send_and_reply_drops_the_late_reply(bench: Bench) -> None:
    """What was asked before a stop returned is not shown after it, and the job is asked anew."""
    bench.first_read()
    late = bench.dashboard.next_request()
    bench.client.stop_job("a")
    late.answer("RUNNING")
    second = bench.dashboard.next_request()

    assert not bench.client.lookup("a").known
    second.answer("STOPPED")
    settle(bench.cache)
    assert bench.client.get_job_info("a").status == "STOPPED"
    assert [change.new and change.new.status for change in bench.changes] == ["STOPPED"]


def test_forget_and_read_between_send_and_reply_drops_the_late_reply(bench: Bench) -> None:
    """A forgotten entry that was made anew does not get the reply of the old one."""
    bench.first_read()
    late = bench.dashboard.next_request()
    bench.client.forget("a")
    bench.first_read()
    late.answer("SUCCEEDED")
    second = bench.dashboard.next_request()

    assert not bench.client.lookup("a").known
    second.answer("PENDING")
    settle(bench.cache)
    assert bench.client.get_job_info("a").status == "PENDING"
    assert bench.dashboard.most_at_once == 1


def test_delete_between_send_and_reply_leaves_no_entry(bench: Bench) -> None:
    """The reply that comes after a delete does not bring the entry back."""
    bench.known_as("RUNNING")
    bench.clock.advance(3.0)
    late = bench.dashboard.next_request()
    bench.client.delete_job("a")
    late.answer("SUCCEEDED")
    settle(bench.cache)

    assert bench.client.peek("a") is None
    assert bench.cache.stats().stale_replies_dropped == 1


def test_submit_between_send_and_reply_drops_the_old_job(bench: Bench) -> None:
    """A new job under an old id does not get the old job's end."""
    bench.known_as("RUNNING")
    bench.clock.advance(3.0)
    late = bench.dashboard.next_request()
    bench.client.submit_job("true", submission_id="a")
    bench.first_read()
    late.answer("FAILED")
    bench.dashboard.next_request().answer("PENDING")
    settle(bench.cache)

    assert bench.client.get_job_info("a").status == "PENDING"


def test_a_poll_sent_while_stop_is_under_way_is_dropped(bench: Bench) -> None:
    """A poll that began during the stop may have been answered before it: it does not count."""
    bench.known_as("RUNNING")
    held = []

    def poll_meanwhile() -> None:
        bench.clock.advance(3.0)
        held.append(bench.dashboard.next_request())

    bench.dashboard.during_stop = poll_meanwhile
    bench.client.stop_job("a")
    held[0].answer("RUNNING")
    second = bench.dashboard.next_request()

    with pytest.raises(TryAgain, match="too old"):
        bench.client.get_job_info("a")
    second.answer("STOPPED")
    settle(bench.cache)
    assert bench.client.get_job_info("a").status == "STOPPED"


def test_expiry_between_send_and_reply_leaves_no_entry(bench: Bench) -> None:
    """The reply for an entry that expired meanwhile does not bring it back, nor its polling."""
    bench.first_read()
    late = bench.dashboard.next_request()
    bench.clock.advance(601.0)
    bench.cache._engine.cleanup.sweep()
    late.answer("RUNNING")
    settle(bench.cache)
    bench.clock.advance(60.0)
    settle(bench.cache)

    assert bench.cache.stats().entries == 0
    assert len(bench.dashboard.asked) == 1


def test_close_between_send_and_reply_stores_and_says_nothing(bench: Bench) -> None:
    """The outcome of a request that `close` cuts off is nobody's failure."""
    bench.first_read()
    bench.dashboard.next_request()

    assert bench.cache.close(TIMEOUT)
    assert bench.changes == []
    assert sum(bench.cache.stats().polls_failed.values()) == 0
    assert bench.cache.stats().entries == 0


def test_replacing_the_client_between_send_and_reply_polls_the_new_one_next(bench: Bench) -> None:
    """A poll under way is finished on the old dashboard client, the next one uses the new."""
    bench.first_read()
    late = bench.dashboard.next_request()
    second = HeldDashboard(bench.clock, answers="RUNNING")
    second.url = "http://127.0.0.1:2"
    bench.cache.client(second.client, CLUSTER)
    late.answer("PENDING")
    settle(bench.cache)
    bench.clock.advance(3.0)
    settle(bench.cache)

    assert bench.client.get_job_info("a").status == "RUNNING"
    assert len(bench.dashboard.asked) == 1
    assert second.asked


def test_200_threads_on_a_cold_key_send_one_request(bench: Bench) -> None:
    """However many threads meet a job that nobody knows, one request is sent."""
    results = together([lambda: bench.client.get_job_info("a")] * 200)
    held = bench.dashboard.next_request()

    assert all(isinstance(result, TryAgain) for result in results)
    assert bench.dashboard.asked == ["a"]
    held.answer("RUNNING")
    settle(bench.cache)
    infos = together([lambda: bench.client.get_job_info("a")] * 200)
    assert {info.status for info in infos if isinstance(info, JobInfo)} == {"RUNNING"}
    assert bench.dashboard.asked == ["a"]


def test_200_threads_get_a_failure_once(bench: Bench) -> None:
    """A failure is raised to one of many readers."""
    bench.first_read()
    bench.dashboard.next_request().answer(None)
    settle(bench.cache)
    results = together([lambda: bench.client.get_job_info("a")] * 200)

    told = [result for result in results if not isinstance(result, TryAgain)]
    assert len(told) == 1


def test_readers_with_a_demand_bring_one_poll_forward(bench: Bench) -> None:
    """A hundred readers that find the answer too old cause one poll."""
    bench.known_as("RUNNING")
    bench.clock.advance(1.0)
    results = together([lambda: bench.client.get_job_info("a", max_age=0.5)] * 100)
    bench.dashboard.next_request().answer("RUNNING")
    settle(bench.cache)

    assert {type(result) for result in results} == {TryAgain}
    assert len(bench.dashboard.asked) == 2


def test_changes_of_one_job_come_one_at_a_time(bench: Bench) -> None:
    """While a callback runs, the job's next change waits; they come in order."""
    entered, leaves = threading.Semaphore(0), threading.Semaphore(0)
    seen: list[str] = []

    def slow(change: JobChange) -> None:
        seen.append(str(change.new and change.new.status))
        entered.release()
        assert leaves.acquire(timeout=TIMEOUT)

    bench.on_change = slow
    bench.first_read()
    bench.dashboard.next_request().answer("PENDING")
    assert entered.acquire(timeout=TIMEOUT)
    bench.clock.advance(3.0)

    assert seen == ["PENDING"]
    assert bench.client.get_job_info("a").status == "PENDING"  # readers see it already
    leaves.release()
    bench.dashboard.next_request().answer("RUNNING")
    assert entered.acquire(timeout=TIMEOUT)
    leaves.release()
    settle(bench.cache)
    assert seen == ["PENDING", "RUNNING"]
