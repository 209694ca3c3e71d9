"""Tests of the rhythm's arithmetic, on entries and clusters without a cache around them."""

from __future__ import annotations

import itertools
import math

import pytest

from jobinfo_cache import DashboardAuthError, DashboardError, Settings
from jobinfo_cache.entry import ClusterState, Entry
from jobinfo_cache.schedule import Schedule
from jobinfo_cache.testing import FakeClock
from tests.support import CLUSTER, START, ScriptedDashboard, make_info, not_found, unavailable

NOW = 1000.0


@pytest.fixture
def state(clock: FakeClock) -> ClusterState:
    return ClusterState(CLUSTER, ScriptedDashboard(clock).client)


def schedule(**settings: float) -> Schedule:
    return Schedule(Settings(**{"jitter": 0.0, **settings}))  # type: ignore[arg-type]


def add(state: ClusterState, job_id: str, now: float = NOW) -> Entry:
    entry = state.entries[job_id] = Entry(state, job_id, now)
    return entry


def answered(rhythm: Schedule, entry: Entry, status: str, at: float = NOW) -> None:
    """A poll that was sent at that moment was answered at once."""
    entry.asked_at = at
    rhythm.contact(entry.state, at)
    entry.record = entry.record.after_answer(make_info(status), at)
    rhythm.after_poll(entry, at)


class TestRounds:
    """Which jobs take part in a round, and when the next one is."""

    def test_new_job_is_due(self, state: ClusterState) -> None:
        """A job that was never asked about is due at once."""
        rhythm = schedule()
        entry = add(state, "a")

        assert rhythm.due(state, NOW) == [entry]
        assert rhythm.next_delay(state, NOW) == 0.0

    def test_nothing_to_do(self, state: ClusterState) -> None:
        """Without jobs, or with ended ones only, there is no next round."""
        rhythm = schedule()
        assert rhythm.due(state, NOW) == []
        assert rhythm.next_delay(state, NOW) is None
        entry = add(state, "a")
        answered(rhythm, entry, "SUCCEEDED")

        assert rhythm.due(state, NOW + 1e6) == []
        assert rhythm.next_delay(state, NOW) is None
        assert entry.terminal_at == NOW

    def test_next_round_is_that_of_the_earliest_job(self, state: ClusterState) -> None:
        """The job that is due first decides."""
        rhythm = schedule()
        for job_id, due in (("a", 7.0), ("b", 3.0), ("c", 5.0)):
            add(state, job_id).due_at = NOW + due

        assert rhythm.next_delay(state, NOW) == 3.0
        assert rhythm.next_delay(state, NOW + 4.0) == 0.0

    def test_longest_due_comes_first(self, state: ClusterState) -> None:
        """Jobs are asked about in the order in which they fell due."""
        rhythm = schedule()
        entries = {}
        for job_id, due in (("a", -1.0), ("b", -3.0), ("c", -2.0)):
            entries[job_id] = add(state, job_id)
            entries[job_id].due_at = entries[job_id].joins_at = NOW + due

        assert rhythm.due(state, NOW) == [entries["b"], entries["c"], entries["a"]]

    def test_backoff_of_the_dashboard_holds_all(self, state: ClusterState) -> None:
        """While the dashboard is left alone no job is due; the next round is its end."""
        rhythm = schedule(poll_interval=3.0)
        add(state, "a")
        rhythm.back_off(state, unavailable(), NOW)

        assert rhythm.due(state, NOW + 2.99) == []
        assert rhythm.next_delay(state, NOW) == 3.0
        assert len(rhythm.due(state, NOW + 3.0)) == 1


