"""What each answer of a dashboard becomes."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from enum import Enum
from typing import Any

import pytest
import requests
import responses

from jobinfo_cache.dashboard import DashboardClient
from jobinfo_cache.errors import (
    BadResponse,
    DashboardAuthError,
    DashboardError,
    DashboardUnavailable,
    InvalidJobId,
    JobConflict,
    JobNotFound,
)

URL = "http://head:8265"
JOB = {
    "type": "SUBMISSION",
    "job_id": None,
    "submission_id": "x",
    "status": "RUNNING",
    "entrypoint": "true",
    "runtime_env": {"env_vars": {"PASSWORD": "hunter2"}},
    "start_time": 1_796_074_826_040,
}
GHOST = {
    **JOB,
    "status": "FAILED",
    "error_type": "JOB_SUPERVISOR_ACTOR_DIED",
    "entrypoint": "Entrypoint not found.",
    "start_time": None,
}
TRACEBACK = "Traceback (most recent call last):\n  File ...\nRuntimeError: "


@pytest.fixture
def dashboard() -> Iterator[responses.RequestsMock]:
    """Scripted answers instead of a network."""
    with responses.RequestsMock() as mock:
        yield mock


@pytest.fixture
def client() -> DashboardClient:
    """The client under test."""
    return DashboardClient(URL, proxies={})


def error_of(ask: Callable[[], object]) -> DashboardError:
    with pytest.raises(DashboardError) as caught:
        ask()
    return caught.value


def test_a_job(dashboard: responses.RequestsMock, client: DashboardClient) -> None:
    """The fields are the dashboard's; the value is as old as the request."""
    dashboard.get(f"{URL}/api/jobs/x", json=JOB)
    before = datetime.now(timezone.utc)
    info = client.get_job_info("x")
    assert before <= info.fetched_at <= datetime.now(timezone.utc)
    assert (info.status, info.submission_id) == ("RUNNING", "x")
    assert info.runtime_env == {"env_vars": {"PASSWORD": "hunter2"}}


@pytest.mark.parametrize(
    ("job_id", "path"),
    [("a/b", "a%2Fb"), ("a b?c#d", "a%20b%3Fc%23d"), ("%2F", "%252F"), ("ü", "%C3%BC")],
)
def test_ids_are_quoted(
    dashboard: responses.RequestsMock, client: DashboardClient, job_id: str, path: str
) -> None:
    """Whatever an id holds, it stays one part of the path."""
    dashboard.get(f"{URL}/api/jobs/{path}", json={**JOB, "submission_id": job_id})
    client.get_job_info(job_id)
    assert dashboard.calls[0].request.url == f"{URL}/api/jobs/{path}"


@pytest.mark.parametrize("job_id", ["", ".", "..", "a\nb", "a" * 1025])
def test_an_impossible_id_is_refused_by_every_method(job_id: str, client: DashboardClient) -> None:
    """Before anything is sent."""
    asks: list[Callable[[], object]] = [
        lambda: client.get_job_info(job_id),
        lambda: client.get_job_log(job_id),
        lambda: client.stop_job(job_id),
        lambda: client.delete_job(job_id),
        lambda: client.submit_job("true", submission_id=job_id),
    ]
    for ask in asks:
        with pytest.raises(InvalidJobId):
            ask()


def test_a_driver_job_is_found_by_either_id(
    dashboard: responses.RequestsMock, client: DashboardClient
) -> None:
    """The answer about one id may name the other as well, or none."""
    for ids in ({"job_id": "x"}, {"job_id": "x", "submission_id": "y"}, {"job_id": None}):
        dashboard.get(f"{URL}/api/jobs/x", json={"submission_id": None, "status": "S", **ids})
        assert client.get_job_info("x").status == "S"


