"""Tests of the machine's checks themselves, where they are easily too strict."""

from __future__ import annotations

import itertools

import pytest

from jobinfo_cache import Cluster, Settings
from jobinfo_cache.testing import FakeClock
from tests.stateful.watch import Watch
from tests.stateful.world import World

KEY = (Cluster("ns", "one"), "a")


def test_demand_for_a_later_answer_allows_an_early_poll_until_then(clock: FakeClock) -> None:
    """A poll before the instant that a read has named does not use up the one at that instant."""
    world = World(clock, itertools.count(1))
    watch = Watch({KEY[0]: world}, clock, Settings(jitter=0.0))

    def ask() -> None:
        watch.asked(KEY, world.arrive("GET", "/api/jobs/a", {}, None))

    ask()
    watch.may_be_early(KEY, clock.monotonic() + 1.0)
    for _ in range(2):
        clock.advance(0.5)
        ask()
    clock.advance(0.5)
    with pytest.raises(AssertionError, match="asked again"):
        ask()
