"""The smoke run finds what is wrong with a library that breaks its promises."""

from __future__ import annotations

import json
import logging
import sys
import threading
from typing import Any

import pytest

from jobinfo_cache import CachedDashboardClient, JobInfo, JobInfoCache
from jobinfo_cache.cli import main
from jobinfo_cache.commands import checks
from jobinfo_cache.commands.exits import Exit
from jobinfo_cache.commands.pulse import Meter, Pulse, Reading

pytestmark = pytest.mark.usefixtures("soon")

SMALL = ("smoke", "--jobs", "2", "-o", "json")


def _found(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The summary on stdout."""
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.usefixtures("quick_jobs")
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


@pytest.mark.usefixtures("quick_jobs")
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


@pytest.mark.usefixtures("quick_jobs")
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


@pytest.mark.usefixtures("quick_jobs")
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


@pytest.mark.usefixtures("quick_jobs")
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


@pytest.mark.usefixtures("quick_jobs")
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


@pytest.mark.usefixtures("quick_jobs")
def test_end_that_is_missed_is_found(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that has ended, and that reads still call running, fails the smoke run."""
    real = CachedDashboardClient.get_job_info

    def blind(client: CachedDashboardClient, job_id: str) -> JobInfo:
        info = real(client, job_id)
        return JobInfo(info.raw | {"status": "RUNNING"}, fetched_at=info.fetched_at)

    monkeypatch.setattr(CachedDashboardClient, "get_job_info", blind)
    assert main(["smoke", "--jobs", "1", "--timeout", "1.5", "-o", "json"]) == Exit.FAILED
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