def test_the_answer_about_another_job_is_refused(
    dashboard: responses.RequestsMock, client: DashboardClient
) -> None:
    """It is never taken for the one that was asked for."""
    dashboard.get(f"{URL}/api/jobs/y", json=JOB)
    error = error_of(lambda: client.get_job_info("y"))
    assert type(error) is BadResponse
    assert "another job" in str(error)
    assert "hunter2" not in str(error)


NO_JOBS = {
    "a list": b"[]",
    "null": b"null",
    "a text": b'"x"',
    "a number": b"1",
    "nothing": b"",
    "half an object": b'{"status": "RUNN',
    "invalid utf-8": b'{"status": "\xff"}',
    "deep nesting": b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "a page": b"<!doctype html><title>Sign in</title>",
    "no status": b"{}",
    "null status": b'{"status": null}',
    "empty status": b'{"status": ""}',
    "odd status": b'{"status": ["RUNNING"]}',
    "a huge number": b'{"status": ' + b"1" * 5000 + b"}",
}


@pytest.mark.parametrize("body", NO_JOBS)
def test_a_200_that_is_no_job_is_a_bad_response(
    body: str, dashboard: responses.RequestsMock, client: DashboardClient
) -> None:
    """It names the status, the content type, and the beginning of the body."""
    content = NO_JOBS[body]
    dashboard.get(f"{URL}/api/jobs/x", body=content, content_type="text/html")
    error = error_of(lambda: client.get_job_info("x"))
    assert type(error) is BadResponse
    assert str(error).startswith(f"GET {URL}/api/jobs/x: 200 OK, text/html")
    shown = content[:50].decode("utf-8", "replace") or "empty body"
    assert shown in str(error)
    assert len(str(error)) < 400
    assert error.status_code == 200


def test_a_runtime_env_in_an_unreadable_body_is_not_shown(
    dashboard: responses.RequestsMock, client: DashboardClient
) -> None:
    """The rest of the message is."""
    dashboard.get(f"{URL}/api/jobs/x", body=json.dumps(JOB)[:-1])
    error = error_of(lambda: client.get_job_info("x"))
    assert "hunter2" not in str(error)
    assert "not shown" in str(error)
    assert error.__cause__ is None


def test_a_ghost_is_not_found(dashboard: responses.RequestsMock, client: DashboardClient) -> None:
    """Ray makes up a failed job where a record was deleted; it is in no list either."""
    dashboard.get(f"{URL}/api/jobs/x", json=GHOST)
    error = error_of(lambda: client.get_job_info("x"))
    assert isinstance(error, JobNotFound)
    assert error.job_id == "x"
    dashboard.get(f"{URL}/api/jobs/", json=[GHOST, JOB])
    assert [info.status for info in client.list_jobs()] == ["RUNNING"]


def test_a_job_that_failed_is_no_ghost(
    dashboard: responses.RequestsMock, client: DashboardClient
) -> None:
    """A supervisor can die under a real job: that one has a start time."""
    dashboard.get(f"{URL}/api/jobs/x", json={**GHOST, "start_time": 1})
    assert client.get_job_info("x").status == "FAILED"


@pytest.mark.parametrize("end", ["", ".", "\n"])
def test_the_dashboards_own_404_is_not_found(
    end: str, dashboard: responses.RequestsMock, client: DashboardClient
) -> None:
    """It names the job."""
    dashboard.get(f"{URL}/api/jobs/a%20%20b", body=f"Job a  b does not exist{end}", status=404)
    error = error_of(lambda: client.get_job_info("a  b"))
    assert isinstance(error, JobNotFound)
    assert (error.job_id, error.status_code) == ("a  b", 404)


