"""Tests of what is gathered for the status page, and that looking changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from jobinfo_cache import Cluster, DashboardUnavailable
from jobinfo_cache.statuspage import overview
from jobinfo_cache.statuspage.overview import Overview, gather, slices
from jobinfo_cache.testing import FakeClock
from tests.support import Core, ScriptedDashboard, make_info, unavailable


def look(core: Core, query: str = "", limit: int = 100) -> Overview:
    return asyncio.run(gather(core.cache, query=query, limit=limit))


def found(core: Core, query: str = "", limit: int = 100) -> list[str]:
    return [row.job_id for row in look(core, query, limit).jobs]


@pytest.fixture
def at_pause(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Has something done at each pause, instead of a pause."""

    def install(act: Callable[[], object]) -> None:
        async def pause() -> None:
            act()

        monkeypatch.setattr(overview, "pause", pause)

    return install


class TestOrder:
    """What comes first."""

    def test_trouble_first_and_what_has_ended_last(self, core: Core) -> None:
        """Failing polls, failed jobs, those without an answer, live ones, ended ones."""
        for status in ("SUCCEEDED", "STOPPED", "PENDING", "ODD", "FAILED"):
            core.dashboard.script(status, status)
        core.dashboard.script("failing", unavailable())
        core.add("SUCCEEDED", "STOPPED", "PENDING", "ODD", "RUNNING", "FAILED", "failing")
        core.poll()
        core.add("new")

        assert found(core) == [
            "failing",
            "FAILED",
            "new",
            "ODD",
            "PENDING",
            "RUNNING",
            "STOPPED",
            "SUCCEEDED",
        ]

    @pytest.mark.parametrize("limit", [1, 7, 150, 260, 1000])
    def test_first_ones_of_many(self, core: Core, limit: int) -> None:
        """However many there are, the first ones by name are shown, and all are counted."""
        names = [f"job-{number:04}" for number in range(260)]
        core.add(*reversed(names))
        seen = look(core, limit=limit)

        assert [row.job_id for row in seen.jobs] == names[:limit]
        assert seen.jobs_found == 260
        assert seen.statuses == {"no answer yet": 260}

    def test_failing_clusters_first(self, core: Core) -> None:
        """A dashboard in trouble comes before those that are well, then by name."""
        for name, outcome in (("b", "RUNNING"), ("c", unavailable()), ("a", "RUNNING")):
            dashboard = ScriptedDashboard(core.clock, outcome)
            client = core.cache.client(dashboard.client, Cluster("ns", name, "u"))
            client.lookup("x")
            core.engine.poller.poll_cluster(client.cluster)
        seen = look(core, limit=3)

        assert [row.name for row in seen.clusters] == ["c", "a", "b"]
        assert seen.clusters_found == 4

    def test_only_the_most_frequent_statuses(self, core: Core) -> None:
        """A dashboard that makes statuses up does not fill the page with them."""
        for number in range(50):
            core.dashboard.script(f"{number}", f"ODD-{number}")
        core.add("a", "b", *[f"{number}" for number in range(50)])
        core.poll()
        statuses = look(core).statuses

        assert len(statuses) == 20
        assert statuses["RUNNING"] == 2
        assert list(statuses) == sorted(statuses)


class TestSearch:
    """Which jobs and clusters a search finds."""

    @pytest.mark.parametrize(
        ("query", "names"),
        [
            ("", ["bad", "new", "run-1", "run-2"]),
            ("RUN-1", ["run-1"]),
            ("  run  2 ", ["run-2"]),
            ("02000000", ["run-2"]),
            ("raysubmit_7", ["run-2"]),
            ("ONE", ["bad", "new", "run-1", "run-2"]),
            ("uid-1 running", ["run-1", "run-2"]),
            ("unavailable", ["bad"]),
            ("refused", ["bad"]),
            ("no answer yet", ["bad", "new"]),
            ("nothing like it", []),
            ("main.py", []),
        ],
    )
    def test_finds_by_what_is_shown(self, core: Core, query: str, names: list[str]) -> None:
        """All words must occur, in whatever case; what is not shown is not searched."""
        core.dashboard.script("bad", unavailable())
        info = make_info(
            entrypoint="python main.py", submission_id="raysubmit_7", job_id="02000000"
        )
        core.dashboard.script("run-2", info)
        core.add("run-1", "run-2", "bad")
        core.poll()
        core.add("new")

        assert found(core, query) == names
        assert look(core, query).jobs_found == len(names)
        assert sum(look(core, query).statuses.values()) == 4

    def test_clusters_by_themselves_or_by_a_job(self, core: Core) -> None:
        """A cluster is found by its name, its URL, its trouble, and by any of its jobs."""
        core.add("a")
        other = core.cache.client("http://127.0.0.1:2/far", Cluster("ns", "two"))
        other.lookup("b")

        def names(query: str) -> list[str]:
            return [row.name for row in look(core, query).clusters]

        assert names("a") == ["one", "two"]  # "far" has one too
        assert names("ns/") == []
        assert names("ns") == ["one", "two"]
        assert names("far") == ["two"]
        assert names("uid-1") == ["one"]
        assert names("no answer") == ["one", "two"]

    def test_counts_all_jobs_of_a_cluster_that_is_found(self, core: Core) -> None:
        """The number of a cluster's jobs does not depend on the search."""
        core.add("a", "b", "c")

        assert look(core, "b").clusters[0].jobs == 3


