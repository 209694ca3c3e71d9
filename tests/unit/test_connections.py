"""Tests of the bound on kept connections."""

from __future__ import annotations

from collections import Counter

from jobinfo_cache import Cluster
from jobinfo_cache.connections import Connections
from jobinfo_cache.entry import ClusterState
from jobinfo_cache.testing import FakeClock
from tests.support import ScriptedDashboard
from tests.unit.rounds import Rounds


def states(count: int) -> tuple[list[ClusterState], list[ScriptedDashboard]]:
    dashboards = [ScriptedDashboard(FakeClock()) for _ in range(count)]
    made = [
        ClusterState(Cluster("ns", str(number), "uid"), dashboard.client)
        for number, dashboard in enumerate(dashboards)
    ]
    return made, dashboards


def closed(dashboards: list[ScriptedDashboard]) -> list[int]:
    """The places of those that were told to close, and how often each."""
    return list(Counter({n: each.closed for n, each in enumerate(dashboards)}).elements())


def test_513th_connection_closes_the_least_recently_used() -> None:
    """By default 512 dashboards keep a connection; one more costs that of the oldest use."""
    made, dashboards = states(513)
    connections = Connections()
    for state in made[:512]:
        connections.used(state)
    assert closed(dashboards) == []
    connections.used(made[0])  # so that the second is the least recently used
    connections.used(made[512])
    assert closed(dashboards) == [1]


def test_use_by_one_cluster_counts_once() -> None:
    """A dashboard that is used again and again takes one place."""
    made, dashboards = states(3)
    connections = Connections(most_kept=2)
    for state in [made[0]] * 5 + [made[1]] * 5:
        connections.used(state)
    assert closed(dashboards) == []
    connections.used(made[2])
    assert closed(dashboards) == [0]


def test_closed_one_makes_room() -> None:
    """A cluster whose connection was closed takes no place any more."""
    made, dashboards = states(3)
    connections = Connections(most_kept=2)
    connections.used(made[0])
    connections.used(made[1])
    connections.close(made[0].cluster)
    connections.used(made[2])
    assert closed(dashboards) == [0]


def test_fourth_of_three_closes_the_least_recently_used() -> None:
    """The order is that of the newest use, not of the first; each surplus closes one."""
    made, dashboards = states(5)
    connections = Connections(most_kept=3)
    for number in (0, 1, 2, 0, 1, 3):
        connections.used(made[number])
    assert closed(dashboards) == [2]
    connections.used(made[4])
    assert closed(dashboards) == [0, 2]


def test_only_the_needed_ones_stay() -> None:
    """Those that are not needed are closed, once; those that are stay open."""
    made, dashboards = states(4)
    connections = Connections(most_kept=4)
    for state in made:
        connections.used(state)
    connections.close_all_but({made[1].cluster, made[3].cluster})
    assert closed(dashboards) == [0, 2]
    connections.close_all_but(())
    assert closed(dashboards) == [0, 1, 2, 3]


class Grumpy(ScriptedDashboard):
    """Its `close` raises."""

    def close(self) -> None:
        super().close()
        raise RuntimeError("no")


def test_close_that_raises_harms_nobody() -> None:
    """A client of a user's own whose `close` raises keeps no other one open."""
    grumpy, other = Grumpy(FakeClock()), ScriptedDashboard(FakeClock())
    connections = Connections()
    for number, dashboard in enumerate((grumpy, other)):
        cluster = Cluster("ns", str(number), "uid")
        connections.used(ClusterState(cluster, dashboard.client))
    connections.close_all_but(())
    assert (grumpy.closed, other.closed) == (1, 1)


def test_rounds_of_more_clusters_keep_only_so_many() -> None:
    """Rounds over 513 clusters close one connection, and no job goes unasked for that."""
    clock = FakeClock()
    rounds = Rounds(clock)
    fleet = [rounds.cluster(str(number)) for number in range(513)]
    for client, _ in fleet:
        client.lookup("a")
    rounds.run_for(0.0)
    assert sum(dashboard.closed for _, dashboard in fleet) == 1
    rounds.run_for(6.0)
    assert all(len(dashboard.asked) >= 2 for _, dashboard in fleet)


def test_cluster_without_a_live_job_keeps_none() -> None:
    """When its last job has ended, a cluster's connection is closed."""
    clock = FakeClock()
    rounds = Rounds(clock)
    client, dashboard = rounds.cluster("one", "SUCCEEDED")
    client.lookup("a")
    rounds.run_for(1.0)
    assert dashboard.closed == 1