@pytest.mark.parametrize(
    "body", ["404: Not Found", "<h1>Not found</h1>", "Job y does not exist", ""]
)
def test_any_other_404_is_a_bad_response(
    body: str, dashboard: responses.RequestsMock, client: DashboardClient
) -> None:
    """A proxy or an API server says nothing about the job."""
    dashboard.get(f"{URL}/api/jobs/x", body=body, status=404)
    assert type(error_of(lambda: client.get_job_info("x"))) is BadResponse


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, DashboardAuthError),
        (403, DashboardAuthError),
        (429, DashboardUnavailable),
        (500, DashboardUnavailable),
        (501, BadResponse),
        (502, DashboardUnavailable),
        (503, DashboardUnavailable),
        (504, DashboardUnavailable),
        (599, DashboardUnavailable),
        (301, BadResponse),
        (304, BadResponse),
        (400, BadResponse),
        (405, BadResponse),
        (418, BadResponse),
        (204, BadResponse),
        (206, BadResponse),
    ],
)
def test_statuses(
    status: int,
    kind: type[DashboardError],
    dashboard: responses.RequestsMock,
    client: DashboardClient,
) -> None:
    """Each has one meaning, for all methods."""
    text = "" if status in (204, 304) else "a\n\tbad\x00 \x1b[31mday"
    dashboard.add(responses.GET, f"{URL}/api/version", body=text, status=status)
    dashboard.add(responses.POST, f"{URL}/api/jobs/", body=text, status=status)
    for ask in (client.get_version, lambda: client.submit_job("true")):
        error = error_of(ask)
        assert type(error) is kind
        assert error.status_code == status
        assert ('"a bad [31mday"' if text else "empty body") in str(error)
        assert error.url.startswith(URL)
        assert error.fetched_at is not None
        assert error.last_info is None
        assert type(pickle.loads(pickle.dumps(error))) is kind


NOW = datetime.now(timezone.utc)


@pytest.mark.parametrize(
    ("header", "low", "high"),
    [
        ("7", 7, 7),
        (" 0 ", 0, 0),
        (format_datetime(NOW + timedelta(hours=1), usegmt=True), 3000, 3601),
        (format_datetime(NOW - timedelta(hours=1), usegmt=True), 0, 0),
    ],
    ids=["seconds", "blanks", "date to come", "date gone"],
)
def test_a_retry_after_is_seconds(
    header: str,
    low: float,
    high: float,
    dashboard: responses.RequestsMock,
    client: DashboardClient,
) -> None:
    """Given as a number or as a date; a date in the past is now."""
    dashboard.get(f"{URL}/api/version", status=503, headers={"Retry-After": header})
    error = error_of(client.get_version)
    assert isinstance(error, DashboardUnavailable)
    assert error.retry_after is not None
    assert low <= error.retry_after <= high


@pytest.mark.parametrize(
    "header",
    ["", "-1", "1.5", "soon", "1e3", "9" * 5000, "99999999999", "٣", "Fri, 99 Foo 9999 1:1:1 GMT",
     "Fri, 31 Dec 9999 23:59:59 GMT", "Fri, 31 Dec 9999 23:59:59 -2359", "nan", "inf"],
)  # fmt: skip
def test_an_absurd_retry_after_is_none(
    header: str, dashboard: responses.RequestsMock, client: DashboardClient
) -> None:
    """What names no delay, or one beyond a year, names nothing."""
    dashboard.get(f"{URL}/api/version", status=429, headers={"Retry-After": header})
    error = error_of(client.get_version)
    assert isinstance(error, DashboardUnavailable)
    assert error.retry_after is None


def test_a_list(dashboard: responses.RequestsMock, client: DashboardClient) -> None:
    """One record that cannot be read hides no other job."""
    dashboard.get(f"{URL}/api/jobs/", json=[JOB, {"status": None}, None, {**JOB, "status": "S"}])
    assert [info.status for info in client.list_jobs()] == ["RUNNING", "S"]


def test_an_empty_list(dashboard: responses.RequestsMock, client: DashboardClient) -> None:
    """A dashboard without jobs."""
    dashboard.get(f"{URL}/api/jobs/", json=[])
    assert client.list_jobs() == []


