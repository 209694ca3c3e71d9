"""What a dashboard says about a job."""

from __future__ import annotations

import itertools
import json
import re

from tests.wire.checks import (
    FIELDS,
    JSON,
    LOCATED,
    assert_text,
    volatile,
)
from tests.wire.jobs import WithJobs
from tests.wire.wires import CONNECTS, FAILS, RUNS, SUCCEEDS, Job, Wire, job_path


class RecordSuite(WithJobs):
    """What the record of a job says."""

    def test_succeeded_job(self, wire: Wire, succeeded: Job) -> None:
        """A job that succeeded shows where it ran and exit code 0."""
        assert [*succeeded] == FIELDS
        assert succeeded == {
            **volatile(succeeded),
            "type": "SUBMISSION",
            "job_id": None,
            "driver_info": None,
            "status": "SUCCEEDED",
            "entrypoint": SUCCEEDS,
            "message": "Job finished successfully.",
            "error_type": None,
            "metadata": {"owner": "mé"},
            "runtime_env": {"unknown": 1},
            "driver_exit_code": 0,
        }
        assert LOCATED.fullmatch(succeeded["driver_agent_http_address"])
        assert re.fullmatch("[0-9a-f]{56}", succeeded["driver_node_id"])
        assert isinstance(succeeded["start_time"], int)
        assert succeeded["end_time"] >= succeeded["start_time"] > 10**12

    def test_running_job(self, wire: Wire, running: Job) -> None:
        """A job that runs has no end and no exit code, and shows its environment to programs."""
        assert [*running] == FIELDS
        assert running == {
            **volatile(running),
            "type": "SUBMISSION",
            "job_id": None,
            "driver_info": None,
            "status": "RUNNING",
            "entrypoint": RUNS,
            "message": "Job is currently running.",
            "error_type": None,
            "end_time": None,
            "metadata": None,
            "runtime_env": {"env_vars": {"SECRET": "s3cret"}},
            "driver_exit_code": None,
        }
        assert LOCATED.fullmatch(running["driver_agent_http_address"])

    def test_waiting_job(self, wire: Wire, waiting: Job) -> None:
        """A job that waits for resources is nowhere yet, and says so."""
        assert waiting == {
            **volatile(waiting),
            "type": "SUBMISSION",
            "job_id": None,
            "driver_info": None,
            "status": "PENDING",
            "entrypoint": SUCCEEDS,
            "message": "Job has not started yet. It may be waiting for resources (CPUs, GPUs, "
            "memory, custom resources) to become available.",
            "error_type": None,
            "end_time": None,
            "metadata": None,
            "runtime_env": None,
            "driver_agent_http_address": None,
            "driver_node_id": None,
            "driver_exit_code": None,
        }

    def test_failed_job(self, wire: Wire) -> None:
        """A command that failed leaves its exit code and the end of its log."""
        job = wire.wait_for(wire.submit(FAILS), "FAILED")

        assert (job["error_type"], job["driver_exit_code"]) == ("JOB_ENTRYPOINT_COMMAND_ERROR", 3)
        assert job["message"].startswith(
            "Job entrypoint command failed with exit code 3, "
            "last available logs (truncated to 20,000 chars):\n"
        )
        line = f"Running entrypoint for job {job['submission_id']}: {FAILS}"
        assert line in job["message"].splitlines()
        assert LOCATED.fullmatch(job["driver_agent_http_address"])

    def test_environment_variable_that_is_no_text(self, wire: Wire) -> None:
        """A number as environment variable is accepted, and the job fails."""
        job_id = wire.submit(SUCCEEDS, runtime_env={"env_vars": {"a": 1}})

        job = wire.wait_for(job_id, "FAILED")
        assert job["error_type"] == "JOB_SUPERVISOR_ACTOR_START_FAILURE"
        assert job["message"].startswith(f"Failed to start supervisor actor {job_id}: 'runtime_env")
        places = [job["driver_agent_http_address"], job["driver_node_id"], job["driver_exit_code"]]
        assert places == [None, None, None]

    def test_list_holds_what_single_answers_say(self, wire: Wire, succeeded: Job) -> None:
        """The list holds the very record of each job, and is never cut short."""
        answer = wire.request("GET", "/api/jobs/?limit=0&status=RUNNING")

        assert answer.headers["Content-Type"] == JSON
        assert succeeded in answer.json()

    def test_list_stays_the_same_byte_for_byte(
        self, wire: Wire, succeeded: Job, running: Job
    ) -> None:
        """While no record changes, nothing in the list does, its order included."""
        lists = [wire.request("GET", "/api/jobs/").content for _ in range(10)]

        assert len({*lists}) < len(lists)
        for one, other in itertools.pairwise(lists):
            assert one == other or by_id(one) != by_id(other)

    def test_browsers_see_no_environment(self, wire: Wire, running: Job) -> None:
        """The values of environment variables are hidden from browsers, in the list as well."""
        headers = {"User-Agent": "Mozilla/5.0"}
        single = wire.request("GET", job_path(running["submission_id"]), headers=headers).json()
        listed = wire.request("GET", "/api/jobs/", headers=headers).json()

        assert single["runtime_env"] == {"env_vars": {"SECRET": "<redacted>"}}
        assert single in listed

    def test_driver_job(self, wire: Wire, driver: Job) -> None:
        """A driver job has no submission id, and an end of 0 while it runs."""
        assert [*driver] == FIELDS
        job_id = driver["job_id"]
        assert re.fullmatch("[0-9a-f]{8}", job_id)
        assert driver == {
            **volatile(driver),
            "type": "DRIVER",
            "submission_id": None,
            "driver_info": {"id": job_id, "node_ip_address": "127.0.0.1"}
            | {"pid": driver["driver_info"]["pid"]},
            "status": "RUNNING",
            "entrypoint": driver["entrypoint"],
            "message": driver["message"],
            "error_type": None,
            "end_time": 0,
            "metadata": driver["metadata"],
            "runtime_env": {},
            "driver_agent_http_address": None,
            "driver_node_id": None,
            "driver_exit_code": None,
        }
        assert re.fullmatch("[0-9]+", driver["driver_info"]["pid"])
        assert wire.request("GET", job_path(job_id)).json()["job_id"] == job_id

    def test_driver_jobs_come_last(self, wire: Wire, driver: Job, succeeded: Job) -> None:
        """The list has the driver jobs after the submissions."""
        types = [job["type"] for job in wire.request("GET", "/api/jobs/").json()]
        assert types == sorted(types, reverse=True)
        assert {*types} == {"DRIVER", "SUBMISSION"}

    def test_both_ids(self, wire: Wire) -> None:
        """A submission whose driver has connected answers to both ids, until it is deleted."""
        submission_id = wire.submit(CONNECTS)
        job = wire.wait_for_driver(submission_id)
        path = job_path(job["job_id"])

        assert job["submission_id"] == submission_id
        assert job["type"] == "SUBMISSION"
        assert job["driver_info"]["id"] == job["job_id"]
        assert wire.request("GET", path).json() == job
        listed = wire.request("GET", "/api/jobs/").json()
        assert [other for other in listed if other["job_id"] == job["job_id"]] == [job]
        assert wire.request("POST", path + "/stop").json() == {"stopped": True}
        wire.wait_for_end(job["job_id"])
        assert wire.request("DELETE", path).json() == {"deleted": True}
        for job_id in (job["job_id"], submission_id):
            answer = wire.request("GET", job_path(job_id))
            assert_text(answer, 404, f"Job {job_id} does not exist")

    def test_logs(self, wire: Wire, succeeded: Job) -> None:
        """The logs are a text that begins with the environment and names the entrypoint."""
        job_id = succeeded["submission_id"]
        logs = wire.request("GET", job_path(job_id) + "/logs").json()

        assert [*logs] == ["logs"]
        first = logs["logs"].splitlines()[0]
        assert first.endswith(" -- Runtime env is setting up.")
        # The command's own output comes before that line or after it.
        line = f"Running entrypoint for job {job_id}: {SUCCEEDS}"
        assert line in logs["logs"].splitlines()

    def test_logs_of_a_waiting_job(self, wire: Wire, waiting: Job) -> None:
        """A job that has not started has empty logs."""
        answer = wire.request("GET", job_path(waiting["submission_id"]) + "/logs")
        assert answer.json() == {"logs": ""}


def by_id(body: bytes) -> dict[tuple[str | None, str | None], Job]:
    """The records of a list."""
    return {(job["submission_id"], job["job_id"]): job for job in json.loads(body)}
