"""Tests of the cleanup: its thread, and what a sweep does."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from jobinfo_cache import Cluster
from jobinfo_cache.cleanup import Cleanup
from jobinfo_cache.testing import FakeClock
from jobinfo_cache.testing.clock import FakeEvent
from tests.support import TIMEOUT, Core, ScriptedDashboard


@pytest.fixture
def core(clock: FakeClock) -> Iterator[Core]:
    core = Core(clock, "RUNNING", expiry=100.0, cleanup_interval=30.0)
    yield core
    core.engine.cleanup.shutdown.set()
    assert core.engine.cleanup.join(TIMEOUT)


def sleeps(cleanup: Cleanup) -> bool:
    """Wait until the thread sleeps for a moment that is still to come."""
    assert isinstance(cleanup.shutdown, FakeEvent)
    return cleanup.shutdown.wait_for_sleeper(TIMEOUT)


class TestThread:
    """The thread that sweeps."""

    def test_sweeps_every_interval(self, core: Core, clock: FakeClock) -> None:
        """What has expired is gone after the next sweep, and not before."""
        cleanup = core.engine.cleanup
        core.add("a")
        cleanup.start()
        for _ in range(3):
            assert sleeps(cleanup)
            clock.advance(30.0)
        assert sleeps(cleanup)
        assert "a" in core.state.entries
        clock.advance(29.0)
        assert sleeps(cleanup)
        assert "a" in core.state.entries
        clock.advance(1.0)
        assert sleeps(cleanup)

        assert core.state.entries == {}
        assert core.cache.stats().expired == 1

    def test_is_one_daemon_with_a_name(self, core: Core) -> None:
        """However often it is started, there is one thread."""
        cleanup = core.engine.cleanup
        cleanup.start()
        thread = cleanup.thread
        cleanup.start()

        assert thread is cleanup.thread
        assert thread is not None
        assert (thread.name, thread.daemon) == ("jobinfo-cleanup", True)

    def test_ends_at_once(self, core: Core) -> None:
        """Shutdown does not wait for the next sweep."""
        cleanup = core.engine.cleanup
        cleanup.start()
        assert sleeps(cleanup)
        cleanup.shutdown.set()

        assert cleanup.join(TIMEOUT)

    def test_does_not_start_after_shutdown(self, core: Core) -> None:
        """A start that comes too late starts nothing."""
        cleanup = core.engine.cleanup
        cleanup.shutdown.set()
        cleanup.start()

        assert cleanup.thread is None
        assert cleanup.join(0.0)

    def test_refused_thread_is_an_error_unchanged(
        self, core: Core, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """If its thread cannot be started the error is raised, and a later start tries again."""
        cleanup = core.engine.cleanup
        fault = RuntimeError("can't start new thread")

        def refuse(thread: threading.Thread) -> None:
            raise fault

        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            with pytest.raises(RuntimeError) as raised:
                cleanup.start()
        assert raised.value is fault
        cleanup.start()

        assert sleeps(cleanup)

    def test_sweep_that_raises_is_logged(
        self,
        core: Core,
        clock: FakeClock,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """The thread outlives a sweep that raises, and sweeps again."""
        cleanup = core.engine.cleanup
        core.add("a")
        with monkeypatch.context() as patch:
            patch.setattr(core.store, "expire", lambda: 1 / 0)
            cleanup.start()
            assert sleeps(cleanup)
            clock.advance(30.0)
            assert sleeps(cleanup)
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert caplog.records[0].exc_info
        for _ in range(3):
            clock.advance(30.0)
            assert sleeps(cleanup)

        assert core.state.entries == {}


class TestSweep:
    """One sweep."""

    def test_takes_what_is_unread_only(self, core: Core, clock: FakeClock) -> None:
        """Entries that were read within `expiry` stay."""
        core.add("a", "b")
        clock.advance(50.0)
        core.add("b", "c")
        clock.advance(50.0)
        core.engine.cleanup.sweep()

        assert sorted(core.state.entries) == ["b", "c"]
        assert core.cache.stats().expired == 1

    def test_many_at_once(self, core: Core, clock: FakeClock) -> None:
        """However many have expired, one sweep takes them all."""
        core.add(*[f"job-{number}" for number in range(1050)])
        clock.advance(100.0)
        core.add("late")
        core.engine.cleanup.sweep()

        assert list(core.state.entries) == ["late"]
        assert core.cache.stats().expired == 1050

    def test_wakes_who_waits(self, core: Core, clock: FakeClock) -> None:
        """Who waits for a job whose entry is dropped is told."""
        core.add("a")
        event = clock.event()
        core.state.waiters["a"] = [event]
        clock.advance(100.0)
        core.engine.cleanup.sweep()

        assert event.is_set()

    def test_closes_connections_that_nobody_needs(self, core: Core, clock: FakeClock) -> None:
        """A cluster without a live job keeps no connection; one with a live job keeps its own."""
        idle = ScriptedDashboard(clock, "SUCCEEDED")
        other = core.cache.client(idle.client, Cluster("ns", "idle", "uid"))
        other.get_version()
        core.add("a")
        core.poll()
        core.engine.cleanup.sweep()

        assert idle.closed >= 1
        assert core.dashboard.closed == 0


def test_interval_is_that_of_the_settings(clock: FakeClock) -> None:
    """Without a `cleanup_interval` it is ten times the poll interval."""
    core = Core(clock, poll_interval=4.0)
    cleanup = core.engine.cleanup
    cleanup.start()
    assert sleeps(cleanup)

    assert isinstance(cleanup.shutdown, FakeEvent)
    assert cleanup.shutdown._deadlines == [1040.0]
    cleanup.shutdown.set()
    assert cleanup.join(TIMEOUT)