class TestDelays:
    """When a job is due again."""

    def test_healthy_job(self, state: ClusterState) -> None:
        """One interval after it was asked about, whenever the reply came."""
        rhythm = schedule(poll_interval=3.0)
        entry = add(state, "a")
        answered(rhythm, entry, "RUNNING")
        entry.asked_at = NOW + 10.0
        rhythm.after_poll(entry, NOW + 12.0)

        assert entry.due_at == NOW + 13.0

    @pytest.mark.parametrize(("failures", "delay"), [(1, 3.0), (2, 6.0), (5, 48.0), (6, 60.0)])
    def test_failing_job(self, state: ClusterState, failures: int, delay: float) -> None:
        """After its n-th failure in a row, min(max_backoff, poll_interval × 2ⁿ⁻¹)."""
        rhythm = schedule(poll_interval=3.0, max_backoff=60.0)
        entry = add(state, "a")
        answered(rhythm, entry, "RUNNING")
        for _ in range(failures):
            entry.record = entry.record.after_failure(not_found(), NOW)
        rhythm.after_poll(entry, NOW)

        assert entry.due_at == entry.not_before == NOW + delay

    def test_wanted_answer_brings_it_forward(self, state: ClusterState) -> None:
        """A demand that came during the poll counts, if it is later than the request."""
        rhythm = schedule(poll_interval=3.0)
        entry = add(state, "a")
        answered(rhythm, entry, "RUNNING")
        entry.asked_at, entry.wanted_at = NOW + 5.0, NOW + 5.5
        rhythm.after_poll(entry, NOW + 6.0)
        assert entry.due_at == NOW + 5.5
        entry.asked_at = NOW + 6.0
        rhythm.after_poll(entry, NOW + 6.5)

        assert entry.due_at == NOW + 9.0


class TestBackoff:
    """How long a dashboard that fails is left alone."""

    def test_backoff_grows_whatever_the_kinds(self, state: ClusterState) -> None:
        """The delay doubles with each failure in a row, of one kind or of several."""
        rhythm = schedule(poll_interval=3.0, max_backoff=20.0)
        errors: list[DashboardError] = [unavailable(), DashboardAuthError("no", status_code=401)]
        delays = []
        for number in range(5):
            rhythm.back_off(state, errors[number % 2], NOW)
            delays.append(state.not_before - NOW)

        assert delays == [3.0, 6.0, 12.0, 20.0, 20.0]

    def test_jitter_shortens_it(self, state: ClusterState) -> None:
        """The delay is drawn from (1 - jitter) × itself to itself."""
        rhythm = schedule(poll_interval=4.0, jitter=0.5)
        delays = []
        for _ in range(200):
            state.failures = 0
            rhythm.back_off(state, unavailable(), NOW)
            delays.append(state.not_before - NOW)

        assert 2.0 <= min(delays) < 2.5
        assert 3.5 < max(delays) <= 4.0

    @pytest.mark.parametrize(("named", "delay"), [(1.0, 3.0), (10.0, 10.0), (1e9, 60.0)])
    def test_retry_after(self, state: ClusterState, named: float, delay: float) -> None:
        """What the server names counts if it is longer, up to `max_backoff`."""
        rhythm = schedule(poll_interval=3.0, max_backoff=60.0)
        rhythm.back_off(state, unavailable(named), NOW)

        assert state.not_before == NOW + delay

    def test_contact_ends_it(self, state: ClusterState) -> None:
        """Contact is news once: then there is no backoff, and no failure."""
        rhythm = schedule()
        rhythm.back_off(state, unavailable(), NOW)

        assert rhythm.contact(state, NOW + 1.0)
        assert not rhythm.contact(state, NOW + 1.0)
        assert (state.failures, state.not_before) == (0, -math.inf)

    def test_first_contact_is_no_recovery(self, state: ClusterState) -> None:
        """A dashboard that never failed does not recover."""
        assert not schedule().contact(state, NOW)


def test_spread_covers_the_interval(clock: FakeClock) -> None:
    """Clusters that are reached together are due at moments all over the next interval."""
    rhythm = schedule(poll_interval=3.0)
    delays = []
    for _ in range(100):
        state = ClusterState(CLUSTER, ScriptedDashboard(clock).client)
        entry = add(state, "a")
        answered(rhythm, entry, "RUNNING")
        delays.append(entry.due_at - NOW)
    delays.sort()

    assert min(delays) >= 0.0
    assert max(delays) <= 3.0
    assert max(later - earlier for earlier, later in itertools.pairwise(delays)) < 0.3


def test_moment_of_failure_is_kept(state: ClusterState) -> None:
    """`failing_since` is the first failure's own time, through further ones."""
    entry = add(state, "a")
    first = not_found()
    first.fetched_at = START
    entry.record = entry.record.after_failure(first, NOW).after_failure(not_found(), NOW + 1.0)

    assert (entry.record.failures, entry.record.failing_since) == (2, START)
    assert entry.record.after_answer(make_info(), NOW).failing_since is None