@pytest.mark.parametrize("body", [{}, None, "x", ["x", 1], [{}]])
def test_what_is_no_list_of_jobs_is_a_bad_response(
    body: Any, dashboard: responses.RequestsMock, client: DashboardClient
) -> None:
    """A list of other things is no list of jobs."""
    dashboard.get(f"{URL}/api/jobs/", json=body)
    assert type(error_of(client.list_jobs)) is BadResponse


def test_submit_sends_what_was_given(
    dashboard: responses.RequestsMock, client: DashboardClient
) -> None:
    """And nothing else."""
    dashboard.post(f"{URL}/api/jobs/", json={"job_id": "x", "submission_id": "x"})
    given: dict[str, Any] = {
        "submission_id": "x",
        "runtime_env": {"pip": ["a"]},
        "metadata": {"k": "v"},
        "entrypoint_num_cpus": 1,
        "entrypoint_num_gpus": 0.5,
        "entrypoint_memory": 1000,
        "entrypoint_resources": {"a": 1},
    }
    assert client.submit_job("true", **given) == "x"
    client.submit_job("true")
    first, second = (json.loads(call.request.body or b"") for call in dashboard.calls)
    assert first == {"entrypoint": "true", **given}
    assert second == {"entrypoint": "true"}
    assert dashboard.calls[0].request.headers["Content-Type"] == "application/json"


def test_submit_takes_the_id_of_an_older_ray(
    dashboard: responses.RequestsMock, client: DashboardClient
) -> None:
    """Which called it `job_id`."""
    dashboard.post(f"{URL}/api/jobs/", json={"job_id": "x"})
    assert client.submit_job("true") == "x"


@pytest.mark.parametrize("body", [{}, [], {"submission_id": 1}, {"submission_id": ""}])
def test_a_submission_without_an_id_is_a_bad_response(
    body: Any, dashboard: responses.RequestsMock, client: DashboardClient
) -> None:
    """Nobody could ask about that job."""
    dashboard.post(f"{URL}/api/jobs/", json=body)
    assert type(error_of(lambda: client.submit_job("true"))) is BadResponse


def test_a_submission_id_in_use_is_a_conflict(
    dashboard: responses.RequestsMock, client: DashboardClient
) -> None:
    """Ray says so with a 500."""
    text = "ValueError: Job with submission_id x already exists. "
    text = f"{TRACEBACK * 20}{text}Please use a different submission_id.\n.\n"
    dashboard.post(f"{URL}/api/jobs/", body=text, status=500)
    error = error_of(lambda: client.submit_job("true", submission_id="x"))
    assert isinstance(error, JobConflict)
    assert error.job_id == "x"


def test_a_runtime_env_that_the_dashboard_echoes_is_not_shown(
    dashboard: responses.RequestsMock, client: DashboardClient
) -> None:
    """Neither under its name nor as mere values, however they are written."""
    secret = 'hunter"2\u00fc'
    for echo in (f"bad value {secret}", json.dumps(secret), f"runtime_env: {secret}"):
        dashboard.post(f"{URL}/api/jobs/", body=echo, status=400)
        env = {"env_vars": {"PASSWORD": secret}}
        error = error_of(lambda env=env: client.submit_job("true", runtime_env=env))  # type: ignore[misc]
        assert "hunter" not in str(error)


@pytest.mark.parametrize(
    ("answer", "status", "stopped"),
    [(True, "RUNNING", True), (False, "STOPPED", False), (False, "FAILED", False)],
)
def test_stop(
    answer: bool,
    status: str,
    stopped: bool,
    dashboard: responses.RequestsMock,
    client: DashboardClient,
) -> None:
    """True: accepted; False: the job had ended."""
    dashboard.post(f"{URL}/api/jobs/x/stop", json={"stopped": answer})
    if not answer:
        dashboard.get(f"{URL}/api/jobs/x", json={**JOB, "status": status})
    assert client.stop_job("x") is stopped


