"""What a Ray 2.60 dashboard answers, as tests that run on a simulated and on a real one.

Subclass `WireSuite` with a fixture `wire`, and `TokenSuite` with fixtures `token_wire` and
`token`; all of class scope or wider.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
import requests

from tests.wire.wires import (
    CONNECTS,
    FAILS,
    RUNS,
    SUCCEEDS,
    UNSCHEDULABLE,
    Job,
    Wire,
    job_path,
)

JSON = "application/json; charset=utf-8"
TEXT = "text/plain; charset=utf-8"
FIELDS = [
    "type",
    "job_id",
    "submission_id",
    "driver_info",
    "status",
    "entrypoint",
    "message",
    "error_type",
    "start_time",
    "end_time",
    "metadata",
    "runtime_env",
    "driver_agent_http_address",
    "driver_node_id",
    "driver_exit_code",
]
LOCATED = re.compile("http://127.0.0.1:[0-9]+")
BROWSER_HEADERS = ["Origin", "Referer", "Sec-Fetch-Mode", "Sec-Fetch-Site", "Sec-Fetch-Dest"]


def assert_text(answer: requests.Response, status: int, text: str) -> None:
    """The answer is this plain text."""
    assert (answer.status_code, answer.text) == (status, text)
    assert answer.headers["Content-Type"] == TEXT


def assert_traceback(answer: requests.Response, status: int, *last_lines: str) -> None:
    """The answer is a traceback with these last lines."""
    assert answer.status_code == status
    assert answer.headers["Content-Type"] == TEXT
    lines = answer.text.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-len(last_lines) :] == [*last_lines]


class WireSuite:
    """A dashboard that asks for no token."""

    @pytest.fixture(scope="class")
    @classmethod
    def succeeded(cls, wire: Wire) -> Job:
        job_id = wire.submit(SUCCEEDS, metadata={"owner": "mé"}, runtime_env={"unknown": 1})
        return wire.wait_for(job_id, "SUCCEEDED")

    @pytest.fixture(scope="class")
    @classmethod
    def running(cls, wire: Wire) -> Job:
        job_id = wire.submit(RUNS, runtime_env={"env_vars": {"SECRET": "s3cret"}})
        return wire.wait_for(job_id, "RUNNING")

    @pytest.fixture(scope="class")
    @classmethod
    def waiting(cls, wire: Wire) -> Job:
        return wire.wait_for(wire.submit(SUCCEEDS, **UNSCHEDULABLE), "PENDING")

    @pytest.fixture(scope="class")
    @classmethod
    def driver(cls, wire: Wire) -> Job:
        return wire.run_driver()

    def test_version_has_four_texts(self, wire: Wire) -> None:
        """The version is four texts, the interface's first."""
        answer = wire.request("GET", "/api/version")

        assert answer.status_code == 200
        version = answer.json()
        assert [*version] == ["version", "ray_version", "ray_commit", "session_name"]
        assert (version["version"], version["ray_version"]) == ("4", "2.60.0")
        assert re.fullmatch("[0-9a-f]{40}", version["ray_commit"])
        assert re.fullmatch(r"session_[0-9-]{10}_[0-9_-]+_[0-9]+", version["session_name"])

    def test_headers_are_four(self, wire: Wire) -> None:
        """An answer has no validator and no compression."""
        headers = {"If-None-Match": "*", "Accept-Encoding": "gzip"}
        answer = wire.request("GET", "/api/version", headers=headers)

        assert answer.status_code == 200
        assert [*answer.headers] == ["Content-Type", "Content-Length", "Date", "Server"]
        assert answer.headers["Content-Type"] == JSON
        assert answer.headers["Server"].startswith("Python/3.11 aiohttp/3.")

    def test_succeeded_job(self, wire: Wire, succeeded: Job) -> None:
        """A job that succeeded shows where it ran and exit code 0."""
        assert [*succeeded] == FIELDS
        assert succeeded == {
            **_volatile(succeeded),
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
            **_volatile(running),
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
            **_volatile(waiting),
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
        ending = f"Running entrypoint for job {job['submission_id']}: {FAILS}\n"
        assert job["message"].endswith(ending)
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

    @pytest.mark.parametrize("path", ["/api/jobs", "/api/nothing", "/api/jobs/x/y", "/api"])
    def test_wrong_url(self, wire: Wire, path: str) -> None:
        """A path that is no endpoint is not found in other words than an unknown job."""
        assert_text(wire.request("GET", path), 404, "404: Not Found")

    def test_slash_after_a_job(self, wire: Wire, succeeded: Job) -> None:
        """A job's path does not end in a slash."""
        path = job_path(succeeded["submission_id"])
        assert_text(wire.request("GET", path + "/"), 404, "404: Not Found")

    @pytest.mark.parametrize(
        ("method", "suffix"), [("GET", ""), ("DELETE", ""), ("POST", "/stop"), ("GET", "/logs")]
    )
    def test_unknown_job(self, wire: Wire, method: str, suffix: str) -> None:
        """An unknown job is named in the answer, with its quoting undone."""
        answer = wire.request(method, job_path("né é") + suffix)
        assert_text(answer, 404, "Job né é does not exist")

    def test_submit_answers_with_the_id_twice(self, wire: Wire) -> None:
        """A submission without an id gets one; null fields count as absent."""
        body = {"entrypoint": SUCCEEDS, "submission_id": None, "metadata": None, **UNSCHEDULABLE}
        answer = wire.request("POST", "/api/jobs/", json=body)

        assert answer.status_code == 200
        assert [*answer.json()] == ["job_id", "submission_id"]
        assert answer.json()["job_id"] == answer.json()["submission_id"]
        assert re.fullmatch("raysubmit_[A-Za-z0-9]{16}", answer.json()["job_id"])

    def test_submit_takes_the_old_name_of_the_id(self, wire: Wire) -> None:
        """The id may come as `job_id`, and without a content type."""
        body = b'{"entrypoint": "true", "job_id": "wire-old", "entrypoint_num_cpus": 1000}'
        answer = wire.request("POST", "/api/jobs/", data=body)
        assert answer.json() == {"job_id": "wire-old", "submission_id": "wire-old"}

    def test_used_id(self, wire: Wire, waiting: Job) -> None:
        """An id that is in use is an internal error whose last line says so."""
        job_id = waiting["submission_id"]
        body = {"entrypoint": SUCCEEDS, "submission_id": job_id}
        assert_traceback(
            wire.request("POST", "/api/jobs/", json=body),
            500,
            f"ValueError: Job with submission_id {job_id} already exists. "
            "Please use a different submission_id.",
            ".",
        )

    @pytest.mark.parametrize("body", [b"{", b"", b"[]", b"null", b'"x"', b"\xff"])
    def test_malformed_submit(self, wire: Wire, body: bytes) -> None:
        """A body that is no JSON object is an internal error."""
        answer = wire.request("POST", "/api/jobs/", data=body)
        assert_text(answer, 500, "500 Internal Server Error\n\nServer got itself in trouble")

    @pytest.mark.parametrize(
        ("fields", "complaint"),
        [
            (
                {"metadata": {}},
                "JobSubmitRequest.__init__() missing 1 required positional argument: 'entrypoint'",
            ),
            (
                {"entrypoint": "true", "nonsense": 1},
                "JobSubmitRequest.__init__() got an unexpected keyword argument 'nonsense'",
            ),
            ({"entrypoint": 1}, "entrypoint must be a string, got <class 'int'>"),
            (
                {"entrypoint": "true", "submission_id": 7},
                "submission_id must be a string if provided, got <class 'int'>",
            ),
            (
                {"entrypoint": "true", "runtime_env": []},
                "runtime_env must be a dict, got <class 'list'>",
            ),
            (
                {"entrypoint": "true", "metadata": {"a": 1}},
                "metadata values must be strings, got <class 'int'>",
            ),
            (
                {"entrypoint": "true", "entrypoint_num_cpus": "1"},
                "entrypoint_num_cpus must be a number, got <class 'str'>",
            ),
            (
                {"entrypoint": "true", "entrypoint_memory": 1.5},
                "entrypoint_memory must be an integer, got <class 'float'>",
            ),
            (
                {"entrypoint": "true", "entrypoint_resources": {"a": "b"}},
                "entrypoint_resources values must be numbers, got <class 'str'>",
            ),
        ],
    )
    def test_wrong_fields(self, wire: Wire, fields: dict[str, Any], complaint: str) -> None:
        """A wrong field is a bad request with a traceback."""
        answer = wire.request("POST", "/api/jobs/", json=fields)
        assert_traceback(answer, 400, f"TypeError: {complaint}")

    def test_browser_agent_may_not_submit(self, wire: Wire) -> None:
        """A client that calls itself Mozilla may only read."""
        headers = {"User-Agent": "Mozilla/5.0"}
        refused = wire.request("POST", "/api/jobs/", headers=headers, json={"entrypoint": "true"})

        assert_text(refused, 405, "'POST' method not allowed for browser traffic.")
        assert wire.request("GET", "/api/jobs/", headers=headers).status_code == 200

    @pytest.mark.parametrize("header", BROWSER_HEADERS)
    def test_browser_headers_may_not_change_anything(self, wire: Wire, header: str) -> None:
        """Any header that browsers add forbids every other method, on unknown jobs too."""
        answer = wire.request("DELETE", job_path("nope"), headers={header: "x"})
        assert_text(answer, 405, "'DELETE' method not allowed for browser traffic.")

    def test_browsers_see_no_environment(self, wire: Wire, running: Job) -> None:
        """The values of environment variables are hidden from browsers, in the list as well."""
        headers = {"User-Agent": "Mozilla/5.0"}
        single = wire.request("GET", job_path(running["submission_id"]), headers=headers).json()
        listed = wire.request("GET", "/api/jobs/", headers=headers).json()

        assert single["runtime_env"] == {"env_vars": {"SECRET": "<redacted>"}}
        assert single in listed

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
        stopped = wire.wait_for(job_id, "STOPPED")
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

    def test_logs(self, wire: Wire, succeeded: Job) -> None:
        """The logs are a text that ends with the line about the entrypoint."""
        job_id = succeeded["submission_id"]
        logs = wire.request("GET", job_path(job_id) + "/logs").json()

        assert [*logs] == ["logs"]
        first = logs["logs"].splitlines()[0]
        assert first.endswith(" -- Runtime env is setting up.")
        assert logs["logs"].endswith(f"Running entrypoint for job {job_id}: {SUCCEEDS}\n")

    def test_logs_of_a_waiting_job(self, wire: Wire, waiting: Job) -> None:
        """A job that has not started has empty logs."""
        answer = wire.request("GET", job_path(waiting["submission_id"]) + "/logs")
        assert answer.json() == {"logs": ""}

    def test_driver_job(self, wire: Wire, driver: Job) -> None:
        """A driver job has no submission id, and an end of 0 while it runs."""
        assert [*driver] == FIELDS
        job_id = driver["job_id"]
        assert re.fullmatch("[0-9a-f]{8}", job_id)
        assert driver == {
            **_volatile(driver),
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
        wire.wait_for(job["job_id"], "STOPPED")
        assert wire.request("DELETE", path).json() == {"deleted": True}
        for job_id in (job["job_id"], submission_id):
            answer = wire.request("GET", job_path(job_id))
            assert_text(answer, 404, f"Job {job_id} does not exist")

    @pytest.mark.parametrize(
        "job_id", ["a b", "a?b", "a#b", "ü", "%2F", "a%b", "x\ny", "stop", "logs", "a" * 240]
    )
    def test_odd_id(self, wire: Wire, job_id: str) -> None:
        """An odd id works as long as it is quoted."""
        assert wire.submit(SUCCEEDS, submission_id=job_id, **UNSCHEDULABLE) == job_id
        assert wire.request("GET", job_path(job_id)).json()["submission_id"] == job_id

    def test_id_that_is_a_dot(self, wire: Wire) -> None:
        """One dot can be submitted; asking for it brings the whole list."""
        wire.submit(SUCCEEDS, submission_id=".", **UNSCHEDULABLE)
        answer = wire.request("GET", job_path("."))
        assert "." in [job["submission_id"] for job in answer.json()]

    def test_id_that_is_two_dots(self, wire: Wire) -> None:
        """Two dots can be submitted; asking for them asks for another page."""
        wire.submit(SUCCEEDS, submission_id="..", **UNSCHEDULABLE)
        assert_text(wire.request("GET", job_path("..")), 404, "404: Not Found")

    def test_empty_id(self, wire: Wire) -> None:
        """An empty id is replaced by a generated one."""
        job_id = wire.submit(SUCCEEDS, submission_id="", **UNSCHEDULABLE)
        assert job_id.startswith("raysubmit_")

    def test_head(self, wire: Wire) -> None:
        """HEAD is GET without the body."""
        answer = wire.request("HEAD", "/api/version")
        assert (answer.status_code, answer.content) == (200, b"")
        assert int(answer.headers["Content-Length"]) > 100

    @pytest.mark.parametrize("method", ["PUT", "OPTIONS", "PATCH", "DELETE"])
    def test_other_methods(self, wire: Wire, method: str) -> None:
        """A method that the endpoint does not have is refused, with those that it has."""
        answer = wire.request(method, "/api/jobs/")
        assert_text(answer, 405, "405: Method Not Allowed")
        assert answer.headers["Allow"] == "GET,HEAD,POST"

    @pytest.mark.parametrize("method", ["GET", "PUT"])
    def test_serve_is_not_installed(self, wire: Wire, method: str) -> None:
        """Without Ray Serve its path says how to install it."""
        answer = wire.request(method, "/api/serve/applications/", json={"applications": []})
        words = 'Serve dependencies are not installed. Please run `pip install "ray[serve]"`.'
        assert_text(answer, 501, words)

    def test_open_pages(self, wire: Wire) -> None:
        """The health check, the index page and the mode are there."""
        health = wire.request("GET", "/api/gcs_healthz")
        mode = wire.request("GET", "/api/authentication_mode")
        index = wire.request("GET", "/")

        assert (health.status_code, health.text) == (200, "success")
        assert health.headers["Content-Type"] == "application/text; charset=utf-8"
        assert mode.json() == {"authentication_mode": "disabled"}
        assert (index.status_code, index.headers["Content-Type"]) == (200, "text/html")

    def test_a_connection_is_kept(self, wire: Wire) -> None:
        """Requests one after another share a connection."""
        with requests.Session() as session:
            session.trust_env = False
            answers = [session.get(wire.url + "/api/version", stream=True) for _ in range(1)]
            connection = answers[0].raw.connection
            assert answers[0].json()
            again = session.get(wire.url + "/api/version", stream=True)
            assert again.raw.connection is connection
            assert again.json()


class TokenSuite:
    """A dashboard that asks for a token."""

    @pytest.mark.parametrize(
        ("method", "path"),
        [
            ("GET", "/api/version"),
            ("GET", "/api/jobs/"),
            ("POST", "/api/jobs/"),
            ("GET", "/api/jobs/nope"),
            ("GET", "/api/nothing"),
        ],
    )
    def test_no_token(self, token_wire: Wire, method: str, path: str) -> None:
        """Without a token nothing is told, not even what exists."""
        answer = token_wire.request(method, path)
        assert_text(answer, 401, "Unauthorized: Missing authentication token")
        assert "WWW-Authenticate" not in answer.headers

    @pytest.mark.parametrize("header", ["Authorization", "X-Ray-Authorization", "authorization"])
    @pytest.mark.parametrize(
        "value", ["Bearer wrong", "Bearer ", "Basic {}", "{}", "bearer {}", "Bearer  {}"]
    )
    def test_wrong_token(self, token_wire: Wire, token: str, header: str, value: str) -> None:
        """Anything but the very words is refused."""
        answer = token_wire.request("GET", "/api/version", headers={header: value.format(token)})
        assert_text(answer, 403, "Forbidden: Invalid authentication token")

    @pytest.mark.parametrize(
        "header", ["Authorization", "X-Ray-Authorization", "x-ray-authorization"]
    )
    def test_right_token(self, token_wire: Wire, token: str, header: str) -> None:
        """The token is taken from either header, whatever the case of its name."""
        answer = token_wire.request("GET", "/api/jobs/", headers={header: f"Bearer {token}"})
        assert answer.status_code == 200

    def test_cookie(self, token_wire: Wire, token: str) -> None:
        """The token is taken from a cookie as well."""
        path = "/api/version"
        right = token_wire.request(
            "GET", path, headers={"Cookie": f"ray-authentication-token={token}"}
        )
        wrong = token_wire.request("GET", path, headers={"Cookie": "ray-authentication-token=no"})
        assert (right.status_code, wrong.status_code) == (200, 403)

    def test_two_headers(self, token_wire: Wire, token: str) -> None:
        """Of two headers the standard one counts."""
        right, wrong = f"Bearer {token}", "Bearer wrong"
        codes = [
            token_wire.request(
                "GET", "/api/version", headers={"Authorization": one, "X-Ray-Authorization": other}
            ).status_code
            for one, other in ((right, wrong), (wrong, right))
        ]
        assert codes == [200, 403]

    def test_open_pages(self, token_wire: Wire) -> None:
        """What a browser needs to log in, and the health check, ask for no token."""
        mode = token_wire.request("GET", "/api/authentication_mode")
        assert mode.json() == {"authentication_mode": "token"}
        assert token_wire.request("GET", "/api/gcs_healthz").text == "success"
        assert token_wire.request("GET", "/").status_code == 200
        assert token_wire.request("GET", "/static/nope").status_code == 404


def _volatile(job: Job) -> Job:
    """The fields that differ from job to job."""
    names = ["submission_id", "job_id", "start_time", "end_time"]
    return {name: job[name] for name in [*names, "driver_agent_http_address", "driver_node_id"]}
