"""The smoke run: what it says when all is well, and that it finds what is not."""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from jobinfo_cache import CachedDashboardClient, DashboardClient, JobInfo, JobInfoCache
from jobinfo_cache.cli import main
from jobinfo_cache.commands import checks, removal
from jobinfo_cache.commands.exits import Exit
from jobinfo_cache.commands.pulse import Meter, Pulse, Reading
from jobinfo_cache.commands.workload import Job
from jobinfo_cache.testing import SimulatedDashboard
from tests.cli.programs import LIMIT, end_of, program

SMALL = ("smoke", "--jobs", "3", "-o", "json")


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


def test_text_summary(capsys: pytest.CaptureFixture[str]) -> None:
    """The text form names each figure and ends with the verdict."""
    assert main(["smoke", "--jobs", "1"]) == Exit.OK
    rows = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert rows.keys() >= {"jobs", "slowest", "reads", "requests", "oldest", "threads", "smoke"}
    assert rows["jobs"] == "1 SUCCEEDED"
    assert rows["threads"].split() == ["left", "none"]
    assert rows["smoke"] == "ok"


def test_reads_that_wait_for_the_dashboard_are_found(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache whose reads ask the dashboard themselves fails the smoke run."""

    def ask(client: CachedDashboardClient, job_id: str) -> JobInfo:
        return client._state.dashboard.get_job_info(job_id)

    monkeypatch.setattr(CachedDashboardClient, "get_job_info", ask)
    assert main(SMALL) == Exit.FAILED
    problems = _found(capsys)["problems"]
    assert any("the limit is 50 ms" in problem for problem in problems)
    assert any("known at its first read" in problem for problem in problems)


def test_printing_is_found(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library that prints fails the smoke run."""
    real = JobInfoCache.stats

    def chatty(cache: JobInfoCache) -> Any:
        sys.stdout.write("I have been asked")
        return real(cache)

    monkeypatch.setattr(JobInfoCache, "stats", chatty)
    assert main(SMALL) == Exit.FAILED
    assert _found(capsys)["problems"] == ["something was printed: I have been asked"]


def test_log_of_last_resort_is_found(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A warning for which nobody configured a handler fails the smoke run."""
    real = JobInfoCache.stats

    def warning(cache: JobInfoCache) -> Any:
        record = logging.LogRecord("x", logging.WARNING, "x", 1, "look", None, None)
        assert logging.lastResort is not None
        logging.lastResort.handle(record)
        return real(cache)

    monkeypatch.setattr(JobInfoCache, "stats", warning)
    assert main(SMALL) == Exit.FAILED
    assert _found(capsys)["problems"] == ["something was printed: look?"]


def test_thread_that_is_left_is_found(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that outlives the cache fails the smoke run."""
    gate = threading.Event()
    thread = threading.Thread(target=gate.wait, name="straggler")
    real = JobInfoCache.stats

    def leave(cache: JobInfoCache) -> Any:
        thread.start()
        return real(cache)

    monkeypatch.setattr(JobInfoCache, "stats", leave)
    try:
        assert main(SMALL) == Exit.FAILED
    finally:
        gate.set()
        thread.join()
    assert _found(capsys)["threads_left"] == ["straggler"]


def test_wrong_end_is_found(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache that takes a success for a failure fails the smoke run."""
    real = CachedDashboardClient.get_job_info

    def lie(client: CachedDashboardClient, job_id: str) -> JobInfo:
        info = real(client, job_id)
        if info.status != "SUCCEEDED":
            return info
        return JobInfo(info.raw | {"status": "FAILED"}, fetched_at=info.fetched_at)

    monkeypatch.setattr(CachedDashboardClient, "get_job_info", lie)
    assert main(["smoke", "--jobs", "1", "-o", "json"]) == Exit.FAILED
    said, became = _found(capsys)["problems"]
    assert said.endswith("is SUCCEEDED, but reads said FAILED")
    assert became.endswith("ended FAILED, not SUCCEEDED")


def test_end_that_changes_is_found(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal status that is another one when read again fails the smoke run."""
    real = CachedDashboardClient.get_job_info
    told: set[str] = set()

    def waver(client: CachedDashboardClient, job_id: str) -> JobInfo:
        info = real(client, job_id)
        if not info.status.is_terminal or job_id not in told:
            told.update({job_id} if info.status.is_terminal else set())
            return info
        return JobInfo(info.raw | {"status": "STOPPED"}, fetched_at=info.fetched_at)

    monkeypatch.setattr(CachedDashboardClient, "get_job_info", waver)
    assert main(["smoke", "--jobs", "1", "-o", "json"]) == Exit.FAILED
    (problem,) = _found(capsys)["problems"]
    assert problem.endswith("was SUCCEEDED and then STOPPED")


def test_end_that_is_missed_is_found(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that has ended, and that reads still call running, fails the smoke run."""
    real = CachedDashboardClient.get_job_info

    def blind(client: CachedDashboardClient, job_id: str) -> JobInfo:
        info = real(client, job_id)
        return JobInfo(info.raw | {"status": "RUNNING"}, fetched_at=info.fetched_at)

    monkeypatch.setattr(CachedDashboardClient, "get_job_info", blind)
    assert main(["smoke", "--jobs", "1", "--timeout", "3", "-o", "json"]) == Exit.FAILED
    found = _found(capsys)
    assert found["unfinished"] == 1
    assert found["problems"][0].endswith("is SUCCEEDED, but reads said no end")


def test_time_that_the_machine_took_is_not_held_against_a_read() -> None:
    """A read is slow by its wall time less the part in which not even the pulse could run."""
    pulse, meter = Pulse(), Meter()
    pulse._stalls = [(10.0, 10.2), (20.0, 20.1)]
    meter.late = [Reading(9.99, 10.21, 0.0), Reading(20.05, 20.17, 0.0)]
    assert checks.about_reads(meter, pulse) == ["a read took 70 ms; the limit is 50 ms"]


def test_first_read_has_a_limit_of_its_own() -> None:
    """The read that starts the threads may take longer than others, but not for ever."""
    pulse, meter = Pulse(), Meter()
    meter._note(Reading(0.0, 0.9, 0.0))
    assert meter.late == []
    assert checks.about_reads(meter, pulse) == []
    meter.first = Reading(0.0, 1.1, 0.0)
    (problem,) = checks.about_reads(meter, pulse)
    assert problem == "the first read took 1100 ms; the limit is 1000 ms"


def test_pulse_notes_when_it_could_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gap between two beats is noted, from the moment on at which the second one was due."""
    pulse = Pulse()
    beats = iter([0.0, 0.006, 0.106])

    def beat() -> float:
        moment = next(beats)
        if moment == 0.106:
            pulse._stop.set()
        return moment

    monkeypatch.setattr("jobinfo_cache.commands.pulse.time.perf_counter", beat)
    pulse._beat()
    assert pulse.stalled(0.0, 0.1) == pytest.approx(0.089)
    assert pulse.stalled(0.2, 0.3) == 0.0


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
    with program(*arguments) as process:
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


def test_no_noise_on_stderr() -> None:
    """On stderr is the progress and nothing else."""
    with program("smoke", "--jobs", "2") as process:
        code, _, stderr = end_of(process)
    assert code == Exit.OK
    assert [line.split()[0] for line in stderr.splitlines()] == ["2", "ended", "ended"]
