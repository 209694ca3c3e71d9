"""Whatever a server sends, only errors of the library come out, and nothing hangs."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobinfo_cache import answers
from jobinfo_cache.answers import Answer
from jobinfo_cache.dashboard import DashboardClient
from jobinfo_cache.errors import BadResponse, DashboardError, JobNotFound
from jobinfo_cache.job import JobInfo
from jobinfo_cache.testing import FaultServer
from jobinfo_cache.testing.peer import Peer, response
from tests.http.kinds import KINDS

SENT = datetime(2026, 1, 1, tzinfo=timezone.utc)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
FIELDS = (
    "type",
    "job_id",
    "submission_id",
    "status",
    "entrypoint",
    "message",
    "error_type",
    "start_time",
    "end_time",
    "metadata",
    "runtime_env",
    "driver_info",
    "driver_exit_code",
)
JOBS = st.dictionaries(st.sampled_from(FIELDS), ANY_JSON | st.sampled_from(["x", "FAILED"]))


def answer_of(body: Any, status: int = 200) -> Answer:
    content = json.dumps(body).encode()
    return Answer("GET", "http://h/api/jobs/x", SENT, status, "application/json", None, content)


@settings(deadline=None)
@given(ANY_JSON | JOBS)
def test_any_json_is_a_job_or_an_error(body: Any) -> None:
    """Never anything but a `JobInfo`, `BadResponse` or `JobNotFound`; every field is readable."""
    try:
        info = answers.job_info(answer_of(body), body, "x", str)
    except (BadResponse, JobNotFound):
        return
    assert isinstance(info, JobInfo)
    assert info.status == body["status"] != ""
    assert info.to_dict()["fetched_at"] == SENT.isoformat()
    repr(info)


@settings(deadline=None)
@given(ANY_JSON | st.lists(JOBS | ANY_JSON))
def test_any_json_is_a_list_of_jobs_or_a_bad_response(body: Any) -> None:
    """Never anything but `JobInfo` in it."""
    try:
        jobs = answers.job_list(answer_of(body), body, str)
    except BadResponse:
        return
    assert all(isinstance(info, JobInfo) for info in jobs)


@settings(deadline=None)
@given(st.integers(100, 999), st.binary(), st.text(), st.none() | st.text())
def test_any_refusal_is_an_error_of_one_line(
    status: int, content: bytes, content_type: str, retry_after: str | None
) -> None:
    """With a retry_after that is None or 0 and more."""
    answer = Answer("GET", "http://h", SENT, status, content_type, retry_after, content)
    error = answers.refusal(answer, str, "x")
    assert isinstance(error, DashboardError)
    assert str(error).isprintable()
    assert len(str(error)) < 400
    assert getattr(error, "retry_after", None) is None or getattr(error, "retry_after", -1) >= 0


HEADS = st.sampled_from(
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x00",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: ",
        b"HTTP/1.1 ",
        b"HTTP/1.0 503 X\r\nRetry-After: ",
        b"HTTP/1.1 302 X\r\nLocation: ",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        response(b"{}")[:-2],
    ]
)
PIECES = st.lists(
    st.binary(max_size=40)
    | st.sampled_from([b"\r\n", b"\r\n\r\n", b"0\r\n\r\n", b"{}", b"5\r\n", b": ", b"\x00", b"-1"]),
    max_size=6,
)


class Babbler:
    """A server that answers each connection with `words` and closes it."""

    def __init__(self) -> None:
        self.words = b""

    def __call__(self, peer: Peer) -> None:
        peer.request()
        peer.send(self.words)


@pytest.fixture(scope="module")
def babbler() -> Iterator[tuple[Babbler, str]]:
    """One server for all examples."""
    script = Babbler()
    with FaultServer(script) as server:
        yield script, server.url


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(kind=st.sampled_from(sorted(KINDS)), head=HEADS, pieces=PIECES)
def test_any_bytes_are_an_answer_or_an_error(
    babbler: tuple[Babbler, str], kind: str, head: bytes, pieces: list[bytes]
) -> None:
    """Of the library, whatever the kind of request."""
    script, url = babbler
    script.words = head + b"".join(pieces)
    with DashboardClient(url, timeout=5.0) as client, contextlib.suppress(DashboardError):
        KINDS[kind](client)
