"""Lessons 2.14, 2.37, 6.5, 6.6: an old failure is delivered late, twice, or polled without end."""

from __future__ import annotations

import pytest

from jobinfo_cache import JobNotFound, TryAgain
from jobinfo_cache.testing import FakeClock, settle
from tests.cases.support import INTERVAL, case


def test_a_404_from_before_an_event_is_not_raised(clock: FakeClock) -> None:
    """A failure older than `newer_than` is polled again."""
    with case(clock) as it:
        it.read()
        it.intervals(1)
        clock.advance(1.0)
        outcome = it.read(newer_than=clock.now())

        assert isinstance(outcome, TryAgain)
        assert outcome.reason == "stale"


def test_a_404_older_than_max_age_is_not_raised(clock: FakeClock) -> None:
    """Nor one that nobody has read while the dashboard hangs."""
    with case(clock, max_age=5.0) as it:
        it.read()
        settle(it.cache)
        with it.dashboard.gate() as gate:
            clock.advance(INTERVAL)
            gate.wait_for(1)
            clock.advance(5.0)
            outcome = it.read()

        assert isinstance(outcome, TryAgain)
        assert outcome.reason == "stale"


def test_a_persistent_failure_is_told_once_for_each_poll(clock: FakeClock) -> None:
    """Each poll's failure is raised once, and the polls come ever less often."""
    with case(clock, max_backoff=24.0) as it:
        it.read()
        told = []
        for _ in range(60):
            outcome = it.read()
            if isinstance(outcome, JobNotFound):
                told.append(outcome.fetched_at)
            it.intervals(1)

        assert len(told) == len(set(told)) >= 5
        moments = [request.at for request in it.dashboard.requests if "jobs/a" in request.path]
        gaps = [round(later - sooner) for sooner, later in zip(moments, moments[1:])]  # noqa: B905, RUF007
        assert gaps[:5] == [3, 6, 12, 24, 24]


def test_a_failure_that_nobody_reads_expires(clock: FakeClock) -> None:
    """Its polling ends with it."""
    with case(clock, expiry=20.0, cleanup_interval=INTERVAL) as it:
        it.read()
        it.intervals(10)
        asked = it.asked()
        it.intervals(20)

        assert it.cache.stats().expired == 1
        assert it.asked() == asked


def test_a_naive_event_time_is_refused(clock: FakeClock) -> None:
    """Lesson 2.50: times without a zone are not guessed at."""
    with case(clock) as it, pytest.raises(ValueError, match="aware"):
        it.client.get_job_info("a", newer_than=clock.now().replace(tzinfo=None))
