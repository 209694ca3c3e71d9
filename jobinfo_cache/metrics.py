"""The figures of a cache for Prometheus (extra `prometheus`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from jobinfo_cache._version import __version__
from jobinfo_cache.cache import JobInfoCache
from jobinfo_cache.durations import BOUNDS, Durations
from jobinfo_cache.model import Stats

try:
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
        InfoMetricFamily,
        Metric,
    )
    from prometheus_client.registry import Collector
except ImportError as error:
    raise ImportError(
        "jobinfo_cache.metrics needs prometheus-client: pip install 'jobinfo-cache[prometheus]'"
    ) from error

__all__ = ["JobInfoCollector"]

_PREFIX = "jobinfo_cache_"

# Metric, field of `Stats`, help.
_GAUGES = (
    ("entries", "entries", "Jobs in the cache."),
    ("live_entries", "live", "Jobs in the cache that have not ended, as far as is known."),
    ("placeholder_entries", "placeholders", "Jobs in the cache that no poll has told of yet."),
    ("workers", "workers", "Most threads that poll."),
    ("busy_workers", "workers_busy", "Threads that poll at this moment."),
    ("queued_clusters", "queued", "Clusters that are due and wait for a worker."),
    ("delayed_clusters", "delayed", "Clusters that wait until they are due."),
    (
        "capacity_exceeded",
        "capacity_exceeded",
        "1 while the cache is too small: a live job was evicted or refused lately; 0 otherwise.",
    ),
)
_COUNTERS = (
    (
        "stale_replies_dropped",
        "stale_replies_dropped",
        "Replies not stored, because the job was forgotten, stopped or the like meanwhile.",
    ),
    ("callbacks_failed", "callbacks_failed", "Calls of on_change that raised."),
)


class JobInfoCollector(Collector):
    """Publishes the figures of a cache: `registry.register(JobInfoCollector(cache))`.

    No label holds a job id, a cluster or a URL, so the number of series is fixed. A closed cache
    still answers. Never blocks; with many entries it takes time, as `JobInfoCache.stats` does.
    Safe from any thread. It holds the cache: unregister it when you throw the cache away. A
    registry refuses the collector of a second cache with `ValueError`. Importing this module
    raises `ImportError` when the extra is not installed.

    .. versionadded:: 0.1.0
    """

    def __init__(self, cache: JobInfoCache) -> None:
        self._cache = cache

    def describe(self) -> Iterable[Metric]:
        """The metrics, by which a registry refuses a second collector.

        .. versionadded:: 0.1.0
        """
        return self.collect()

    def collect(self) -> Iterator[Metric]:
        """The metrics as they are now; registries call it for each scrape. Never blocks.

        .. versionadded:: 0.1.0
        """
        stats = self._cache.stats()
        for name, field, text in _GAUGES:
            yield GaugeMetricFamily(_PREFIX + name, text, value=getattr(stats, field))
        for name, field, text in _COUNTERS:
            yield CounterMetricFamily(_PREFIX + name, text, value=getattr(stats, field))
        yield _oldest_age(stats)
        yield _reads(stats)
        yield _polls(stats)
        yield _removals(stats)
        yield from self._dashboards()
        yield self._request_durations()
        yield InfoMetricFamily(
            _PREFIX + "build", "The version of jobinfo-cache.", {"version": __version__}
        )

    def _dashboards(self) -> Iterator[Metric]:
        clusters = self._cache._engine.store.clusters()  # noqa: SLF001 - the library's own
        polled = [state for state in clusters if state.has_live_entries]
        failing = sum(state.failures > 0 for state in polled)
        yield GaugeMetricFamily(
            _PREFIX + "dashboards", "Dashboards with jobs to poll.", value=len(polled)
        )
        yield GaugeMetricFamily(
            _PREFIX + "failing_dashboards",
            "Dashboards with jobs to poll whose newest request failed.",
            value=failing,
        )

    def _request_durations(self) -> Metric:
        poller = self._cache._engine.poller  # noqa: SLF001 - the library's own
        family = HistogramMetricFamily(
            _PREFIX + "request_duration",
            "Seconds that polling requests took, for one job or for a list; failed ones too.",
            labels=["kind"],
            unit="seconds",
        )
        family.add_metric(["single"], *_cumulated(poller.single_durations))
        family.add_metric(["list"], *_cumulated(poller.list_durations))
        return family


def _oldest_age(stats: Stats) -> Metric:
    """Without a live answer there is no sample: 0 would say that all is new."""
    return GaugeMetricFamily(
        _PREFIX + "oldest_live_age",
        "Seconds since the request for the oldest answer about a live job; absent without one.",
        value=stats.oldest_age,
        unit="seconds",
    )


def _reads(stats: Stats) -> Metric:
    results = {
        "hit": stats.reads_hit,
        "pending": stats.reads_pending,
        "stale": stats.reads_stale,
        "failed": stats.reads_failed,
    }
    return _by_label("reads", "Reads by what they got.", "result", results)


def _polls(stats: Stats) -> Metric:
    family = CounterMetricFamily(
        _PREFIX + "polls",
        "Polls of one job by outcome, and by the kind of failure.",
        labels=["outcome", "kind"],
    )
    family.add_metric(["ok", ""], stats.polls_ok)
    for kind, count in stats.polls_failed.items():
        family.add_metric(["failed", kind], count)
    return family


def _removals(stats: Stats) -> Metric:
    causes = {"evicted": stats.evicted, "expired": stats.expired, "forgotten": stats.forgotten}
    return _by_label("removals", "Jobs that left the cache, by cause.", "cause", causes)


def _by_label(name: str, text: str, label: str, counts: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(_PREFIX + name, text, labels=[label])
    for value, count in counts.items():
        family.add_metric([value], count)
    return family


def _cumulated(durations: Durations) -> tuple[list[tuple[str, float]], float]:
    """The buckets as Prometheus has them, each with all that are below it; and the sum."""
    counts, seconds = durations.totals()
    total = 0
    buckets: list[tuple[str, float]] = []
    for bound, count in zip([*map(str, BOUNDS), "+Inf"], counts, strict=True):
        total += count
        buckets.append((bound, total))
    return buckets, seconds
