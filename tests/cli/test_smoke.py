"""The smoke run: what it says and leaves behind, and how it ends."""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from jobinfo_cache import DashboardClient
from jobinfo_cache.cli import main
from jobinfo_cache.commands import progress, removal
from jobinfo_cache.commands.exits import Exit
from jobinfo_cache.commands.workload import Job
from jobinfo_cache.testing import SimulatedDashboard
from tests.cli.programs import LIMIT, end_of, program

pytestmark = pytest.mark.usefixtures("soon")

SMALL = ("smoke", "--jobs", "2", "-o", "json")


@pytest.fixture
def dashboard() -> Iterator[SimulatedDashboard]:
    """A dashboard that stands for a real one; its jobs succeed soon."""
    with SimulatedDashboard() as dashboard:
        dashboard.script(pending=0.05, running=0.1)
        yield dashboard


@pytest.fixture
def no_settling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Delete at once: a simulated dashboard has no monitor that would bring a record back."""
    monkeypatch.setattr(removal, "SETTLED", 0.0)


def _found(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The summary on stdout."""
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_all_is_well(capsys: pytest.CaptureFixture[str]) -> None:
    """All kinds of simulated jobs come to the ends they must come to, and nothing is left."""
    assert main(["smoke", "--jobs", "8", "--clusters", "3", "-o", "json"]) == Exit.OK
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert found["ok"]
    assert found["problems"] == []
    assert found["jobs"] == {"SUCCEEDED": 5, "FAILED": 2, "STOPPED": 1}
    assert found["unfinished"] == 0
    assert found["threads_left"] == []
    assert found["reads"] > found["requests"] > 0
    assert found["oldest_answer"] > 0
    assert "8 jobs on 3 clusters" in captured.err


@pytest.mark.usefixtures("quick_jobs")
def test_text_summary(capsys: pytest.CaptureFixture[str]) -> None:
    """The text form names each figure and ends with the verdict."""
    assert main(["smoke", "--jobs", "1"]) == Exit.OK
    rows = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert rows.keys() >= {"jobs", "slowest", "reads", "requests", "oldest", "threads", "smoke"}
    assert rows["jobs"] == "1 SUCCEEDED"
    assert rows["threads"].split() == ["left", "none"]
    assert rows["smoke"] == "ok"


@pytest.mark.usefixtures("no_settling")
def test_custom_jobs_on_a_named_dashboard(
    dashboard: SimulatedDashboard, capsys: pytest.CaptureFixture[str]
) -> None:
    """With `--url` the jobs run the given command there, and are deleted at the end."""
    arguments = ["--url", dashboard.url, "--jobs", "2", "--entrypoint", "echo me", "-o", "json"]
    assert main(["smoke", *arguments]) == Exit.OK
    assert _found(capsys)["jobs"] == {"SUCCEEDED": 2}
    deleted = [r.path for r in dashboard.requests if (r.method, r.status) == ("DELETE", 200)]
    assert len(deleted) == 2


def test_keep_leaves_the_jobs(
    dashboard: SimulatedDashboard, capsys: pytest.CaptureFixture[str]
) -> None:
    """With `--keep` the jobs stay on the dashboard."""
    arguments = ["--url", dashboard.url, "--jobs", "1", "--entrypoint", "true", "--keep"]
    assert main(["smoke", *arguments, "-o", "json"]) == Exit.OK
    assert not [request for request in dashboard.requests if request.method == "DELETE"]


@pytest.mark.usefixtures("no_settling")
def test_time_that_is_up(dashboard: SimulatedDashboard, capsys: pytest.CaptureFixture[str]) -> None:
    """Jobs that do not end in time are counted, stopped and deleted, and the exit code is 4."""
    dashboard.script(running=600.0)
    arguments = ["--url", dashboard.url, "--jobs", "1", "--entrypoint", "x", "--timeout", "0.5"]
    assert main(["smoke", *arguments, "-o", "json"]) == Exit.UNAVAILABLE
    assert _found(capsys)["unfinished"] == 1
    assert dashboard.requests[-1].method == "DELETE"
    assert dashboard.requests[-1].status == 200


def test_unreachable_dashboard(capsys: pytest.CaptureFixture[str]) -> None:
    """A dashboard that refuses connections ends the run with 4 and one line that names it."""
    assert main(["smoke", "--url", "http://127.0.0.1:1", "--jobs", "1"]) == Exit.UNAVAILABLE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "http://127.0.0.1:1" in captured.err


def test_refused_token(dashboard: SimulatedDashboard, capsys: pytest.CaptureFixture[str]) -> None:
    """A dashboard that wants a token ends the run with 5."""
    dashboard.set_token("secret")
    assert main(["smoke", "--url", dashboard.url, "--jobs", "1"]) == Exit.AUTH


