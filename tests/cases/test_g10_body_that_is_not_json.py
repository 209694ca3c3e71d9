"""G10: a traceback, a proxy's page or a login page where a job should be."""

from __future__ import annotations

import pytest

from jobinfo_cache import Cluster, DashboardClient, JobInfoCache, Settings
from jobinfo_cache.errors import BadResponse, DashboardError, DashboardUnavailable
from jobinfo_cache.testing import FakeClock, FaultServer, settle
from jobinfo_cache.testing.peer import Peer

TRACEBACK = b'Traceback (most recent call last):\n  File "head.py", line 1\nRuntimeError: no GCS'
PAGE = b"<html><h1>Application is not available</h1></html>"
LOGIN = b"<!doctype html><title>Sign in</title>" + b" " * 5000
OTHER = b'{"status": "RUNNING", "submission_id": "other", "job_id": null}'
GOOD = b'{"status": "RUNNING", "submission_id": "a", "job_id": null}'
MOST = 400  # characters of a message: the URL and 200 of the body

Answer = tuple[bytes, str, str]  # body, status, content type

OUTAGES: dict[str, Answer] = {
    "a traceback": (TRACEBACK, "500 Internal Server Error", "text/plain"),
    "a router's page": (PAGE, "503 Service Unavailable", "text/html"),
}
ODD: dict[str, Answer] = {
    "a login page": (LOGIN, "200 OK", "text/html"),
    "a list": (b"[]", "200 OK", "application/json"),
    "null": (b"null", "200 OK", "application/json"),
    "a text": (b'"x"', "200 OK", "application/json"),
    "nothing": (b"", "200 OK", "application/json"),
    "half an object": (GOOD[:-1], "200 OK", "application/json"),
    "no UTF-8": (b'{"status": "\xff\xfe"}', "200 OK", "application/json"),
    "deep nesting": (b"[" * 200_000, "200 OK", "application/json"),
    "deep objects": (b'{"a":' * 200_000, "200 OK", "application/json"),
}


class Dashboard:
    """A script: job "a" is answered as the test says, every other job is well."""

    def __init__(self) -> None:
        self.answer: Answer = (GOOD, "200 OK", "application/json")

    def __call__(self, peer: Peer) -> None:
        while received := peer.request():
            body, status, kind = self.answer
            if "/api/jobs/a " not in received.line:
                body, status, kind = OTHER, "200 OK", "application/json"
            peer.answer(body, status, f"Content-Type: {kind}")


def failure_after_running(answer: Answer, clock: FakeClock) -> DashboardError:
    """What a reader gets when the answer comes after a good one; the other job goes on."""
    script = Dashboard()
    with (
        FaultServer(script) as server,
        JobInfoCache(Settings(jitter=0.0, batching=False), clock=clock) as cache,
    ):
        client = cache.client(
            DashboardClient(server.url, timeout=10.0, proxies={}), Cluster("ns", "one", "uid")
        )
        for job_id in ("a", "other"):
            client.lookup(job_id)
        settle(cache)
        script.answer = answer
        clock.advance(3.0)
        settle(cache)
        with pytest.raises(DashboardError) as caught:
            client.get_job_info("a")

        script.answer = (GOOD, "200 OK", "application/json")
        clock.advance(60.0)
        settle(cache)
        assert client.get_job_info("a").status == "RUNNING"
        assert client.get_job_info("other").status == "RUNNING"
        return caught.value


def says_it_all(error: DashboardError, answer: Answer) -> None:
    """The last good status, and a short message of what came instead."""
    _, status, kind = answer
    assert error.last_info is not None
    assert error.last_info.status == "RUNNING"
    assert error.status_code == int(status.split()[0])
    message = str(error)
    assert f"{status}, {kind}" in message
    assert message.isprintable()
    assert len(message) < MOST


@pytest.mark.parametrize("name", OUTAGES)
def test_page_of_an_outage(name: str, clock: FakeClock) -> None:
    """500 and 503 pass: try again, says the class; status, type and a snippet, says the message."""
    error = failure_after_running(OUTAGES[name], clock)
    assert type(error) is DashboardUnavailable
    says_it_all(error, OUTAGES[name])


@pytest.mark.parametrize("name", ODD)
def test_odd_body_with_200(name: str, clock: FakeClock) -> None:
    """A 200 that is no job is a bad response, and the worker lives."""
    error = failure_after_running(ODD[name], clock)
    assert type(error) is BadResponse
    says_it_all(error, ODD[name])


@pytest.mark.parametrize("name", [*OUTAGES, *ODD])
def test_the_other_job_is_polled_on(name: str, clock: FakeClock) -> None:
    """A job whose record makes no sense delays no other; an outage delays both alike."""
    script = Dashboard()
    script.answer = {**OUTAGES, **ODD}[name]
    with (
        FaultServer(script) as server,
        JobInfoCache(Settings(jitter=0.0, batching=False), clock=clock) as cache,
    ):
        client = cache.client(
            DashboardClient(server.url, timeout=10.0, proxies={}), Cluster("ns", "one", "uid")
        )
        client.lookup("other")
        client.lookup("a")
        for _ in range(5):
            settle(cache)
            clock.advance(3.0)
        settle(cache)
        other = client.lookup("other")
        assert other.info is not None
        if name in ODD:
            assert other.error is None
            assert other.age is not None
            assert other.age <= 3.1
