"""Lessons 2.4, 2.19, 6.3, 6.4: a read blocks because all workers do, or because of the end."""

from __future__ import annotations

import pytest

from jobinfo_cache import CacheClosed, Cluster, TryAgain
from jobinfo_cache.testing import FakeClock
from tests.cases.support import case


def test_reads_answer_while_every_worker_hangs(clock: FakeClock) -> None:
    """Hundreds of new keys are taken in while no worker is free; none is refused or sent twice."""
    with case(clock, workers=2, batching=False) as it, it.dashboard.gate() as gate:
        for number in range(300):
            client = it.client_of(Cluster("ns", f"c{number}", "u"))
            with pytest.raises(TryAgain, match="no new answer yet"):
                client.get_job_info("a")
        gate.wait_for(1)
        stats = it.cache.stats()

        assert (stats.entries, stats.placeholders) == (300, 300)
        assert it.cache.close(10.0)
        with pytest.raises(CacheClosed):
            it.client.get_job_info("a")