def test_a_live_job_that_was_not_stopped_is_a_bad_response(
    dashboard: responses.RequestsMock, client: DashboardClient
) -> None:
    """The caller must not take it for ended."""
    dashboard.post(f"{URL}/api/jobs/x/stop", json={"stopped": False})
    dashboard.get(f"{URL}/api/jobs/x", json=JOB)
    error = error_of(lambda: client.stop_job("x"))
    assert type(error) is BadResponse
    assert "the job is RUNNING" in str(error)


def test_a_driver_job_is_a_conflict(
    dashboard: responses.RequestsMock, client: DashboardClient
) -> None:
    """It can be neither stopped nor deleted, and has no logs."""
    dashboard.post(f"{URL}/api/jobs/x/stop", body="Can only stop submission type jobs", status=400)
    dashboard.delete(f"{URL}/api/jobs/x", body="Can only delete submission type jobs", status=400)
    text = "Can only get logs of submission type jobs"
    dashboard.get(f"{URL}/api/jobs/x/logs", body=text, status=400)
    for ask in (client.stop_job, client.delete_job, client.get_job_log):
        error = error_of(lambda ask=ask: ask("x"))  # type: ignore[misc]
        assert isinstance(error, JobConflict)
        assert error.job_id == "x"


@pytest.mark.parametrize(
    ("status", "words", "kind"),
    [
        (400, "submission type jobs", BadResponse),
        (500, "in a non-terminal state", DashboardUnavailable),
        (500, "Please use a different submission_id", DashboardUnavailable),
    ],
)
@pytest.mark.parametrize("job_id", ["x", "logs"])
def test_to_look_at_a_job_is_never_a_conflict(
    job_id: str,
    status: int,
    words: str,
    kind: type[DashboardError],
    dashboard: responses.RequestsMock,
    client: DashboardClient,
) -> None:
    """Whatever a failing dashboard says: no state of a job forbids to ask for it."""
    dashboard.get(f"{URL}/api/jobs/{job_id}", body=f"it is {words} now", status=status)
    assert type(error_of(lambda: client.get_job_info(job_id))) is kind


def test_an_enum_member_names_the_job_that_it_holds(
    dashboard: responses.RequestsMock, client: DashboardClient
) -> None:
    """Its `str()` is another text, which nobody means."""

    class Id(str, Enum):
        """Texts as enum members."""

        A = "x"

    dashboard.get(f"{URL}/api/jobs/x", json={**JOB, "submission_id": "x"})
    assert client.get_job_info(Id.A).submission_id == "x"


def test_an_unknown_job_is_not_found_by_any_method(
    dashboard: responses.RequestsMock, client: DashboardClient
) -> None:
    """Ray's text is the same everywhere."""
    text = "Job x does not exist"
    dashboard.post(f"{URL}/api/jobs/x/stop", body=text, status=404)
    dashboard.delete(f"{URL}/api/jobs/x", body=text, status=404)
    dashboard.get(f"{URL}/api/jobs/x/logs", body=text, status=404)
    for ask in (client.stop_job, client.delete_job, client.get_job_log):
        assert isinstance(error_of(lambda ask=ask: ask("x")), JobNotFound)  # type: ignore[misc]


def test_delete(dashboard: responses.RequestsMock, client: DashboardClient) -> None:
    """Of a job that has ended."""
    dashboard.delete(f"{URL}/api/jobs/x", json={"deleted": True})
    client.delete_job("x")
    assert len(dashboard.calls) == 1


def test_the_delete_of_a_live_job_is_a_conflict(
    dashboard: responses.RequestsMock, client: DashboardClient
) -> None:
    """Ray says so with a 500."""
    text = "Attempted to delete job 'x', but it is in a non-terminal state RUNNING."
    dashboard.delete(f"{URL}/api/jobs/x", body=TRACEBACK + text, status=500)
    error = error_of(lambda: client.delete_job("x"))
    assert isinstance(error, JobConflict)
    assert error.job_id == "x"


