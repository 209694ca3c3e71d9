"""Whatever a server sends, only errors of the library come out, and nothing hangs."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobinfo_cache import Cluster, JobInfoCache, Settings, answers
from jobinfo_cache.answers import Answer
from jobinfo_cache.dashboard import DashboardClient
from jobinfo_cache.errors import BadResponse, DashboardError, JobInfoCacheError, JobNotFound
from jobinfo_cache.job import JobInfo
from jobinfo_cache.testing import FakeClock, FaultServer, settle
from jobinfo_cache.testing.peer import response
from tests.http.kinds import KINDS
from tests.http.words import WORDS, Babbler

BOUND = 5.0  # far above any deadline here, far below for ever
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


@pytest.fixture(scope="module")
def babbler() -> Iterator[tuple[Babbler, str]]:
    """One server for all examples."""
    script = Babbler()
    with FaultServer(script) as server:
        yield script, server.url


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(kind=st.sampled_from(sorted(KINDS)), words=WORDS)
def test_any_bytes_are_an_answer_or_an_error(
    babbler: tuple[Babbler, str], kind: str, words: bytes
) -> None:
    """Of the library, whatever the kind of request."""
    script, url = babbler
    script.words, script.stays = words, False
    with (
        DashboardClient(url, timeout=5.0, proxies={}) as client,
        contextlib.suppress(DashboardError),
    ):
        KINDS[kind](client)


@settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(kinds=st.lists(st.sampled_from(sorted(KINDS)), min_size=2, max_size=3), words=WORDS)
def test_any_bytes_on_a_connection_that_stays_end_with_the_deadline(
    babbler: tuple[Babbler, str], kinds: list[str], words: bytes
) -> None:
    """What is left over of one answer is no part of the next one, and nothing hangs."""
    script, url = babbler
    script.words, script.stays = words, True
    with DashboardClient(url, timeout=0.05, proxies={}) as client:
        for kind in kinds:
            began = time.monotonic()
            with contextlib.suppress(DashboardError):
                KINDS[kind](client)
            assert time.monotonic() - began < BOUND


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(words=st.lists(WORDS, min_size=1, max_size=4))
def test_any_bytes_are_a_snapshot_of_the_cache(
    babbler: tuple[Babbler, str], words: list[bytes]
) -> None:
    """Reads return a job or raise an error of the library, and the worker polls on."""
    script, url = babbler
    script.stays = False
    clock = FakeClock()
    with (
        DashboardClient(url, timeout=5.0, proxies={}) as client,
        JobInfoCache(Settings(jitter=0.0, workers=1), clock=clock) as cache,
    ):
        cached = cache.client(client, Cluster("ns", "one", "uid"))
        for each in words:
            script.words = each
            with contextlib.suppress(JobInfoCacheError):
                assert isinstance(cached.get_job_info("x"), JobInfo)
            settle(cache)
            snapshot = cached.lookup("x")
            assert snapshot.info is not None or snapshot.error is not None
            clock.advance(60.0)
        script.words = response(b'{"status": "SUCCEEDED", "submission_id": "x", "job_id": null}')
        clock.advance(60.0)
        settle(cache)
        assert cached.lookup("x").info is not None
        assert cache.stats().polls_failed["internal"] == 0
