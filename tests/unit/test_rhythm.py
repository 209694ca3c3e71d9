"""Tests of the rhythm of requests over many clusters, and of more jobs than the cache holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from jobinfo_cache import JobInfo, TryAgain
from jobinfo_cache.client import CachedDashboardClient
from jobinfo_cache.testing import FakeClock
from tests.support import ScriptedDashboard, unavailable
from tests.unit.crowd import Crowd, Reader
from tests.unit.rounds import Rounds

CLUSTERS = 300
INTERVAL = 3.0
SLOTS = 30  # tenths of a second in an interval

Fleet = list[tuple[CachedDashboardClient, ScriptedDashboard]]


def watch(rounds: Rounds, *outcomes: str | BaseException) -> Fleet:
    """Clusters whose one job is read for the first time, all at the same moment."""
    fleet = [rounds.cluster(str(number), *outcomes) for number in range(CLUSTERS)]
    for client, _ in fleet:
        client.lookup("a")
    return fleet


def busiest_share(fleet: Fleet, since: float) -> float:
    """The largest share of all requests since then that one tenth of the interval has had."""
    moments = [moment for _, dashboard in fleet for moment in dashboard.asked_at]
    slots = Counter(
        int((moment % INTERVAL) * SLOTS / INTERVAL) for moment in moments if moment > since
    )
    return max(slots.values()) / slots.total()


@pytest.mark.parametrize("batching", [True, False])
def test_clusters_reached_together_spread_out(clock: FakeClock, batching: bool) -> None:
    """After first contact no tenth of a second has more than twice its share of requests."""
    rounds = Rounds(clock, batching=batching)
    fleet = watch(rounds)
    rounds.run_for(INTERVAL)
    began = clock.monotonic()
    rounds.run_for(5 * INTERVAL)
    assert busiest_share(fleet, began) <= 2 / SLOTS


def test_clusters_spread_out_after_an_outage(clock: FakeClock) -> None:
    """When all dashboards come back at once, their later requests are spread out again."""
    rounds = Rounds(clock)
    fleet = watch(rounds, unavailable(), unavailable(), "RUNNING")
    rounds.run_for(4 * INTERVAL)
    assert all(client.lookup("a").fresh for client, _ in fleet)
    began = clock.monotonic()
    rounds.run_for(5 * INTERVAL)
    assert busiest_share(fleet, began) <= 2 / SLOTS


def test_jitter_keeps_clusters_spread(clock: FakeClock) -> None:
    """After many intervals of random length there is still no crowd."""
    rounds = Rounds(clock, jitter=0.1)
    fleet = watch(rounds)
    rounds.run_for(20 * INTERVAL)
    began = clock.monotonic()
    rounds.run_for(10 * INTERVAL)
    # 3,000 draws over 30 slots: 100 each, and hardly ever 150.
    assert busiest_share(fleet, began) <= 1.5 / SLOTS


class TestMoreJobsThanPlaces:
    """120 live jobs, read every interval, in a cache for 100."""

    JOBS = 120
    PLACES = 100
    PASSES = 20

    def reconcile(self, clock: FakeClock, jitter: float = 0.0) -> None:
        """Read all jobs once an interval; note the answers."""
        self.rounds = Rounds(clock, cache_size=self.PLACES, jitter=jitter)
        clients = [self.rounds.cluster(str(number)) for number in range(4)]
        self.dashboards = [dashboard for _, dashboard in clients]
        self.answers: Counter[str] = Counter()
        for _ in range(self.PASSES):
            for number in range(self.JOBS):
                client, _ = clients[number % 4]
                self.read(client, f"job-{number}")
                if number % 10 == 9:
                    self.rounds.run_for(INTERVAL / self.JOBS * 10)

    def read(self, client: CachedDashboardClient, job_id: str) -> JobInfo | None:
        try:
            info = client.get_job_info(job_id)
        except TryAgain:
            return None
        self.answers[job_id] += 1
        return info

    @pytest.mark.parametrize("jitter", [0.1, 0.0])
    def test_every_job_gets_answers(self, clock: FakeClock, jitter: float) -> None:
        """No job is refused for ever: each is answered again and again."""
        self.reconcile(clock, jitter)
        assert len(self.answers) == self.JOBS
        assert min(self.answers.values()) >= 3

    def test_cost_no_more_than_one_request_per_interval_and_job(self, clock: FakeClock) -> None:
        """Eviction and return make no job be asked about more than once in an interval."""
        self.reconcile(clock)
        total = sum(len(dashboard.asked) for dashboard in self.dashboards)
        assert total <= self.JOBS * self.PASSES
        for dashboard in self.dashboards:
            for job_id, count in Counter(dashboard.asked).items():
                assert count <= self.PASSES + 1, job_id

    def test_is_said(self, clock: FakeClock) -> None:
        """`capacity_exceeded` tells of it, and the store never outgrows its size."""
        self.reconcile(clock)
        stats = self.rounds.cache.stats()
        assert stats.capacity_exceeded
        assert stats.entries <= self.PLACES

    def test_enough_places_evict_nobody(self, clock: FakeClock) -> None:
        """As many jobs as places are no excess."""
        self.PLACES = self.JOBS
        self.reconcile(clock)
        stats = self.rounds.cache.stats()
        assert (stats.capacity_exceeded, stats.evicted) == (False, 0)
        assert min(self.answers.values()) >= self.PASSES - 2


# By the reader's number, and the share of all readers that come before it:
RHYTHMS: dict[str, Callable[[int, float], Reader]] = {
    "all at once": lambda number, share: Reader(0.0),
    "one after the other": lambda number, share: Reader(share * INTERVAL),
    "in two groups": lambda number, share: Reader(0.0 if number % 5 else INTERVAL / 2),
    "three times an interval": lambda number, share: Reader(share, 1.0),
    "some seldom": lambda number, share: Reader(0.005, 1.0 if number % 4 else 15.0),
    "all seldom": lambda number, share: Reader(share * 20.0, 20.0),
    "a little too late": lambda number, share: Reader(share * INTERVAL, 1.01 * INTERVAL),
    "when they are told": lambda number, share: Reader(0.0, is_obedient=True),
    "half when they are told": lambda number, share: Reader(share, is_obedient=number % 2 == 0),
    "of jobs that have ended": lambda number, share: Reader(share, status="SUCCEEDED"),
    "of some that have ended": lambda number, share: Reader(
        0.0, status="SUCCEEDED" if number % 3 else "RUNNING"
    ),
}


class TestFixedPhases:
    """Readers that come again and again at the worst moments, without any jitter."""

    @pytest.mark.parametrize("jobs", [6, 8, 10, 50])
    @pytest.mark.parametrize("rhythm", RHYTHMS.values(), ids=RHYTHMS)
    def test_no_job_is_refused_for_long(
        self, clock: FakeClock, rhythm: Callable[[int, float], Reader], jobs: int
    ) -> None:
        """With 5 places, nobody waits longer than it takes all the others to have one."""
        readers = [rhythm(number, number / jobs) for number in range(jobs)]
        crowd = Crowd(clock, readers, places=5, clusters=4)
        crowd.read_for(2 * crowd.patience)
        assert crowd.longest_wait(2 * crowd.patience) <= crowd.patience

    def test_seldom_reader_keeps_its_turn(self, clock: FakeClock) -> None:
        """A job that is read every nine intervals only has its turn as others have theirs."""
        crowd = Crowd(clock, [Reader(0.5, 1.0)] * 12 + [Reader(2.9, 27.0)], places=1)
        crowd.read_for(2 * crowd.patience)
        assert crowd.longest_wait(2 * crowd.patience) <= crowd.patience
