"""What a dashboard says to a stop and a delete."""

from __future__ import annotations

import pytest

from tests.wire.checks import (
    LOCATED,
    assert_text,
    assert_traceback,
)
from tests.wire.jobs import WithJobs
from tests.wire.wires import RUNS, Job, Wire, job_path


class StopSuite(WithJobs):
    """What can be stopped and deleted, and when."""

    def test_stop_and_delete(self, wire: Wire) -> None:
        """A job runs on for a moment when stopped; only then it can be deleted, once."""
        job_id = wire.submit(RUNS)
        wire.wait_for(job_id, "RUNNING")

        assert_traceback(
            wire.request("DELETE", job_path(job_id)),
            500,
            f"RuntimeError: Attempted to delete job '{job_id}', "
            "but it is in a non-terminal state RUNNING.",
            ".",
        )
        assert wire.request("POST", job_path(job_id) + "/stop").json() == {"stopped": True}
        assert wire.request("GET", job_path(job_id)).json()["status"] == "RUNNING"
        stopped = wire.wait_for_end(job_id)
        assert stopped["status"] == "STOPPED"
        assert stopped["message"] == "Job was intentionally stopped."
        assert (stopped["error_type"], stopped["driver_exit_code"]) == (None, None)
        assert stopped["end_time"] > stopped["start_time"]
        assert LOCATED.fullmatch(stopped["driver_agent_http_address"])
        assert wire.request("DELETE", job_path(job_id)).json() == {"deleted": True}
        again = wire.request("DELETE", job_path(job_id))
        assert_text(again, 404, f"Job {job_id} does not exist")

    def test_stop_of_an_ended_job(self, wire: Wire, succeeded: Job) -> None:
        """A job that has ended is not stopped, and that is no error."""
        answer = wire.request("POST", job_path(succeeded["submission_id"]) + "/stop")
        assert (answer.status_code, answer.json()) == (200, {"stopped": False})

    def test_stop_of_a_waiting_job(self, wire: Wire, waiting: Job) -> None:
        """A stop is accepted for a job that waits for resources, and has no effect."""
        path = job_path(waiting["submission_id"])
        assert wire.request("POST", path + "/stop").json() == {"stopped": True}
        assert wire.request("GET", path).json()["status"] == "PENDING"

    def test_delete_of_a_waiting_job(self, wire: Wire, waiting: Job) -> None:
        """A job that has not started cannot be deleted."""
        job_id = waiting["submission_id"]
        assert_traceback(
            wire.request("DELETE", job_path(job_id)),
            500,
            f"RuntimeError: Attempted to delete job '{job_id}', "
            "but it is in a non-terminal state PENDING.",
            ".",
        )

    @pytest.mark.parametrize(
        ("method", "suffix", "act"),
        [("POST", "/stop", "stop"), ("DELETE", "", "delete"), ("GET", "/logs", "get logs of")],
    )
    def test_driver_job_is_read_only(
        self, wire: Wire, driver: Job, method: str, suffix: str, act: str
    ) -> None:
        """A driver job can be neither stopped nor deleted, and has no logs."""
        answer = wire.request(method, job_path(driver["job_id"]) + suffix)
        assert_text(answer, 400, f"Can only {act} submission type jobs")
