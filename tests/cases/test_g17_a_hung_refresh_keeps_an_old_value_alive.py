"""G17: while a refresh never ends, the old value is served for ever as if it were fresh."""

from __future__ import annotations

from jobinfo_cache import JobInfo, TryAgain
from jobinfo_cache.testing import FakeClock
from tests.cases.support import INTERVAL, case


def test_max_age_bounds_what_a_read_returns(clock: FakeClock) -> None:
    """Once the answer is older than `max_age`, reads say so, and show its age."""
    with case(clock, max_age=10.0, expiry=20.0) as it:
        it.dashboard.add_job("a", status="RUNNING")
        it.follow()
        with it.dashboard.gate() as gate:
            clock.advance(INTERVAL)
            gate.wait_for(1)
            outcomes = []
            for _ in range(20):
                clock.advance(0.5)
                outcomes.append((clock.monotonic(), it.read(), it.client.lookup("a")))

        for moment, outcome, shown in outcomes:
            assert shown.age == moment - 1000.0
            assert shown.fresh is isinstance(outcome, JobInfo) is (shown.age <= 10.0)
            assert isinstance(outcome, JobInfo) or (
                isinstance(outcome, TryAgain) and outcome.reason == "stale"
            )
