"""Watching a dashboard's jobs: the lines, the end, and the exit codes."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobinfo_cache.cli import main
from jobinfo_cache.commands.exits import Exit
from jobinfo_cache.testing import SimulatedDashboard
from tests.cli.programs import LIMIT, end_of, line_of, program

pytestmark = pytest.mark.usefixtures("soon")


@pytest.fixture
def dashboard() -> Iterator[SimulatedDashboard]:
    """A dashboard without jobs."""
    with SimulatedDashboard() as dashboard:
        yield dashboard


def _lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """The objects on stdout."""
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def _watch(dashboard: SimulatedDashboard, *arguments: str) -> int:
    return main(["watch", "--url", dashboard.url, "-o", "json", *arguments])


def test_all_jobs_that_have_succeeded(
    dashboard: SimulatedDashboard, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without names all jobs are watched; each has a first line, and the end is 0."""
    for name in ("one", "two"):
        dashboard.add_job(name, status="SUCCEEDED")
    assert _watch(dashboard) == Exit.OK
    assert {(line["job_id"], line["old"], line["status"]) for line in _lines(capsys)} == {
        ("one", None, "SUCCEEDED"),
        ("two", None, "SUCCEEDED"),
    }


@pytest.mark.parametrize("status", ["FAILED", "STOPPED"])
def test_job_that_did_not_succeed(dashboard: SimulatedDashboard, status: str) -> None:
    """When one of the jobs failed or was stopped, the end is 1."""
    dashboard.add_job("good", status="SUCCEEDED")
    dashboard.add_job("bad", status=status)
    assert _watch(dashboard) == Exit.FAILED