@pytest.mark.parametrize("body", [{}, [], {"deleted": False}, {"deleted": "yes"}])
def test_a_delete_that_is_not_confirmed_is_a_bad_response(
    body: Any, dashboard: responses.RequestsMock, client: DashboardClient
) -> None:
    """Only `true` is."""
    dashboard.delete(f"{URL}/api/jobs/x", json=body)
    assert type(error_of(lambda: client.delete_job("x"))) is BadResponse


def test_logs(dashboard: responses.RequestsMock, client: DashboardClient) -> None:
    """A text, possibly empty; anything else is a bad response."""
    for logs in ("a\nb\n", ""):
        dashboard.get(f"{URL}/api/jobs/x/logs", json={"logs": logs})
        assert client.get_job_log("x") == logs
    dashboard.get(f"{URL}/api/jobs/x/logs", json={"logs": None})
    assert type(error_of(lambda: client.get_job_log("x"))) is BadResponse


def test_serve(dashboard: responses.RequestsMock, client: DashboardClient) -> None:
    """Details, the applications in them, and a config to run."""
    details = {"controller_info": {}, "applications": {"a": {"status": "RUNNING"}}}
    dashboard.get(f"{URL}/api/serve/applications/", json=details)
    dashboard.put(f"{URL}/api/serve/applications/")
    assert client.get_serve_details() == details
    assert client.get_multi_application_status() == {"a": {"status": "RUNNING"}}
    client.update_deployments({"applications": []})
    assert dashboard.calls[0].request.url == f"{URL}/api/serve/applications/?api_type=declarative"
    assert dashboard.calls[2].request.body == b'{"applications": []}'


def test_a_version(dashboard: responses.RequestsMock, client: DashboardClient) -> None:
    """An object, or a bad response."""
    dashboard.get(f"{URL}/api/version", json={"ray_version": "2.60.0"})
    assert client.get_version() == {"ray_version": "2.60.0"}
    dashboard.get(f"{URL}/api/version", json=[])
    assert type(error_of(client.get_version)) is BadResponse


@pytest.mark.parametrize(
    "fault", [MemoryError(), RecursionError(), ValueError("hunter2"), KeyError()]
)
def test_a_parser_that_raises_makes_a_bad_response(
    fault: Exception, dashboard: responses.RequestsMock
) -> None:
    """The parser is the caller's; it gets bytes, and its words are not repeated."""
    seen: list[bytes] = []

    def loads(content: bytes) -> Any:
        seen.append(content)
        raise fault

    dashboard.get(f"{URL}/api/jobs/x", body=b"{}")
    client = DashboardClient(URL, json_loads=loads, proxies={})
    error = error_of(lambda: client.get_job_info("x"))
    assert type(error) is BadResponse
    assert type(fault).__name__ in str(error)
    assert "hunter2" not in str(error)
    assert seen == [b"{}"]


@pytest.mark.parametrize(
    "fault",
    [
        requests.ConnectionError("no"),
        requests.ReadTimeout("slow"),
        requests.exceptions.ChunkedEncodingError("cut"),
        requests.exceptions.InvalidURL("odd"),
        ConnectionResetError(104, "Connection reset by peer"),
        TimeoutError("timed out"),
    ],
)
def test_what_requests_raises_becomes_unavailable(
    fault: Exception, dashboard: responses.RequestsMock, client: DashboardClient
) -> None:
    """It stays as the cause, without frames and headers."""
    dashboard.get(f"{URL}/api/jobs/x", body=fault)
    error = error_of(lambda: client.get_job_info("x"))
    assert type(error) is DashboardUnavailable
    assert error.__cause__ is fault
    assert fault.__traceback__ is None
    assert not isinstance(fault, requests.RequestException) or fault.request is None
