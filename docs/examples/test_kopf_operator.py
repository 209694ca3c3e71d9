"""The kopf operators, run by kopf itself on a fake API server."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_api import FakeApi

from jobinfo_cache.testing import SimulatedDashboard

HERE = Path(__file__).parent / "kopf_operator"
Wait = Callable[..., None]


@contextlib.contextmanager
def running(api: FakeApi, program: str, place: Path) -> Iterator[Path]:
    """kopf with that program; yields where its log is. It must end well."""
    log = place / "kopf.log"
    environment = {
        **os.environ,
        "KUBECONFIG": str(api.kubeconfig(place / "kubeconfig")),
        "JOBINFO_CACHE_POLL_INTERVAL": "0.3",
    }
    command = [sys.executable, "-m", "kopf", "run", "-A", "--standalone", str(HERE / program)]
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
        try:
            yield log
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=30) in (0, -signal.SIGTERM), log.read_text()


def status_of(api: FakeApi, name: str) -> str:
    annotations = api.get("rayjobs", name)["metadata"].get("annotations") or {}
    return str(annotations.get("example.com/ray-status", ""))


def finalizers_of(api: FakeApi, name: str) -> list[str]:
    return api.get("rayjobs", name)["metadata"].get("finalizers") or []


@pytest.fixture
def dashboard(api: FakeApi) -> Iterator[SimulatedDashboard]:
    """A dashboard with three jobs that run, and their RayJobs."""
    with SimulatedDashboard() as dashboard:
        annotations = {"example.com/dashboard-url": dashboard.url}
        api.create("rayclusters", "RayCluster", "one", metadata={"annotations": annotations})
        for name in ("a", "b", "c"):
            dashboard.add_job(name, status="RUNNING")
            status = {"jobId": name, "rayClusterName": "one"}
            api.create("rayjobs", "RayJob", name, spec={}, status=status)
        yield dashboard


def test_timer_follows_each_job_to_its_end_and_is_quiet(
    api: FakeApi, dashboard: SimulatedDashboard, eventually: Wait, tmp_path: Path
) -> None:
    """Statuses come out right, no handler fails (the fake server does: it lacks a lot), and
    kopf's finalizer goes with the end of a job.
    """
    with running(api, "operator_with_timer.py", tmp_path) as log:
        eventually(lambda: all(status_of(api, name) == "RUNNING" for name in "abc"))
        assert finalizers_of(api, "a")
        ends = ["SUCCEEDED", "FAILED", "STOPPED"]
        for name, status in zip("abc", ends, strict=True):
            dashboard.set_status(name, status)
        eventually(lambda: [status_of(api, name) for name in "abc"] == ends)
        eventually(lambda: not finalizers_of(api, "a"))

    assert "[default/" not in log.read_text(encoding="utf-8")


def test_errors_work_too_and_are_noisy(
    api: FakeApi, dashboard: SimulatedDashboard, eventually: Wait, tmp_path: Path
) -> None:
    """`TemporaryError` ends as well, and writes an error line for each time that it waits."""
    with running(api, "operator_with_errors.py", tmp_path) as log:
        eventually(lambda: log.read_text(encoding="utf-8").count("failed temporarily") >= 6)
        for name in "abc":
            dashboard.set_status(name, "SUCCEEDED")
        eventually(lambda: all(status_of(api, name) == "SUCCEEDED" for name in "abc"))

    assert "[ERROR" in log.read_text(encoding="utf-8")