def test_full_disk(
    dashboard: SimulatedDashboard,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A line that cannot be written ends it with 6 and one line, though a job has failed."""
    dashboard.add_job("bad", status="FAILED")
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert _watch(dashboard) == Exit.OUTPUT
    assert capsys.readouterr().err == (
        "jobinfo-cache: stdout cannot be written: No space left on device\n"
    )


def test_only_named_jobs(dashboard: SimulatedDashboard, capsys: pytest.CaptureFixture[str]) -> None:
    """With names only those jobs are watched, each once, also under its driver's id."""
    dashboard.add_job("mine", status="SUCCEEDED", driver_job_id="01000000")
    dashboard.add_job("other", status="RUNNING")
    assert _watch(dashboard, "mine", "01000000", "mine") == Exit.OK
    assert sorted(line["job_id"] for line in _lines(capsys)) == ["01000000", "mine"]


def test_each_change_is_a_line(dashboard: SimulatedDashboard) -> None:
    """A status that changes is a new line that names the old one and the new one."""
    dashboard.add_job("job", status="PENDING")
    with program("watch", "--url", dashboard.url, JOBINFO_CACHE_POLL_INTERVAL="0.1") as process:
        assert line_of(process).split()[1:] == ["job", "PENDING"]
        dashboard.set_status("job", "RUNNING")
        assert line_of(process).split()[1:] == ["job", "PENDING", "->", "RUNNING"]
        dashboard.set_status("job", "SUCCEEDED")
        assert line_of(process).split()[1:] == ["job", "RUNNING", "->", "SUCCEEDED"]
        assert end_of(process) == (Exit.OK, "", "")


def test_trouble_and_recovery_are_lines(dashboard: SimulatedDashboard) -> None:
    """A dashboard that fails for a while is a line with an error and one without it."""
    dashboard.add_job("job", status="RUNNING")
    arguments = ("watch", "--url", dashboard.url, "job", "-o", "json")
    with program(*arguments, JOBINFO_CACHE_POLL_INTERVAL="0.1") as process:
        assert json.loads(line_of(process))["error"] is None
        dashboard.fault("503")
        failing = json.loads(line_of(process))
        assert (failing["status"], failing["error"]["kind"]) == ("RUNNING", "unavailable")
        dashboard.fault(None)
        assert json.loads(line_of(process))["error"] is None
        dashboard.set_status("job", "SUCCEEDED")
        code, _, stderr = end_of(process)
    assert code == Exit.OK
    assert "WARNING jobinfo_cache" in stderr


def test_secrets_of_the_runtime_environment_are_left_out(
    dashboard: SimulatedDashboard, capsys: pytest.CaptureFixture[str]
) -> None:
    """The JSON form has all fields of a job but its runtime environment."""
    secret = {"env_vars": {"PASSWORD": "very-secret"}}
    dashboard.add_job("job", status="SUCCEEDED", runtime_env=secret, metadata={"a": "b"})
    assert _watch(dashboard) == Exit.OK
    (line,) = _lines(capsys)
    assert "runtime_env" not in line["job"]
    assert "very-secret" not in json.dumps(line)
    assert line["job"]["metadata"] == {"a": "b"}


def test_no_jobs(dashboard: SimulatedDashboard, capsys: pytest.CaptureFixture[str]) -> None:
    """A dashboard without jobs has nothing to watch."""
    assert _watch(dashboard) == Exit.OK
    assert capsys.readouterr() == ("", "there are no jobs\n")


def test_ids_that_nobody_can_ask_about(
    dashboard: SimulatedDashboard, capsys: pytest.CaptureFixture[str]
) -> None:
    """A job of the list whose id cannot be asked about is left out, and that is said."""
    dashboard.add_job("..", status="RUNNING")
    dashboard.add_job("good", status="SUCCEEDED")
    assert _watch(dashboard) == Exit.OK
    captured = capsys.readouterr()
    assert captured.out.count("\n") == 1
    assert "left out: job_id is '..'" in captured.err


def test_unknown_job(dashboard: SimulatedDashboard, capsys: pytest.CaptureFixture[str]) -> None:
    """A name that the dashboard does not know ends it with 3 at once, although others run."""
    dashboard.add_job("good", status="RUNNING")
    assert _watch(dashboard, "good", "typo") == Exit.NOT_FOUND
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "typo" in captured.err


def test_job_that_vanishes(dashboard: SimulatedDashboard) -> None:
    """A job that is deleted meanwhile is a line, and the end is 3."""
    dashboard.add_job("job", status="RUNNING")
    arguments = ("watch", "--url", dashboard.url, "-o", "json")
    with program(*arguments, JOBINFO_CACHE_POLL_INTERVAL="0.1") as process:
        line_of(process)
        dashboard.remove_job("job")
        assert json.loads(line_of(process))["error"]["kind"] == "not_found"
        assert end_of(process)[0] == Exit.NOT_FOUND


@pytest.mark.parametrize("names", [(), ("job",)])
@pytest.mark.parametrize("fault", ["refuse", "reset", "500", "garbage"])
def test_no_usable_dashboard_at_the_start(
    names: tuple[str, ...],
    fault: str,
    dashboard: SimulatedDashboard,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What cannot be reached, or is no dashboard, ends it with 4 and one line that names it."""
    dashboard.fault(fault)
    assert _watch(dashboard, *names) == Exit.UNAVAILABLE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert dashboard.url in captured.err


def test_wrong_token(
    dashboard: SimulatedDashboard,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A token that is refused ends it with 5, and is not shown."""
    dashboard.set_token("right")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "wrong-one")
    assert _watch(dashboard) == Exit.AUTH
    captured = capsys.readouterr()
    assert "wrong-one" not in captured.out + captured.err


def test_token_that_is_refused_later(dashboard: SimulatedDashboard) -> None:
    """A token that is refused from some moment on ends it with 5."""
    dashboard.set_token("right")
    dashboard.add_job("job", status="RUNNING")
    arguments = ("watch", "--url", dashboard.url)
    with program(*arguments, RAY_AUTH_TOKEN="right", JOBINFO_CACHE_POLL_INTERVAL="0.1") as process:
        line_of(process)
        dashboard.set_token("another")
        assert end_of(process)[0] == Exit.AUTH


def test_time_that_is_up(dashboard: SimulatedDashboard, capsys: pytest.CaptureFixture[str]) -> None:
    """Jobs that have not ended when the time is up end it with 4, and are counted."""
    dashboard.add_job("job", status="RUNNING")
    assert _watch(dashboard, "--timeout", "0.3") == Exit.UNAVAILABLE
    assert "timed out; 1 jobs have not ended" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, Exit.INTERRUPTED), (signal.SIGTERM, Exit.TERMINATED)]
)
def test_signal_ends_it_quietly(
    number: signal.Signals, code: Exit, dashboard: SimulatedDashboard
) -> None:
    """Ctrl-C and SIGTERM end it with their codes, also while a request hangs."""
    dashboard.add_job("job", status="RUNNING")
    with program("watch", "--url", dashboard.url, JOBINFO_CACHE_POLL_INTERVAL="0.1") as process:
        line_of(process)
        gate = dashboard.gate()
        gate.wait_for(1, LIMIT)
        process.send_signal(number)
        assert end_of(process) == (code, "", "")
        gate.release()


def test_reader_that_goes(dashboard: SimulatedDashboard) -> None:
    """When nobody reads stdout any more it ends quietly, although the job runs on."""
    dashboard.add_job("job", status="PENDING")
    with program("watch", "--url", dashboard.url, JOBINFO_CACHE_POLL_INTERVAL="0.1") as process:
        line_of(process)
        assert process.stdout is not None
        process.stdout.close()
        dashboard.set_status("job", "RUNNING")
        assert process.wait(LIMIT) == Exit.OK
        assert process.stderr is not None
        assert process.stderr.read() == ""
