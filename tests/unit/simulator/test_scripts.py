"""Jobs move by script and by clock."""

from __future__ import annotations

import pytest

from jobinfo_cache.testing import FakeClock, SimulatedDashboard
from tests.unit.simulator.acts import (
    get,
    request,
    submit,
)

INFINITY = float("inf")


def statuses(dashboard: SimulatedDashboard, clock: FakeClock, step: float, n: int) -> list[str]:
    """The status of job "a" now and after each of `n` steps."""
    seen = [dashboard.job("a")["status"]]
    for _ in range(n):
        clock.advance(step)
        seen.append(dashboard.job("a")["status"])
    return seen


def test_default_script(dashboard: SimulatedDashboard, clock: FakeClock) -> None:
    """A job is PENDING for 0.2 s and RUNNING for 0.5 s unless a script says otherwise."""
    submit(dashboard, "a")

    seen = statuses(dashboard, clock, 0.125, 6)
    assert seen == ["PENDING", "PENDING", *["RUNNING"] * 4, "SUCCEEDED"]


def test_script_of_one_id(dashboard: SimulatedDashboard, clock: FakeClock) -> None:
    """A script for an id is for that submission, one without for all others."""
    dashboard.script("a", pending=1.0, running=1.0, outcome="FAILED", exit_code=7)
    dashboard.script(pending=0.0, running=INFINITY)
    submit(dashboard, "a")
    submit(dashboard, "b")

    assert statuses(dashboard, clock, 1.0, 2) == ["PENDING", "RUNNING", "FAILED"]
    assert dashboard.job("a")["driver_exit_code"] == 7
    clock.advance(1e9)
    assert dashboard.job("b")["status"] == "RUNNING"


def test_times_are_those_of_the_clock(dashboard: SimulatedDashboard, clock: FakeClock) -> None:
    """A job's start is the submission and its end the script's, whenever one looks."""
    submit(dashboard, "a")
    clock.advance(3600.0)

    job = dashboard.job("a")
    assert job["start_time"] == 1_767_225_600_000
    assert job["end_time"] - job["start_time"] == 700


def test_failure_before_the_start(dashboard: SimulatedDashboard, clock: FakeClock) -> None:
    """A job that failed with another error type was nowhere and has no exit code."""
    dashboard.script(outcome="FAILED", error_type="RUNTIME_ENV_SETUP_FAILURE", message="no")
    submit(dashboard, "a")
    clock.advance(1.0)

    job = dashboard.job("a")
    assert (job["error_type"], job["message"]) == ("RUNTIME_ENV_SETUP_FAILURE", "no")
    assert (job["driver_node_id"], job["driver_exit_code"]) == (None, None)


def test_status_that_ray_does_not_know(dashboard: SimulatedDashboard, clock: FakeClock) -> None:
    """A job can be given any status and any other field, for as long as the test likes."""
    submit(dashboard, "a")
    dashboard.set_status("a", "PAUSED", message="on hold", extra=[1])
    clock.advance(3600.0)

    job = get(dashboard, "/api/jobs/a").json()
    assert job == dashboard.job("a")
    assert (job["status"], job["message"], job["extra"]) == ("PAUSED", "on hold", [1])


def test_job_from_the_start(dashboard: SimulatedDashboard, clock: FakeClock) -> None:
    """A job can be there without a submission, and stay as it is until stopped."""
    dashboard.add_job("a", status="PENDING", metadata={"k": "v"})
    clock.advance(3600.0)
    assert dashboard.job("a")["status"] == "PENDING"

    assert request(dashboard, "POST", "/api/jobs/a/stop").json() == {"stopped": True}
    job = dashboard.job("a")
    assert (job["status"], job["metadata"]) == ("STOPPED", {"k": "v"})
    assert job["driver_node_id"] is None


def test_driver_job_always_succeeds(dashboard: SimulatedDashboard, clock: FakeClock) -> None:
    """A driver job runs at once and ends well, with the time of its end."""
    dashboard.add_job("03000000", type="DRIVER", running=2.0)
    assert dashboard.job("03000000")["end_time"] == 0
    clock.advance(2.0)

    job = dashboard.job("03000000")
    assert job["status"] == "SUCCEEDED"
    assert job["end_time"] - job["start_time"] == 2000


