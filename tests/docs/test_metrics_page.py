"""What docs/how-to/metrics.md says is so; `tests/apps` runs its files."""

from __future__ import annotations

import configparser
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from jobinfo_cache import JobInfoCache
from jobinfo_cache.metrics import JobInfoCollector

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "docs" / "examples" / "monitoring"
PAGE = (ROOT / "docs" / "how-to" / "metrics.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
ASK = """
import urllib.request
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
text = direct.open(f"http://127.0.0.1:{server.server_port}/metrics", timeout=10).read().decode()
assert "jobinfo_cache_workers 8.0" in text, text
server.shutdown()
server.server_close()
thread.join()
cache.close()
"""


def _blocks(language: str) -> list[str]:
    return [text for name, text in BLOCKS if name == language]


def test_all_blocks_are_looked_at() -> None:
    """There is no block of another kind than those below."""
    assert [name for name, _ in BLOCKS] == ["console", "python", "yaml", "console"]


def test_the_program_publishes_the_metrics() -> None:
    """The Python block, with a port that is free, serves the figures of its cache."""
    [program] = _blocks("python")
    assert "9464" in program
    command = [sys.executable, "-W", "error", "-c", program.replace("9464", "0") + ASK]
    run = subprocess.run(command, capture_output=True, text=True, timeout=25, check=False)

    assert (run.stdout, run.stderr, run.returncode) == ("", "", 0)


def test_the_extra_is_there() -> None:
    """The extra that the page names brings the Prometheus client."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    install = shlex.split(_blocks("console")[0])

    assert install[:4] == ["$", "pip", "install", ".[prometheus]"]
    assert "prometheus-client" in setup["options.extras_require"]["prometheus"]


def test_the_scrape_configuration_is_that_of_the_file() -> None:
    """The YAML block is part of the file, which `promtool` checks."""
    [block] = _blocks("yaml")
    assert block in (FILES / "prometheus.yml").read_text(encoding="utf-8")


def test_the_tests_of_the_rules_are_run_as_said() -> None:
    """The command names the file that `tests/apps` runs in the same way."""
    command = shlex.split(_blocks("console")[1])[1:]
    assert command[:3] == ["promtool", "test", "rules"]
    assert (FILES / command[3]).is_file()


def test_each_metric_is_explained() -> None:
    """The table has all metrics of the collector, with their labels, and no other."""
    registry = CollectorRegistry()
    with JobInfoCache() as cache:
        registry.register(JobInfoCollector(cache))
        families = list(registry.collect())
    table = PAGE.partition("## The metrics")[2].partition("## ")[0]
    suffixes = {"counter": "_total", "info": "_info"}
    shown = {
        family.name.removeprefix("jobinfo_cache_") + suffixes.get(family.type, ""): family.type
        for family in families
    }

    rows = [row.split(" | ") for row in re.findall(r"^\| (`.*)$", table, re.MULTILINE)]
    named = {
        name: kind for names, kind, _ in rows for name in re.findall(r"`(\w+)(?:\{.*?\})?`", names)
    }
    assert named == shown


@pytest.mark.parametrize("label", ["result", "outcome", "kind", "cause"])
def test_each_value_of_a_label_is_explained(label: str) -> None:
    """The page names every value that a label can have."""
    with JobInfoCache() as cache:
        values = {
            sample.labels.get(label, "")
            for family in JobInfoCollector(cache).collect()
            for sample in family.samples
        }
    assert [value for value in values if value and not re.search(rf"\b{value}\b", PAGE)] == []


def test_each_alert_is_explained() -> None:
    """The table has the alerts of the file, in their order, and says which are critical."""
    alerts = (FILES / "alerts.yml").read_text(encoding="utf-8")
    table = PAGE.partition("## Rules and alerts")[2]

    assert re.findall(r"^\| `(\w+)`", table, re.MULTILINE) == re.findall(r"alert: (\w+)", alerts)
    critical = [part for part in alerts.split("- alert: ") if "severity: critical" in part]
    assert [part.split()[0] for part in critical] == ["JobInfoCacheNoDashboardAnswers"]


def test_files_are_named() -> None:
    """The page links every file of the directory."""
    assert [path.name for path in FILES.iterdir() if f"monitoring/{path.name})" not in PAGE] == []
