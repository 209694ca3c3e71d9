"""Lesson 6.22: with `retry_after` as the only timer a change is seen too late, or never."""

from __future__ import annotations

import random

import pytest

from jobinfo_cache import TryAgain
from jobinfo_cache.testing import FakeClock, settle
from tests.cases.support import INTERVAL, case


@pytest.mark.parametrize("seed", range(5))
def test_a_change_is_seen_within_an_interval_and_100_ms(clock: FakeClock, seed: int) -> None:
    """A controller that sleeps as long as the cache says needs no other timer."""
    draw = random.Random(seed)
    with case(clock, jitter=0.1, batching=bool(seed % 2)) as it:
        it.dashboard.add_job("a", status="PENDING")
        for status in ("RUNNING", "SUCCEEDED"):
            wakes = [clock.monotonic()]
            changes_at = clock.monotonic() + draw.uniform(0.0, 3 * INTERVAL)
            while True:
                outcome, shown = it.read(), it.client.lookup("a")
                if shown.info is not None and shown.info.status == status:
                    break
                assert shown.retry_after is not None
                pause = outcome.retry_after if isinstance(outcome, TryAgain) else shown.retry_after
                if clock.monotonic() < changes_at <= clock.monotonic() + pause:
                    clock.advance(changes_at - clock.monotonic())
                    settle(it.cache)
                    it.dashboard.set_status("a", status)
                    pause -= changes_at - wakes[-1]
                clock.advance(pause)
                settle(it.cache)
                wakes.append(clock.monotonic())

            assert wakes[-1] - changes_at <= INTERVAL + 0.1
            assert len(wakes) <= 10  # and it does not ask all the time
