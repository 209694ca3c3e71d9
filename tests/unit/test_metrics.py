"""Tests of what a cache tells Prometheus."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics import exposition
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from jobinfo_cache import Cluster, JobInfo, JobInfoCache, JobNotFound, TryAgain, __version__
from jobinfo_cache.metrics import JobInfoCollector
from jobinfo_cache.testing import FakeClock
from tests.support import Core, make_info, not_found, unavailable

NO_KIND = {"outcome": "ok", "kind": ""}


class Meter:
    """A registry with the collector of one cache; names are without the prefix."""

    def __init__(self, cache: JobInfoCache) -> None:
        self.registry = CollectorRegistry()
        self.collector = JobInfoCollector(cache)
        self.registry.register(self.collector)

    def __call__(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"jobinfo_cache_{name}", labels)

    def series(self) -> set[tuple[str, frozenset[tuple[str, str]]]]:
        return {
            (sample.name, frozenset(sample.labels.items()))
            for family in self.registry.collect()
            for sample in family.samples
        }


class TestValues:
    """Each figure of the cache is there."""

    def test_reads_by_result(self, clock: FakeClock) -> None:
        """Reads are counted by what they got."""
        core = Core(clock, "RUNNING", not_found())
        meter = Meter(core.cache)
        with pytest.raises(TryAgain):
            core.read()  # pending
        core.poll()
        core.read()
        core.read()
        clock.advance(1.0)
        with pytest.raises(TryAgain):
            core.read(max_age=0.5)  # stale
        core.poll_for(6.0)
        with pytest.raises(JobNotFound):
            core.read()

        results = ("hit", "pending", "stale", "failed")
        counts = [meter("reads_total", result=result) for result in results]
        assert counts == [2.0, 1.0, 1.0, 1.0]

    def test_polls_by_outcome_and_kind(self, clock: FakeClock) -> None:
        """Good polls have no kind; failed ones have that of their failure."""
        core = Core(clock, "RUNNING", not_found(), not_found(), unavailable())
        meter = Meter(core.cache)
        core.add("a")
        for _ in range(4):
            core.poll()
            clock.advance(20.0)

        assert meter("polls_total", **NO_KIND) == 1.0
        assert meter("polls_total", outcome="failed", kind="not_found") == 2.0
        assert meter("polls_total", outcome="failed", kind="unavailable") == 1.0
        kinds = ("auth", "bad_response", "internal")
        assert [meter("polls_total", outcome="failed", kind=kind) for kind in kinds] == [0.0] * 3

    def test_entries(self, clock: FakeClock) -> None:
        """Entries, those of live jobs, and those that no poll has told of are told apart."""
        core = Core(clock)
        core.dashboard.script("ended", "SUCCEEDED")
        meter = Meter(core.cache)
        core.add("ended", "runs")
        core.poll()
        core.add("new")

        names = ("entries", "live_entries", "placeholder_entries")
        assert [meter(name) for name in names] == [3.0, 2.0, 1.0]

    def test_oldest_live_age(self, clock: FakeClock) -> None:
        """It is the age of the oldest answer about a live job, and absent without one."""
        core = Core(clock)
        meter = Meter(core.cache)
        core.add("a")
        assert meter("oldest_live_age_seconds") is None
        core.poll()
        clock.advance(2.5)
        assert meter("oldest_live_age_seconds") == 2.5
        core.client.forget("a")
        assert meter("oldest_live_age_seconds") is None

    def test_failing_dashboards(self, clock: FakeClock) -> None:
        """A dashboard counts as failing from its failure to its next answer."""
        core = Core(clock, "RUNNING", unavailable(), "RUNNING")
        meter = Meter(core.cache)
        core.add("a")
        seen = []
        for _ in range(3):
            core.poll()
            seen.append((meter("dashboards"), meter("failing_dashboards")))
            clock.advance(5.0)

        assert seen == [(1.0, 0.0), (1.0, 1.0), (1.0, 0.0)]

    def test_a_dashboard_that_nobody_polls_does_not_fail(self, clock: FakeClock) -> None:
        """When its last job is forgotten a dead dashboard no longer counts."""
        core = Core(clock, unavailable())
        meter = Meter(core.cache)
        core.add("a")
        core.poll()
        assert meter("failing_dashboards") == 1.0
        core.client.forget("a")
        assert (meter("dashboards"), meter("failing_dashboards")) == (0.0, 0.0)

    def test_removals_by_cause(self, clock: FakeClock) -> None:
        """Evicted, expired and forgotten jobs are told apart; and that the cache is too small."""
        core = Core(clock, cache_size=2)
        meter = Meter(core.cache)
        core.add("a", "b")
        core.poll()
        core.read("a")
        core.read("b")
        assert meter("capacity_exceeded") == 0.0
        core.add("c")
        core.client.forget("c")
        assert meter("capacity_exceeded") == 1.0
        clock.advance(601.0)
        core.engine.cleanup.sweep()

        causes = ("evicted", "forgotten", "expired")
        assert [meter("removals_total", cause=cause) for cause in causes] == [1.0, 1.0, 1.0]

    def test_callbacks_failed(self, clock: FakeClock) -> None:
        """A callback that raises is counted."""

        def fail(change: object) -> None:
            raise ValueError("oh no")

        core = Core(clock, on_change=fail)
        core.add("a")
        core.poll()
        assert Meter(core.cache)("callbacks_failed_total") == 1.0

    def test_stale_replies_dropped(self, clock: FakeClock) -> None:
        """A reply that comes after a forget is counted."""
        core = Core(clock)
        core.add("a")
        core.dashboard.during = lambda: core.client.forget("a")
        core.poll()
        assert Meter(core.cache)("stale_replies_dropped_total") == 1.0

    def test_each_figure_is_its_own(
        self, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """No figure is shown in the place of another."""
        core = Core(clock)
        meter = Meter(core.cache)
        names = ("workers", "busy_workers", "queued_clusters", "delayed_clusters")
        assert [meter(name) for name in names] == [8.0, 0.0, 0.0, 0.0]
        stats = replace(
            core.cache.stats(), workers=1, workers_busy=2, queued=3, delayed=4, entries=5, live=6
        )
        stats = replace(stats, placeholders=7, evicted=8, expired=9, forgotten=10)
        monkeypatch.setattr(core.cache, "stats", lambda: stats)

        entries = ("entries", "live_entries", "placeholder_entries")
        causes = ("evicted", "expired", "forgotten")
        seen = [meter(name) for name in (*names, *entries)]
        seen += [meter("removals_total", cause=cause) for cause in causes]
        assert seen == [float(number) for number in range(1, 11)]

    def test_build_info(self, clock: FakeClock) -> None:
        """The version is a label."""
        assert Meter(Core(clock).cache)("build_info", version=__version__) == 1.0


class TestDurations:
    """How long requests took, by their kind."""

    def test_single_requests(self, clock: FakeClock) -> None:
        """Each request for one job is counted, those that fail too."""
        core = Core(clock, "RUNNING", unavailable())
        meter = Meter(core.cache)
        core.add("a")
        core.poll()
        clock.advance(5.0)
        core.poll()
        assert core.cache.stats().requests_single == 2
        assert meter("request_duration_seconds_count", kind="single") == 2.0
        assert meter("request_duration_seconds_count", kind="list") == 0.0
        assert (meter("request_duration_seconds_sum", kind="single") or 0.0) > 0.0

    @pytest.mark.parametrize("fails", [False, True], ids=["answered", "failed"])
    def test_lists(self, fails: bool, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each request for a list is counted, one that fails too."""
        core = Core(clock, batching=True)
        if not fails:
            jobs = [make_info(submission_id=job_id) for job_id in "abc"]
            monkeypatch.setattr(core.dashboard, "list_jobs", lambda: list[JobInfo](jobs))
        core.add("a", "b", "c")
        core.poll()
        assert core.cache.stats().requests_list == 1
        assert Meter(core.cache)("request_duration_seconds_count", kind="list") == 1.0

    def test_buckets_hold_all_that_are_below(self, clock: FakeClock) -> None:
        """A bucket counts what took its bound or less; the last one counts all."""
        core = Core(clock)
        meter = Meter(core.cache)
        for seconds in (0.002, 0.3, 0.4, 60.0):
            core.engine.poller.list_durations.record(seconds)

        bounds = ("0.001", "0.0025", "0.25", "0.5", "10.0", "+Inf")
        name = "request_duration_seconds_bucket"
        counts = [meter(name, kind="list", le=bound) for bound in bounds]
        assert counts == [0.0, 1.0, 1.0, 3.0, 3.0, 4.0]


