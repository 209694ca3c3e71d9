"""Checks that the wire suite shares."""

from __future__ import annotations

import re

import requests

from tests.wire.wires import Job

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


def volatile(job: Job) -> Job:
    """The fields that differ from job to job."""
    names = ["submission_id", "job_id", "start_time", "end_time"]
    return {name: job[name] for name in [*names, "driver_agent_http_address", "driver_node_id"]}
