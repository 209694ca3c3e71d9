"""Tests of what an entry shows to reads that take no lock."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from types import FrameType
from typing import Any, cast

import pytest

from jobinfo_cache import Cluster, DashboardClient, DashboardUnavailable
from jobinfo_cache.entry import NOTHING, ClusterState, Entry
from tests.support import make_info

OLD, NEW = (make_info(fetched_at=datetime(2026, 1, 1 + n, tzinfo=timezone.utc)) for n in range(2))
ENDED = make_info("SUCCEEDED")


@pytest.fixture
def entry() -> Entry:
    state = ClusterState(Cluster("ns", "one", "uid"), cast(DashboardClient, None))
    return Entry(state, "a", 0.0)


def at_each_line(run: Callable[[], object], look: Callable[[], object]) -> None:
    """Call `look` before each line of `run`, as if another thread came in there."""

    def trace(frame: FrameType, event: str, _arg: Any) -> Any:
        if event == "line":
            look()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)


@pytest.mark.parametrize(
    ("until", "info", "next_until"),
    [
        (10.0, NEW, 20.0),
        (20.0, NEW, 10.0),  # `max_age` counts from when the request was sent
        (math.inf, NEW, 10.0),
        (10.0, ENDED, math.inf),
    ],
)
def test_no_hit_takes_an_old_info_for_a_new_one(
    entry: Entry, until: float, info: Any, next_until: float
) -> None:
    """Wherever a read comes in, the info that it finds is as fresh as the time says."""
    entry.hold(NOTHING.after_answer(OLD, 0.0), until)
    seen = []

    def look() -> None:
        fresh_until, shown = entry.readable_until, entry.readable_info
        seen.append(shown)
        assert fresh_until <= {id(OLD): until, id(info): next_until}[id(shown)]

    record = NOTHING.after_answer(info, 1.0)
    at_each_line(lambda: entry.hold(record, next_until), look)
    assert OLD in seen
    assert (entry.record, entry.readable_info, entry.readable_until) == (record, info, next_until)


def test_no_hit_after_a_failure(entry: Entry) -> None:
    """An info that is no longer the newest outcome is no hit."""
    entry.hold(NOTHING.after_answer(OLD, 0.0), math.inf)
    entry.hold(entry.record.after_failure(DashboardUnavailable("refused"), 1.0))
    assert entry.readable_until == -math.inf
    assert entry.record.info is OLD


def test_outcome_is_the_newest_one() -> None:
    """A failure after an answer, an answer after a failure, nothing once it is superseded."""
    error = DashboardUnavailable("refused")
    answered = NOTHING.after_answer(OLD, 0.0)
    failed = answered.after_failure(error, 1.0)
    outcomes = [record.outcome for record in (NOTHING, answered, failed, failed.supersede())]
    assert outcomes == [None, OLD, error, None]
    assert failed.after_answer(NEW, 2.0).outcome is NEW