class TestForm:
    """What Prometheus asks of names, labels and registries."""

    def test_the_series_are_fixed(self, clock: FakeClock) -> None:
        """Neither jobs nor clusters bring further series, and no label names one."""
        core = Core(clock, "RUNNING", "RUNNING", not_found())
        meter = Meter(core.cache)
        core.add("first")
        core.poll()
        before = meter.series()
        for number in range(5):
            client = core.cache.client(core.dashboard.client, Cluster("ns", f"c{number}"))
            client.lookup("other")
            core.engine.poller.poll_cluster(client.cluster)

        assert meter.series() == before
        shown = str(before)
        assert not [word for word in ("first", "other", "127.0.0.1", "uid-1") if word in shown]

    def test_openmetrics(self, clock: FakeClock) -> None:
        """A strict parser accepts the OpenMetrics form, with all samples and units."""
        core = Core(clock)
        meter = Meter(core.cache)
        core.add("a")
        core.poll()
        text = exposition.generate_latest(meter.registry).decode()  # type: ignore[no-untyped-call]
        families = list(text_string_to_metric_families(text))  # type: ignore[no-untyped-call]

        units = {family.name: family.unit for family in families if family.unit}
        assert units == {
            "jobinfo_cache_oldest_live_age_seconds": "seconds",
            "jobinfo_cache_request_duration_seconds": "seconds",
        }
        assert {sample.name for family in families for sample in family.samples} == {
            name for name, _ in meter.series()
        }
        assert all(family.documentation.endswith(".") for family in families)
        assert b"jobinfo_cache_reads_total" in generate_latest(meter.registry)

    @pytest.mark.parametrize("auto_describe", [False, True])
    def test_second_cache_is_refused(self, auto_describe: bool, clock: FakeClock) -> None:
        """A registry takes the collector of one cache only; after `unregister`, of another."""
        registry = CollectorRegistry(auto_describe=auto_describe)
        first = JobInfoCollector(Core(clock).cache)
        second = JobInfoCollector(Core(clock).cache)
        registry.register(first)
        with pytest.raises(ValueError, match="jobinfo_cache_entries"):
            registry.register(second)
        registry.unregister(first)
        registry.register(second)


