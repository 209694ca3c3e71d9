"""The metrics of a busy cache, as a real Prometheus sees them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from prometheus_client import CollectorRegistry, start_http_server

from jobinfo_cache import Cluster, JobInfoCache
from jobinfo_cache.metrics import JobInfoCollector
from jobinfo_cache.testing import SimulatedDashboard, settle
from tests.apps import busy, found
from tests.apps.prometheus import FILES, LIMIT, Prometheus, get, prometheus, until

pytestmark = [pytest.mark.apps, pytest.mark.timeout(2 * LIMIT)]

# What becomes true of a busy cache. The gauges are looked at over time: they come and go.
EXPECTED = [
    f"0 < max_over_time(jobinfo_cache_entries[1m]) <= {busy.SETTINGS.cache_size}",
    "jobinfo_cache_live_entries < jobinfo_cache_entries",
    "max_over_time(jobinfo_cache_live_entries[1m]) > 3",
    "max_over_time(jobinfo_cache_placeholder_entries[1m]) > 0",
    f"jobinfo_cache_workers == {busy.SETTINGS.workers}",
    "max_over_time(jobinfo_cache_busy_workers[1m]) > 0",
    "jobinfo_cache_busy_workers <= jobinfo_cache_workers",
    "max_over_time(jobinfo_cache_queued_clusters[1m]) > 0",
    "max_over_time(jobinfo_cache_delayed_clusters[1m]) > 0",
    "max_over_time(jobinfo_cache_capacity_exceeded[1m]) == 1",
    "jobinfo_cache_stale_replies_dropped_total > 0",
    "jobinfo_cache_callbacks_failed_total > 0",
    "jobinfo_cache_oldest_live_age_seconds > 0",
    f"jobinfo_cache_oldest_live_age_seconds < {LIMIT}",
    *(
        f'jobinfo_cache_reads_total{{result="{result}"}} > 0'
        for result in ("hit", "pending", "stale", "failed")
    ),
    'jobinfo_cache_polls_total{outcome="ok", kind=""} > 0',
    *(
        f'jobinfo_cache_polls_total{{outcome="failed", kind="{kind}"}} > 0'
        for kind in ("not_found", "unavailable", "auth", "bad_response", "internal")
    ),
    *(
        f'jobinfo_cache_removals_total{{cause="{cause}"}} > 0'
        for cause in ("evicted", "expired", "forgotten")
    ),
    "3 < max_over_time(jobinfo_cache_dashboards[1m]) <= 7",
    "max_over_time(jobinfo_cache_failing_dashboards[1m]) > 0",
    "jobinfo_cache_failing_dashboards < jobinfo_cache_dashboards",
    *(
        f'jobinfo_cache_request_duration_seconds_{part}{{kind="{kind}"}} > 0'
        for part in ("count", "sum")
        for kind in ("single", "list")
    ),
    # Requests that hang end at their deadline, which the buckets tell from all before it.
    'jobinfo_cache_request_duration_seconds_bucket{kind="single", le="1.0"}'
    ' > ignoring(le) jobinfo_cache_request_duration_seconds_bucket{kind="single", le="0.5"}',
    'jobinfo_cache_request_duration_seconds_bucket{kind="list", le="+Inf"}'
    ' == ignoring(le) jobinfo_cache_request_duration_seconds_count{kind="list"}',
    "jobinfo_cache_build_info == 1",
    "sum(resets(jobinfo_cache_reads_total[5m])) == 0",
]
RULES = re.findall(r"record: (\S+)", (FILES / "recording.yml").read_text(encoding="utf-8"))
DASHBOARD = json.loads((FILES / "grafana.json").read_text(encoding="utf-8"))
EXPRESSIONS = sorted(
    {target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]}
)
VARIABLES = {"$__rate_interval": "30s", "$job": "jobinfo-cache", "$instance": ".*"}


class Watched(NamedTuple):
    """A Prometheus, and where it gets the metrics from."""

    prometheus: Prometheus
    exporter: str


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """A Prometheus that asks a program with a busy cache."""
    found("prometheus")
    command = [sys.executable, "-W", "error", "-m", "tests.apps.busy"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        port = int(program.stdout.readline())
        try:
            with prometheus(tmp_path_factory.mktemp("prometheus"), port) as server:
                yield Watched(server, f"http://127.0.0.1:{port}/metrics")
        finally:
            program.stdin.close()
    assert program.returncode == 0


@pytest.mark.parametrize("expression", EXPECTED)
def test_value(expression: str, watched: Watched) -> None:
    """Each metric is there, with a value that makes sense."""
    [_] = watched.prometheus.wait_for(expression)


def test_nothing_is_left_out(watched: Watched) -> None:
    """All that Prometheus has of the cache is looked at above."""
    looked_at = set(re.findall(r"jobinfo_cache_\w+", " ".join(EXPECTED)))
    for name in looked_at:  # some come and go
        watched.prometheus.wait_for(name)
    samples = watched.prometheus.query('last_over_time({__name__=~"jobinfo_cache_.+"}[1m])')

    assert {sample["metric"]["__name__"] for sample in samples} == looked_at


def test_labels_are_few(watched: Watched) -> None:
    """No series is of a job, a cluster or a dashboard."""
    samples = watched.prometheus.wait_for('{__name__=~"jobinfo_cache_.+"}')
    labels = {label for sample in samples for label in sample["metric"]}

    ours = labels - {"__name__", "job", "instance"}
    assert ours == {"result", "outcome", "kind", "cause", "le", "version"}


def test_promtool_accepts_the_metrics(watched: Watched) -> None:
    """`promtool check metrics` has nothing to say."""
    _promtool("check", "metrics", text=get(watched.exporter))


@pytest.mark.parametrize("name", RULES)
def test_recording_rule(name: str, watched: Watched) -> None:
    """Each recording rule brings figures of the busy cache."""
    for sample in watched.prometheus.wait_for(name):
        assert float(sample["value"][1]) >= 0.0


def test_alerts_are_evaluated(watched: Watched) -> None:
    """Prometheus evaluates each alert without an error; those of a busy cache are pending."""

    def alerts() -> dict[str, Any]:
        groups = (watched.prometheus.ask("rules", type="alert") or {"groups": []})["groups"]
        rules = {rule["name"]: rule for group in groups for rule in group["rules"]}
        return rules if all(rule["health"] != "unknown" for rule in rules.values()) else {}

    rules = until(alerts, "the first evaluation of the alerts")
    assert {rule["health"] for rule in rules.values()} == {"ok"}
    assert len(rules) == 8
    for name in ("DashboardsFail", "TokensRefused", "TooSmall", "CallbacksRaise", "PollsRaise"):
        watched.prometheus.wait_for(f'ALERTS{{alertname="JobInfoCache{name}"}}')


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_dashboard_expression(expression: str, watched: Watched) -> None:
    """Each expression of the Grafana dashboard brings data."""
    for variable, value in VARIABLES.items():
        expression = expression.replace(variable, value)
    watched.prometheus.wait_for(expression)


def test_dashboard_variables(watched: Watched) -> None:
    """The variables of the dashboard take their values from a metric that is there."""
    variables = {each["name"]: each for each in DASHBOARD["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    queries = [variables[name]["query"]["query"] for name in ("job", "instance")]
    for query in queries:
        selector = re.fullmatch(r"label_values\((.+), \w+\)", query)
        assert selector is not None
        watched.prometheus.wait_for(selector[1].replace("$job", "jobinfo-cache"))


def test_dashboard_names_no_data_source() -> None:
    """Each panel and target asks the data source that the user chooses."""
    targets = [target for panel in DASHBOARD["panels"] for target in panel["targets"]]
    sources = [each["datasource"]["uid"] for each in (*DASHBOARD["panels"], *targets)]
    assert set(sources) == {"${datasource}"}


def test_prometheus_has_the_very_values(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What Prometheus has of a cache at rest is what the cache says."""
    registry = CollectorRegistry()
    with SimulatedDashboard() as dashboard, JobInfoCache() as cache:
        registry.register(JobInfoCollector(cache))
        dashboard.add_job("a", status="RUNNING")
        client = cache.client(dashboard.url, Cluster("ns", "one", "uid"))
        client.lookup("a")
        settle(cache)
        client.get_job_info("a")
    server, thread = start_http_server(0, addr="127.0.0.1", registry=registry)
    try:
        with prometheus(tmp_path_factory.mktemp("prometheus"), server.server_port) as asked:
            samples = asked.wait_for('{__name__=~"jobinfo_cache_.+"}')
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

    assert _values(sample["metric"] | {"": sample["value"][1]} for sample in samples) == _values(
        {"__name__": sample.name, "": sample.value, **sample.labels}
        for family in registry.collect()
        for sample in family.samples
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "config", "prometheus.yml"),
        ("check", "rules", "recording.yml", "alerts.yml"),
        ("test", "rules", "rules_test.yml"),
    ],
    ids=["config", "rules", "tests of the rules"],
)
def test_promtool(arguments: tuple[str, ...]) -> None:
    """The files of the documentation are valid, and the alerts come when they should."""
    _promtool(*arguments)