@pytest.mark.usefixtures("quick_jobs")
def test_token_is_sent_and_not_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a token in the environment simulated dashboards ask for it, and it is not printed."""
    monkeypatch.setenv("RAY_AUTH_TOKEN", "very-secret")
    assert main(["smoke", "--jobs", "1"]) == Exit.OK
    captured = capsys.readouterr()
    assert "very-secret" not in captured.out + captured.err


@pytest.mark.usefixtures("no_settling")
def test_lost_job(dashboard: SimulatedDashboard, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dashboard that forgets a job ends the run with 3."""
    real = Job.submit

    def submit_in_vain(job: Job, client: DashboardClient) -> None:
        real(job, client)
        dashboard.remove_job(job.key.job_id)

    monkeypatch.setattr(Job, "submit", submit_in_vain)
    assert main(["smoke", "--url", dashboard.url, "--jobs", "1"]) == Exit.NOT_FOUND


@contextmanager
def _running_smoke(dashboard: SimulatedDashboard) -> Iterator[Any]:
    """A smoke program whose one job has been asked about, and never ends by itself."""
    dashboard.script(running=600.0)
    gate = dashboard.gate("/api/jobs/smoke")
    arguments = ("smoke", "--url", dashboard.url, "--jobs", "1", "--entrypoint", "sleep 600")
    with program(*arguments, JOBINFO_CACHE_POLL_INTERVAL="0.1") as process:
        gate.wait_for(1, LIMIT)
        gate.release()
        yield process


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, Exit.INTERRUPTED), (signal.SIGTERM, Exit.TERMINATED)]
)
def test_signal_ends_it_and_its_jobs(
    number: signal.Signals, code: Exit, dashboard: SimulatedDashboard
) -> None:
    """Ctrl-C and SIGTERM end the run with their codes, and the jobs are stopped and deleted."""
    with _running_smoke(dashboard) as process:
        process.send_signal(number)
        ended, stdout, stderr = end_of(process)
    assert (ended, stdout) == (code, "")
    assert "Traceback" not in stderr
    assert [r.method for r in dashboard.requests if r.method in ("POST", "DELETE")] == [
        "POST",
        "POST",
        "DELETE",
    ]


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, Exit.INTERRUPTED), (signal.SIGTERM, Exit.TERMINATED)]
)
def test_second_signal_says_what_may_be_left(
    number: signal.Signals, code: Exit, dashboard: SimulatedDashboard
) -> None:
    """A signal while the jobs are removed ends that, and the jobs are named."""
    with _running_smoke(dashboard) as process:
        dashboard.gate("/api/jobs/")  # the removal does not get beyond its first request
        process.send_signal(signal.SIGINT)
        assert any("removing 1 jobs" in line for line in iter(process.stderr.readline, ""))
        process.send_signal(number)
        ended, stdout, stderr = end_of(process)
    assert (ended, stdout) == (code, "")
    assert re.search(
        r"^cut short: jobs may be left there, from smoke-\w+-00-custom to", stderr, re.M
    )
    assert "Traceback" not in stderr


@pytest.mark.usefixtures("no_settling")
def test_full_disk_leaves_no_jobs(
    dashboard: SimulatedDashboard,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A summary that cannot be written ends the run with 6, when the jobs have been deleted."""
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(["smoke", "--url", dashboard.url, "--jobs", "1"]) == Exit.OUTPUT
    assert "stdout cannot be written: No space left on device" in capsys.readouterr().err
    assert (dashboard.requests[-1].method, dashboard.requests[-1].status) == ("DELETE", 200)


def test_no_noise_on_stderr() -> None:
    """On stderr is what is done and, after a second, how far it is; and nothing else."""
    with program("smoke", "--jobs", "2") as process:
        code, _, stderr = end_of(process)
    assert code == Exit.OK
    first, *later = [re.sub(r"\d+", "N", line) for line in stderr.splitlines()]
    assert first == "N jobs on N clusters"
    assert set(later) <= {"N s: N of N jobs have ended"}  # none if it was over within a second


def test_progress_goes_on_while_nothing_ends(
    dashboard: SimulatedDashboard,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While a dashboard is silent the progress is shown all the same."""
    monkeypatch.setattr(progress, "_LINE_INTERVAL", 0.1)
    monkeypatch.setattr(removal, "SETTLED", 0.0)
    dashboard.script(running=600.0)
    arguments = ["--url", dashboard.url, "--jobs", "1", "--entrypoint", "x", "--timeout", "2.5"]
    assert main(["smoke", *arguments]) == Exit.UNAVAILABLE
    said = capsys.readouterr().err.splitlines()
    assert said.count("2 s: 0 of 1 jobs have ended") >= 1
