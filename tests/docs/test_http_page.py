"""The tables of answers and errors are run, row by row, against a server on loopback."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

import jobinfo_cache
from jobinfo_cache import (
    BadResponse,
    DashboardAuthError,
    DashboardClient,
    DashboardError,
    DashboardUnavailable,
    JobNotFound,
)
from jobinfo_cache.poller import is_outage
from jobinfo_cache.testing import FaultServer
from jobinfo_cache.testing.peer import Peer, answering
from tests.docs.tables import page, plain, table

TEXT = page("reference/http")
OTHERS = table(TEXT, "## Any status but 200")
GOOD = table(TEXT, "## 200")
BELOW = [row["what happens"] for row in table(TEXT, "## Below HTTP")]
PATIENCE = 20.0  # seconds; only a failure uses them up

CALLS: dict[str, Callable[[DashboardClient], object]] = {
    "get_job_info": lambda client: client.get_job_info("x"),
    "list_jobs": lambda client: client.list_jobs(),
    "submit_job": lambda client: client.submit_job("true", submission_id="x"),
    "get_job_log": lambda client: client.get_job_log("x"),
    "stop_job": lambda client: client.stop_job("x"),
    "delete_job": lambda client: client.delete_job("x"),
    "get_serve_details": lambda client: client.get_serve_details(),
    "get_multi_application_status": lambda client: client.get_multi_application_status(),
    "update_deployments": lambda client: client.update_deployments({}),
    "get_version": lambda client: client.get_version(),
}
ABOUT_A_JOB = ["get_job_info", "get_job_log", "stop_job", "delete_job", "submit_job"]


def _methods(words: str) -> list[str]:
    """The methods that the cell "request" names."""
    if words.startswith("about a job"):
        return [name for name in ABOUT_A_JOB if name not in words]
    if words.startswith("any"):
        return [name for name in CALLS if name not in words]
    return [plain(words)]


def _body(words: str) -> bytes:
    if words == "nothing":
        return b""
    return (words if words == "anything" else words.strip("`")).encode()


def _asked(row: dict[str, str], status: str) -> Iterator[tuple[str, object]]:
    """What each method of the row makes of its answer."""
    with FaultServer(answering(_body(row["body"]), f"{status} X")) as server:
        for name in _methods(row["request"]):
            with DashboardClient(server.url, timeout=PATIENCE, proxies={}) as client:
                yield name, _outcome(partial(CALLS[name], client))


def _outcome(ask: Callable[[], object]) -> object:
    try:
        return ask()
    except DashboardError as error:
        return error


@pytest.mark.parametrize("row", OTHERS, ids=lambda row: f"{row['status']} {row['body']}")
def test_any_status_but_200(row: dict[str, str]) -> None:
    """An answer with that status and body is that error, for each of the requests."""
    expected = plain(row["error"])

    outcomes = {name: type(outcome).__name__ for name, outcome in _asked(row, row["status"])}
    assert outcomes == dict.fromkeys(_methods(row["request"]), expected)


@pytest.mark.parametrize("row", GOOD, ids=lambda row: f"{plain(row['request'])} {row['body']}")
def test_200(row: dict[str, str]) -> None:
    """A body is turned into that value, or into that error."""
    expected = plain(row["becomes"]).removeprefix("a ").replace("None", "NoneType")

    outcomes = {name: type(outcome).__name__ for name, outcome in _asked(row, "200")}
    assert outcomes == dict.fromkeys(_methods(row["request"]), expected)


def test_every_request_is_there() -> None:
    """The table has all methods that send a request, and what they send."""
    rows = {plain(row["method"]): plain(row["request"]) for row in table(TEXT, "## The requests")}
    sent = {}
    with FaultServer(answering(b"{}")) as server:
        for name, call in CALLS.items():
            with DashboardClient(f"{server.url}/prefix", timeout=PATIENCE, proxies={}) as client:
                _outcome(partial(call, client))
            sent[name] = server.requests[-1].line.removesuffix(" HTTP/1.1")

    assert {name: line.replace(" /prefix", " ") for name, line in sent.items()} == rows
    assert set(CALLS) | {"close", "abort", "separate", "with_timeout", "url", "timeout"} == {
        name for name in vars(DashboardClient) if not name.startswith("_")
    }


def test_a_stop_that_was_not_one_asks_about_the_job() -> None:
    """It is False for a job that has ended, and refused for one that goes on."""

    def script(status: str, peer: Peer) -> None:
        while received := peer.request():
            is_stop = received.line.startswith("POST")
            peer.answer(b'{"stopped": false}' if is_stop else b'{"status": "%s"}' % status.encode())

    outcomes = []
    for status in ("SUCCEEDED", "RUNNING"):
        with (
            FaultServer(partial(script, status)) as server,
            DashboardClient(server.url, timeout=PATIENCE, proxies={}) as client,
        ):
            outcomes.append(_outcome(partial(client.stop_job, "x")))
    assert outcomes[0] is False
    assert type(outcomes[1]) is BadResponse


def _headers_without_sense(peer: Peer) -> None:
    while peer.request():
        peer.send(b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n{}")


FAULTS: dict[str, str] = {
    "the connection is refused": "refuse",
    "the connection is reset before the answer": "reset-before-headers",
    "the connection is reset in the answer": "reset-after-headers",
    "the answer is cut short": "truncate",
    "the answer is not complete in time": "hang",
    "the answer is larger than `max_response_bytes`": "huge-body",
}


@pytest.mark.parametrize("words", BELOW)
def test_below_http(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no whole answer, the error is the table's, and has no status."""
    expected = {row["what happens"]: plain(row["error"]) for row in table(TEXT, "## Below HTTP")}
    script = _headers_without_sense if words == "the headers make no sense" else None
    token = tmp_path / "none" if words == "the token's file cannot be read" else None
    timeout = 0.2 if FAULTS.get(words) == "hang" else PATIENCE
    if words == "the name has no address":
        monkeypatch.setattr(socket, "getaddrinfo", _no_address)
    with FaultServer(script) as server:
        server.fault(FAULTS.get(words))
        client = DashboardClient(
            server.url, timeout=timeout, token=token, proxies={}, max_response_bytes=1000
        )
        with client:
            error = _outcome(partial(client.get_job_info, "x"))
    assert isinstance(error, DashboardError)
    assert (type(error).__name__, error.status_code) == (expected[words], None)


def _no_address(*arguments: object, **options: object) -> None:
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


ERRORS: dict[str, DashboardError] = {
    "JobNotFound": JobNotFound("", job_id="x", status_code=404),
    "DashboardUnavailable": DashboardUnavailable("", status_code=429),
    "DashboardAuthError": DashboardAuthError("", status_code=401),
    "BadResponse with a status from 500": BadResponse("", status_code=501),
    "BadResponse otherwise": BadResponse("", status_code=404),
    "DashboardError itself": DashboardError(""),
}


def test_what_a_poll_makes_of_it() -> None:
    """An error is about the dashboard or about one job, and is counted under its kind."""
    rows = table(TEXT, "## What a poll makes of it")
    said = {
        plain(row["error of a poll"]): (row["is about"], plain(row["counted as"])) for row in rows
    }

    assert said == {
        name: ("the dashboard" if is_outage(error) else "the job", error.kind)
        for name, error in ERRORS.items()
    }


def test_no_error_is_forgotten() -> None:
    """The tables name each class that a request can end with."""
    named = set(re.findall(r"`(\w+)`", TEXT)) & set(jobinfo_cache.__all__)
    ends = {error.__name__ for error in DashboardError.__subclasses__()}

    assert ends <= named