def test_each_alert_has_a_test() -> None:
    """Of each alert a test says when it fires and when it does not."""
    alerts = re.findall(r"alert: (\w+)", (FILES / "alerts.yml").read_text(encoding="utf-8"))
    tests = (FILES / "rules_test.yml").read_text(encoding="utf-8")

    for alert in alerts:
        part = r"alertname: " + alert + r"\b.*\n +eval_time: .*\n +exp_alerts:"
        assert re.search(part + "\n", tests), f"{alert} is not seen to fire"
        assert re.search(part + r" \[\]\n", tests), f"{alert} is not seen to be quiet"


def _values(samples: Any) -> dict[frozenset[tuple[str, str]], float]:
    """Values by labels, the name included, without those that Prometheus adds or leaves out."""
    values = {}
    for sample in samples:
        value = float(sample.pop(""))
        kept = {name: text for name, text in sample.items() if text and name not in _ADDED}
        values[frozenset(kept.items())] = value
    return values


_ADDED = ("job", "instance")


def _promtool(*arguments: str, text: str = "") -> None:
    """Run it; it must be content, and say so by its silence where it can."""
    run = subprocess.run(
        [found("promtool"), *arguments],
        cwd=FILES,
        input=text,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert (run.stderr, run.returncode) == ("", 0), run.stdout