class TestLooking:
    """Looking is no read."""

    def test_leaves_every_entry_as_it_is(self, core: Core) -> None:
        """Nothing is stamped, handed out or told, and no read is counted."""
        core.dashboard.script("bad", unavailable())
        core.add("a", "bad")
        core.poll()
        core.clock.advance(1.0)
        core.add("new")
        core.pool.take()
        slots = core.entry().__slots__
        names = ("a", "bad", "new")
        before = [[getattr(core.entry(name), slot) for slot in slots] for name in names]
        stats = core.cache.stats()
        seen = look(core)

        assert len(seen.jobs) == 3
        assert [[getattr(core.entry(name), slot) for slot in slots] for name in names] == before
        assert core.cache.stats() == stats
        assert core.pool.take() == []
        with pytest.raises(DashboardUnavailable):
            core.read("bad")

    def test_keeps_no_job_alive(self, core: Core) -> None:
        """A job that only the page looks at expires like one that nobody looks at."""
        core.add("a")
        core.clock.advance(60.0)
        look(core)
        core.clock.advance(60.0)
        core.engine.cleanup.sweep()

        assert found(core) == []

    def test_keeps_no_cluster_alive(self, clock: FakeClock) -> None:
        """A cluster that nobody holds any more is gone after the page has been made."""
        core = Core(clock)
        core.cache.client("http://127.0.0.1:2", Cluster("ns", "two"))
        look(core)

        assert [state.cluster.name for state in core.store.clusters()] == ["one"]


class TestPauses:
    """Other threads have their turn."""

    def test_looks_at_a_slice_at_a_time(
        self, core: Core, at_pause: Callable[[Callable[[], object]], None]
    ) -> None:
        """However many jobs there are, not more than a slice is looked at between two pauses."""
        core.add(*[f"job-{number}" for number in range(450)])
        looked: list[int] = [0]
        peek = core.engine.reader.peek
        core.engine.reader.peek = lambda *args: looked.append(looked.pop() + 1) or peek(*args)  # type: ignore[func-returns-value,method-assign]
        at_pause(lambda: looked.append(0))
        look(core, limit=450)

        assert sum(looked) == 450
        assert max(looked) == 200
        assert len(looked) >= 2 * 450 / 200

    def test_holds_no_lock(
        self, core: Core, at_pause: Callable[[Callable[[], object]], None]
    ) -> None:
        """At each pause the store's lock is free."""
        core.add("a")
        held: list[bool] = []
        at_pause(lambda: held.append(core.store.lock._lock._is_owned()))  # type: ignore[attr-defined]
        look(core)

        assert held
        assert not any(held)

    def test_jobs_that_go_meanwhile(
        self, core: Core, at_pause: Callable[[Callable[[], object]], None]
    ) -> None:
        """A job that is forgotten while others are looked at is left out."""
        core.add("a", "b")
        at_pause(lambda: core.client.forget("a"))

        assert found(core) == ["b"]

    def test_cache_that_closes_meanwhile(
        self, core: Core, at_pause: Callable[[Callable[[], object]], None]
    ) -> None:
        """A cache that is closed while it is looked at is shown as closed."""
        core.add("a", "b")
        at_pause(lambda: core.cache.close(0.0))
        seen = look(core)

        assert (list(seen.jobs), seen.is_closed) == ([], True)

    @pytest.mark.parametrize("number", [0, 1, 199, 200, 201, 450])
    def test_slices_have_all(self, number: int) -> None:
        """Slices put together are what was sliced."""
        parts = list(slices(range(number)))

        assert [each for part in parts for each in part] == list(range(number))
        assert all(0 < len(part) <= 200 for part in parts)