def test_end_before_a_slow_stop(dashboard: SimulatedDashboard, clock: FakeClock) -> None:
    """A job that ends while it is being stopped keeps its own outcome."""
    assert dashboard.stop_delay == 0.0
    dashboard.stop_delay = 3.0
    dashboard.script(pending=0.0, running=2.0)
    submit(dashboard, "a")
    request(dashboard, "POST", "/api/jobs/a/stop")

    assert statuses(dashboard, clock, 1.0, 3) == [
        "RUNNING",
        "RUNNING",
        "SUCCEEDED",
        "SUCCEEDED",
    ]


def test_removed_and_resurrected(dashboard: SimulatedDashboard) -> None:
    """A removed job is unknown; what Ray makes of one deleted too early has no start."""
    dashboard.add_job("a", status="SUCCEEDED")
    dashboard.remove_job("a")
    assert get(dashboard, "/api/jobs/a").text == "Job a does not exist"
    dashboard.resurrect("a")

    ghost = get(dashboard, "/api/jobs/a").json()
    assert (ghost["status"], ghost["error_type"]) == ("FAILED", "JOB_SUPERVISOR_ACTOR_DIED")
    assert (ghost["entrypoint"], ghost["start_time"]) == ("Entrypoint not found.", None)
    assert ghost["end_time"] == 1_767_225_600_000


def test_unknown_job(dashboard: SimulatedDashboard) -> None:
    """A test that names a job that is not there is told so."""
    for act in (dashboard.job, dashboard.remove_job):
        with pytest.raises(KeyError):
            act("nope")
    with pytest.raises(KeyError):
        dashboard.set_status("nope", "RUNNING")


def test_id_in_use(dashboard: SimulatedDashboard) -> None:
    """One id is one job."""
    dashboard.add_job("a")
    with pytest.raises(ValueError, match="a"):
        dashboard.add_job("a")


@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
def test_impossible_script(dashboard: SimulatedDashboard, seconds: float) -> None:
    """A script that cannot be is refused."""
    with pytest.raises(ValueError, match="pending is"):
        dashboard.script(pending=seconds)


def test_unknown_type(dashboard: SimulatedDashboard) -> None:
    """A job is a submission or a driver."""
    with pytest.raises(ValueError, match="type is 'OTHER'"):
        dashboard.add_job("a", type="OTHER")


def test_job_is_a_copy(dashboard: SimulatedDashboard) -> None:
    """What a test does with a record does not change the job."""
    dashboard.add_job("a", metadata={"k": "v"})
    dashboard.job("a")["metadata"]["k"] = "w"
    assert dashboard.job("a")["metadata"] == {"k": "v"}


def test_other_id(dashboard: SimulatedDashboard, clock: FakeClock) -> None:
    """A submission has its driver's id from the moment it runs."""
    dashboard.script("a", pending=1.0, driver_job_id="04000000")
    submit(dashboard, "a")
    assert get(dashboard, "/api/jobs/04000000").text == "Job 04000000 does not exist"
    clock.advance(1.0)

    assert get(dashboard, "/api/jobs/04000000").json() == dashboard.job("a")
    assert dashboard.job("04000000")["driver_info"]["id"] == "04000000"


def test_job_that_cannot_start_cannot_be_stopped(
    dashboard: SimulatedDashboard, clock: FakeClock
) -> None:
    """A stop of a job that starts later keeps it from starting; one that never starts stays."""
    dashboard.script("soon", pending=5.0)
    dashboard.script("never", pending=INFINITY)
    for job_id in ("soon", "never"):
        submit(dashboard, job_id)
        stop = request(dashboard, "POST", f"/api/jobs/{job_id}/stop")
        assert stop.json() == {"stopped": True}
    clock.advance(10.0)

    assert dashboard.job("soon")["status"] == "STOPPED"
    assert dashboard.job("never")["status"] == "PENDING"
