"""Tests of the bounds on workers for dashboards in doubt."""

from __future__ import annotations

import threading

import pytest

from jobinfo_cache import Cluster, JobInfo, JobInfoCache, Settings
from jobinfo_cache.entry import ClusterState
from jobinfo_cache.lanes import SLOW, Lane, Lanes
from jobinfo_cache.testing import FakeClock, settle
from tests.support import TIMEOUT, ScriptedDashboard, make_info, unavailable
from tests.unit.rounds import Rounds


def cluster(number: int) -> Cluster:
    return Cluster("ns", str(number), "uid")


def failing(number: int) -> ClusterState:
    state = reached(number)
    state.failures = 1
    return state


def reached(number: int) -> ClusterState:
    state = new(number)
    state.contact_at = 0.0
    return state


def new(number: int) -> ClusterState:
    return ClusterState(cluster(number), ScriptedDashboard(FakeClock()).client)


class TestLane:
    """One lane."""

    def test_parks_beyond_its_limit(self) -> None:
        """Who comes when all places are taken parks, and is not resumed before one is free."""
        resumed: list[Cluster] = []
        lane = Lane(2, resumed.append)
        assert [lane.enter(cluster(number)) for number in range(4)] == [True, True, False, False]
        assert (lane.parked, resumed) == (2, [])

    def test_resumes_one_for_each_that_leaves(self) -> None:
        """A place that is given back goes to the one that has parked longest."""
        resumed: list[Cluster] = []
        lane = Lane(1, resumed.append)
        for number in range(3):
            lane.enter(cluster(number))
        lane.leave(cluster(0))
        assert (lane.parked, resumed) == (1, [cluster(1)])

    def test_place_is_kept_for_the_resumed(self) -> None:
        """Nobody takes the place between the resumption and the coming of the resumed one."""
        resumed: list[Cluster] = []
        lane = Lane(1, resumed.append)
        lane.enter(cluster(0))
        lane.enter(cluster(1))
        lane.leave(cluster(0))
        assert lane.enter(cluster(2)) is False
        assert lane.enter(cluster(1)) is True

    def test_parking_twice_takes_one_turn(self) -> None:
        """A cluster that comes again while it is parked is resumed once."""
        resumed: list[Cluster] = []
        lane = Lane(1, resumed.append)
        lane.enter(cluster(0))
        lane.enter(cluster(1))
        lane.enter(cluster(1))
        lane.leave(cluster(0))
        lane.leave(cluster(1))
        assert (lane.parked, resumed) == (0, [cluster(1)])

    def test_all_that_parked_get_their_turn(self) -> None:
        """Of a thousand that come at once, each is resumed once, in the order of their coming."""
        resumed: list[Cluster] = []
        lane = Lane(4, resumed.append)
        entered = [number for number in range(1000) if lane.enter(cluster(number))]
        for number in entered:
            lane.leave(cluster(number))
        for each in resumed:  # grows meanwhile
            assert lane.enter(each) is True
            lane.leave(each)
        assert resumed == [cluster(number) for number in range(4, 1000)]
        assert lane.parked == 0

    def test_leaving_while_parked_gives_no_place_away(self) -> None:
        """One that parks and then leaves (it has recovered) is not resumed, and frees nothing."""
        resumed: list[Cluster] = []
        lane = Lane(1, resumed.append)
        lane.enter(cluster(0))
        lane.enter(cluster(1))
        lane.leave(cluster(1))
        assert (lane.parked, resumed) == (0, [])
        assert lane.enter(cluster(2)) is False


class TestLanes:
    """Who needs which lane."""

    @pytest.mark.parametrize(("workers", "places"), [(1, 1), (2, 1), (3, 1), (8, 4)])
    def test_trouble_holds_half_of_the_workers(self, workers: int, places: int) -> None:
        """Dashboards that fail get at most half of the workers, and at least one."""
        lanes = Lanes(workers, lambda cluster: None)
        assert sum(lanes.enter(failing(number)) for number in range(10)) == places

    def test_first_contacts_have_places_of_their_own(self) -> None:
        """Dashboards that fail do not keep new ones from their first try."""
        lanes = Lanes(8, lambda cluster: None)
        for number in range(100):
            lanes.enter(failing(number))
        assert sum(lanes.enter(new(number)) for number in range(100, 200)) == 4

    def test_one_that_is_well_needs_no_place(self) -> None:
        """However many are in doubt, a dashboard that is well enters at once."""
        lanes = Lanes(8, lambda cluster: None)
        for number in range(100):
            lanes.enter(failing(number))
            lanes.enter(new(100 + number))
        assert all(lanes.enter(reached(number)) for number in range(200, 300))

    def test_slow_one_is_in_trouble(self) -> None:
        """A dashboard that answers, but takes very long, counts as in trouble."""
        lanes = Lanes(2, lambda cluster: None)
        first, second = reached(0), reached(1)
        first.latency = second.latency = SLOW * 2
        assert [lanes.enter(first), lanes.enter(second)] == [True, False]

    def test_cut_short_one_is_in_trouble(self) -> None:
        """A first try that was ended early is repeated behind the first tries of others."""
        lanes = Lanes(2, lambda cluster: None)
        state = new(0)
        state.cut_short = True
        lanes.enter(failing(1))
        assert lanes.enter(state) is False
        assert lanes.enter(new(2)) is True

    def test_recovered_one_gives_its_place_back(self) -> None:
        """A parked cluster that has recovered enters, and is not resumed later."""
        resumed: list[Cluster] = []
        lanes = Lanes(2, resumed.append)
        first, second = failing(0), failing(1)
        lanes.enter(first)
        lanes.enter(second)
        second.failures, second.contact_at = 0, 0.0
        assert lanes.enter(second) is True
        lanes.leave(first.cluster)
        assert (lanes.parked, resumed) == (0, [])


