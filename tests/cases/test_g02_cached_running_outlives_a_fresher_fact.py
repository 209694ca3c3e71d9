"""G02: a cached RUNNING is compared with a newer fact, and nobody can tell how old it is."""

from __future__ import annotations

from datetime import timedelta

from jobinfo_cache import JobInfo, TryAgain
from jobinfo_cache.testing import FakeClock
from tests.cases.support import INTERVAL, case


def test_fetched_at_stands_still_while_polls_hang(clock: FakeClock) -> None:
    """The time of an answer is that of its request, and its age grows."""
    with case(clock) as it:
        it.dashboard.add_job("a", status="RUNNING")
        first = it.follow()
        with it.dashboard.gate() as gate:
            clock.advance(INTERVAL)
            gate.wait_for(1)
            clock.advance(2 * INTERVAL)
            later, shown = it.read(), it.client.lookup("a")

        assert isinstance(first, JobInfo)
        assert isinstance(later, JobInfo)
        assert later.fetched_at == first.fetched_at
        assert shown.age == 3 * INTERVAL


def test_only_values_fetched_after_an_event_are_believed(clock: FakeClock) -> None:
    """With `newer_than` an answer from before the event is not returned; the next one is."""
    with case(clock) as it:
        it.dashboard.add_job("a", status="RUNNING")
        it.follow()
        clock.advance(1.0)
        it.dashboard.set_status("a", "FAILED")
        exited = clock.now()
        before = it.read(newer_than=exited)
        after = it.follow()

        assert isinstance(before, TryAgain)
        assert before.reason == "stale"
        assert isinstance(after, JobInfo)
        assert after.status == "FAILED"
        assert after.fetched_at >= exited > clock.now() - timedelta(seconds=INTERVAL)
