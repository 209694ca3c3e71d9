"""A cache that is too small, its readers in any phases: nobody is refused for long."""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobinfo_cache.testing import FakeClock
from tests.unit.crowd import INTERVAL, Crowd, Reader

# Readers that meet polls and each other, and readers that drift:
phases = st.sampled_from([0.0, 0.0, 0.005, INTERVAL / 2]) | st.floats(0.0, INTERVAL)
periods = st.sampled_from([INTERVAL, INTERVAL, INTERVAL / 3, 2 * INTERVAL]) | st.floats(0.7, 9.0)


def readers(status: st.SearchStrategy[str]) -> st.SearchStrategy[list[Reader]]:
    one = st.builds(Reader, phases, periods, st.booleans(), status)
    alike = st.builds(lambda reader, number: [reader] * number, one, st.integers(1, 20))
    return st.lists(one, min_size=1, max_size=12) | alike


@pytest.fixture(autouse=True, scope="module")
def _no_logging() -> Iterator[None]:
    """Every cache says that it is full."""
    logger = logging.getLogger("jobinfo_cache")
    before, logger.level = logger.level, logging.CRITICAL
    yield
    logger.setLevel(before)


@settings(max_examples=60, deadline=None)
@given(
    crowd=readers(st.sampled_from(["RUNNING", "RUNNING", "SUCCEEDED"])),
    places=st.integers(1, 10),
    clusters=st.integers(1, 3),
    jitter=st.sampled_from([0.0, 0.0, 0.1, 0.5]),
    seed=st.integers(0, 1000),
)
def test_nobody_waits_for_long(
    crowd: list[Reader], places: int, clusters: int, jitter: float, seed: int
) -> None:
    """No reader is without an answer for longer than it takes all the others to have one."""
    random.seed(seed)
    trial = Crowd(FakeClock(), crowd, places=places, clusters=clusters, jitter=jitter)
    trial.read_for(2 * trial.patience)
    assert trial.longest_wait(2 * trial.patience) <= trial.patience


@settings(max_examples=40, deadline=None)
@given(
    crowd=readers(st.just("RUNNING")),
    places=st.integers(1, 10),
    clusters=st.integers(1, 3),
    jitter=st.sampled_from([0.0, 0.1]),
    seed=st.integers(0, 1000),
)
def test_no_live_job_is_asked_more_than_once_an_interval(
    crowd: list[Reader], places: int, clusters: int, jitter: float, seed: int
) -> None:
    """Coming and going costs no request; but for first contacts, which may come twice."""
    random.seed(seed)
    trial = Crowd(FakeClock(), crowd, places=places, clusters=clusters, jitter=jitter)
    trial.read_for(20 * INTERVAL)
    asked = Counter(job for dashboard in trial.dashboards for job in dashboard.asked)
    assert max(asked.values()) <= 20 / (1 - jitter) + 3
