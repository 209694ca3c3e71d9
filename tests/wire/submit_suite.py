"""What a dashboard says to a submission."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.wire.checks import (
    assert_text,
    assert_traceback,
)
from tests.wire.jobs import WithJobs
from tests.wire.wires import SUCCEEDS, UNSCHEDULABLE, Job, Wire, job_path


class SubmitSuite(WithJobs):
    """What a submission brings, and which ones are refused."""

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
