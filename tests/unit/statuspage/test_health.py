"""Tests of the answer to a liveness probe."""

from __future__ import annotations

import threading

import pytest

from jobinfo_cache import Cluster, DashboardClient
from jobinfo_cache.statuspage import StatusPage
from jobinfo_cache.statuspage.health import Health
from jobinfo_cache.testing import FakeClock
from tests.support import Core, unavailable
from tests.unit.statuspage.visits import ask


@pytest.fixture
def health(core: Core) -> Health:
    return Health(core.cache)


@pytest.fixture
def waiting(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster waits for a worker; the deadline of a request is 2 s."""
    core.pool._dispatcher.queue.add("cluster")
    monkeypatch.setattr(core.dashboard, "timeout", 2.0, raising=False)


def test_answers_a_probe(core: Core, page: StatusPage) -> None:
    """200 and "ok" while all is well, 503 and the reason when the cache is closed."""
    well = ask(page, "/healthz")
    core.cache.close(0.0)
    closed = ask(page, "/healthz")

    assert (well.status, well.text) == (200, "ok\n")
    assert (closed.status, closed.text) == (503, "the cache is closed\n")


def test_unused_cache_is_well(core: Core, health: Health, clock: FakeClock) -> None:
    """A cache that was never read has no threads, and nothing that could hang."""
    assert health.trouble() is None
    clock.advance(10_000.0)
    assert health.trouble() is None


def test_dead_dashboard_is_no_reason(core: Core, health: Health, clock: FakeClock) -> None:
    """However long a dashboard fails, a new controller would find the same one."""
    core.dashboard.script(None, unavailable())
    core.add("a")
    for _ in range(50):
        core.pool._handled.increment()
        core.poll()
        clock.advance(60.0)
        assert health.trouble() is None
    assert core.cache.stats().polls_failed["unavailable"] == 50


@pytest.mark.usefixtures("waiting")
class TestStandstill:
    """Clusters wait, and no worker begins a turn."""

    def test_is_told_after_a_minute_beyond_the_deadline(
        self, health: Health, clock: FakeClock
    ) -> None:
        """The time counts from the look that saw it first."""
        assert health.trouble() is None
        clock.advance(62.0)
        assert health.trouble() is None
        clock.advance(1.0)
        assert health.trouble() == "no worker has begun a turn for 63 s"

    def test_longest_deadline_counts(self, core: Core, health: Health, clock: FakeClock) -> None:
        """A dashboard that may take minutes to answer is given them."""
        client = DashboardClient("http://127.0.0.1:2", timeout=300.0)
        slow = core.cache.client(client, Cluster("ns", "slow"))
        assert health.trouble() is None
        clock.advance(360.0)
        assert health.trouble() is None
        clock.advance(1.0)
        assert health.trouble() is not None
        del slow

    def test_ends_with_the_next_turn(self, core: Core, health: Health, clock: FakeClock) -> None:
        """A turn that begins makes it well, and the time counts anew."""
        health.trouble()
        clock.advance(100.0)
        assert health.trouble() is not None
        core.pool._handled.increment()
        assert health.trouble() is None
        clock.advance(62.0)
        assert health.trouble() is None
        clock.advance(1.0)
        assert health.trouble() is not None

    def test_ends_when_nobody_waits(self, core: Core, health: Health, clock: FakeClock) -> None:
        """Without a cluster that waits no turn need begin."""
        health.trouble()
        clock.advance(100.0)
        core.pool._dispatcher.queue.forget("cluster")
        assert health.trouble() is None
        clock.advance(100.0)
        assert health.trouble() is None

    def test_rare_probes_see_no_standstill_at_once(self, health: Health, clock: FakeClock) -> None:
        """The first probe after an hour does not take the hour for a standstill."""
        clock.advance(3_600.0)
        assert health.trouble() is None


class TestThreads:
    """A thread of the cache that ended by itself."""

    @pytest.fixture
    def dead(self) -> threading.Thread:
        thread = threading.Thread(target=lambda: None)
        thread.start()
        thread.join()
        return thread

    def test_dead_dispatcher(self, core: Core, health: Health, dead: threading.Thread) -> None:
        """Without the dispatcher nothing is polled any more."""
        core.pool._dispatcher.thread = dead
        assert health.trouble() == "a thread has died"

    def test_dead_cleanup(self, core: Core, health: Health, dead: threading.Thread) -> None:
        """Without the cleanup nothing expires any more."""
        core.engine.cleanup.thread = dead
        assert health.trouble() == "a thread has died"

    def test_thread_that_is_about_to_start(self, core: Core, health: Health) -> None:
        """A probe may come in just while the first read starts the threads."""
        core.engine.cleanup.thread = threading.Thread(target=lambda: None)
        assert health.trouble() is None
