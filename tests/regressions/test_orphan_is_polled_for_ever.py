"""Lessons 2.2, 6.2, 6.10: nobody reads and it is polled on; or it is read, and expires."""

from __future__ import annotations

from jobinfo_cache import JobInfo
from jobinfo_cache.testing import FakeClock
from tests.cases.support import INTERVAL, case


def test_an_unread_live_job_is_dropped(clock: FakeClock) -> None:
    """Polling does not renew an entry, and ends with it."""
    with case(clock, expiry=30.0, cleanup_interval=INTERVAL) as it:
        it.dashboard.add_job("a", status="RUNNING")
        it.follow()
        it.intervals(12)
        asked = it.asked()
        it.intervals(10)

        assert it.cache.stats().entries == 0
        assert it.asked() == asked


def test_a_job_that_is_read_never_expires_for_a_slow_poll(clock: FakeClock) -> None:
    """Not even when the poll that is under way takes longer than the expiry."""
    with case(clock, expiry=30.0, cleanup_interval=INTERVAL) as it:
        it.dashboard.add_job("a", status="RUNNING")
        it.follow()
        with it.dashboard.gate() as gate:
            clock.advance(INTERVAL)
            gate.wait_for(1)
            for _ in range(20):
                clock.advance(INTERVAL)
                it.read()
        it.intervals(2)

        assert it.cache.stats().expired == 0
        assert isinstance(it.read(), JobInfo)