class TestLife:
    """When it may be asked."""

    def test_before_the_first_read_no_thread_starts(self) -> None:
        """Looking does not start the cache."""
        with JobInfoCache() as cache:
            Meter(cache).series()
            assert not cache._engine.pool.is_started

    def test_closed_cache_answers(self, clock: FakeClock) -> None:
        """After `close` the counters stay, and nothing is in the cache."""
        core = Core(clock)
        meter = Meter(core.cache)
        core.add("a")
        core.poll()
        core.cache.close()
        assert meter("entries") == 0.0
        assert meter("polls_total", **NO_KIND) == 1.0

    def test_a_poll_under_way_holds_nothing_up(self, clock: FakeClock) -> None:
        """It answers between a request and its reply."""
        core = Core(clock)
        meter = Meter(core.cache)
        seen: list[float | None] = []
        core.dashboard.during = lambda: seen.append(meter("placeholder_entries"))
        core.add("a")
        core.poll()
        assert seen == [1.0]


class TestExtra:
    """The Prometheus client is optional."""

    @pytest.mark.parametrize(
        "program",
        [
            "import jobinfo_cache, sys; assert 'prometheus_client' not in sys.modules",
            "import sys; sys.modules['prometheus_client'] = None\n"
            "try: import jobinfo_cache.metrics\n"
            "except ImportError as error: assert 'jobinfo-cache[prometheus]' in str(error)\n"
            "else: raise SystemExit(1)",
        ],
        ids=["not imported", "not installed"],
    )
    def test_without(self, program: str) -> None:
        """The library does not import it; and the module says how to install it."""
        command = [sys.executable, "-W", "error", "-c", program]
        ended = subprocess.run(command, capture_output=True, timeout=20.0, check=False)
        assert (ended.returncode, ended.stderr) == (0, b"")
