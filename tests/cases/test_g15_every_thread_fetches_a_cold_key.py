"""G15: a thousand threads ask for one cold key, and each of them fetches it."""

from __future__ import annotations

from jobinfo_cache import JobInfo, TryAgain
from jobinfo_cache.testing import FakeClock, settle
from tests.cases.support import case
from tests.threads.support import together


def test_200_threads_cause_one_request(clock: FakeClock) -> None:
    """All get an answer at once, and the dashboard has one request in the first interval."""
    with case(clock) as it:
        it.dashboard.add_job("a", status="RUNNING")
        outcomes = together([it.read] * 200)
        settle(it.cache)

        assert all(isinstance(outcome, (TryAgain, JobInfo)) for outcome in outcomes)
        assert it.asked() == 1
