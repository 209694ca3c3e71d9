"""Lessons 2.3, 2.16, 2.36, 6.1: a key that is removed and read again gets a second poll loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from jobinfo_cache import JobInfo
from jobinfo_cache.testing import FakeClock
from tests.cases.support import case


@pytest.mark.parametrize("remove", ["forget", "stop", "forget by name"])
def test_churn_during_a_poll_leaves_one_loop(clock: FakeClock, remove: str) -> None:
    """However often the entry is made anew meanwhile, one request an interval is sent."""
    with case(clock, batching=False) as it:
        it.dashboard.add_job("a", pending=0.0, running=1e9)
        removals: dict[str, Callable[[str], object]] = {
            "forget": it.client.forget,
            "stop": it.client.stop_job,
            "forget by name": partial(it.cache.forget, "ns", "one"),
        }
        it.dashboard.stop_delay = 1e9
        with it.dashboard.gate("/api/jobs/a", answer_first=True) as gate:
            it.read()
            gate.wait_for(1)
            if remove == "stop":  # which waits at the gate, too
                gate.release()
            for _ in range(20):
                removals[remove]("a")
                it.read()
        it.intervals(2)
        asked = it.asked()
        it.intervals(5)

        assert it.asked() == asked + 5
        assert isinstance(it.read(), JobInfo)