def test_one_that_recovers_leaves_its_lane(clock: FakeClock) -> None:
    """A dashboard whose first try was cut short needs no place any more once it has answered."""
    rounds = Rounds(clock, workers=2)
    client, _ = rounds.cluster("one")
    client._state.cut_short = True
    client.lookup("a")
    rounds.run_for(0.0)
    assert client.lookup("a").fresh

    lanes = rounds.engine.lanes
    assert lanes.enter(failing(1)) is True  # the only place
    assert lanes.enter(client._state) is True


def test_vanished_cluster_gives_its_place_on(clock: FakeClock) -> None:
    """A parked cluster that nobody knows when it is resumed strands none that parks behind it."""
    rounds = Rounds(clock, workers=2)
    lanes = rounds.engine.lanes
    client, dashboard = rounds.cluster("one")
    holder, vanished = new(1), new(2)
    lanes.enter(holder)
    lanes.enter(vanished)  # parks; the store has never heard of it
    client.lookup("a")
    rounds.run_for(0.0)
    assert (lanes.parked, dashboard.asked) == (2, [])

    lanes.leave(holder.cluster)
    rounds.run_for(0.0)
    assert (lanes.parked, dashboard.asked) == (0, ["a"])


class Blackhole(ScriptedDashboard):
    """Refuses until it is told to hold its requests; counts those that it holds."""

    held = 0
    most_held = 0
    lock = threading.Lock()

    def __init__(self, clock: FakeClock, gate: threading.Event, reached: threading.Semaphore):
        super().__init__(clock)
        self.holds = False
        self._gate = gate
        self._reached = reached

    def get_job_info(self, job_id: str) -> JobInfo:
        self.asked.append(job_id)
        if self.holds:
            self._count(1)
            self._reached.release()
            assert self._gate.wait(TIMEOUT)
            self._count(-1)
        raise unavailable()

    def _count(self, step: int) -> None:
        with Blackhole.lock:
            Blackhole.held += step
            Blackhole.most_held = max(Blackhole.most_held, Blackhole.held)


class Well(ScriptedDashboard):
    """Says each time that it was asked."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.was_asked = threading.Event()

    def get_job_info(self, job_id: str) -> JobInfo:
        self.was_asked.set()
        return make_info(fetched_at=self._clock.now())


def test_thousand_dead_dashboards_do_not_starve_one_that_is_well(clock: FakeClock) -> None:
    """While a thousand hang, half the workers wait for them, and the one that is well is polled.

    Afterwards each of the thousand has had its turn.
    """
    gate, arrived = threading.Event(), threading.Semaphore(0)
    Blackhole.held = Blackhole.most_held = 0
    dead = [Blackhole(clock, gate, arrived) for _ in range(1000)]
    well = Well(clock)
    with JobInfoCache(Settings(workers=4, jitter=0.0), clock=clock) as cache:
        clients = [cache.client(each.client, cluster(n)) for n, each in enumerate(dead)]
        healthy = cache.client(well.client, cluster(1000))
        for client in [healthy, *clients]:
            client.lookup("a")
        settle(cache)
        assert all(len(each.asked) == 1 for each in dead)
        for each in dead:
            each.holds = True
        for _ in range(4):
            well.was_asked.clear()
            clock.advance(3.0)
            assert well.was_asked.wait(TIMEOUT)
        for _ in range(2):
            assert arrived.acquire(timeout=TIMEOUT)
        assert (Blackhole.held, Blackhole.most_held) == (2, 2)

        gate.set()
        settle(cache, 20.0)
        assert Blackhole.most_held == 2
        assert all(len(each.asked) == 2 for each in dead)
        assert cache.stats().queued == 0


def test_parked_clusters_recover_together(clock: FakeClock) -> None:
    """When dashboards come back while most of them are parked, each is polled, then regularly."""
    fleet = [ScriptedDashboard(clock, unavailable(), "RUNNING") for _ in range(50)]
    with JobInfoCache(Settings(workers=2, jitter=0.0), clock=clock) as cache:
        clients = [cache.client(each.client, cluster(n)) for n, each in enumerate(fleet)]
        for client in clients:
            client.lookup("a")
        settle(cache)
        clock.advance(3.01)
        settle(cache)
        assert all(client.lookup("a").fresh for client in clients)
        asked = [len(each.asked) for each in fleet]
        for _ in range(12):
            clock.advance(0.5)
            settle(cache)
        assert all(len(each.asked) > before for each, before in zip(fleet, asked, strict=True))
        assert cache.stats().queued == 0
