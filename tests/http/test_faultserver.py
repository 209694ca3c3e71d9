"""The fault server does each fault, to every kind of request, and the client lives through it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobinfo_cache.dashboard import DashboardClient
from jobinfo_cache.errors import BadResponse, DashboardError, DashboardUnavailable
from jobinfo_cache.testing import FaultServer, SimulatedDashboard
from jobinfo_cache.testing.peer import Peer, forwarding
from tests.http.certificate import CERTIFICATE
from tests.http.kinds import KINDS

TIMEOUT = 0.05  # of faults that only the deadline ends
PATIENCE = 20.0  # of those that end by themselves
BOUND = 15.0  # far above the deadline, far below for ever

Error = type[DashboardError]

#: What each fault is to the client, and what its message says.
ENDED: dict[str, tuple[Error, str]] = {
    "refuse": (DashboardUnavailable, "refused"),
    "reset-before-headers": (DashboardUnavailable, "reset"),
    "reset-after-headers": (DashboardUnavailable, ""),
    "truncate": (DashboardUnavailable, ""),
    "short-length": (BadResponse, "no JSON"),
    "html": (BadResponse, "200 OK, text/html"),
    "login-redirect": (BadResponse, "302 Found"),
    "429": (DashboardUnavailable, "429 Too Many Requests"),
    "503": (DashboardUnavailable, "503 Service Unavailable"),
    "huge-body": (BadResponse, "more than 33554432 bytes"),
    "gzip-bomb": (BadResponse, "more than 33554432 bytes"),
}
TIMED_OUT = ("stall-handshake", "hang", "drip-headers", "drip-body", "long-length")


@pytest.fixture
def dashboard() -> Iterator[SimulatedDashboard]:
    with SimulatedDashboard() as dashboard:
        dashboard.add_job("x", status="RUNNING")
        yield dashboard


@pytest.fixture
def server(dashboard: SimulatedDashboard) -> Iterator[FaultServer]:
    """A fault server before the dashboard."""
    with FaultServer(forwarding(dashboard.url)) as server:
        yield server


def fails(server: FaultServer, kind: str, timeout: float) -> DashboardError:
    """The error of a request, after one that went well on a connection that is kept."""
    begun = time.monotonic()
    with DashboardClient(server.url, timeout=timeout, verify=str(CERTIFICATE)) as client:
        with pytest.raises(DashboardError) as caught:
            KINDS[kind](client)
        assert time.monotonic() - begun < BOUND
    assert str(caught.value).isprintable()
    return caught.value


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", ENDED)
def test_a_fault_is_an_error_of_the_library(server: FaultServer, fault: str, kind: str) -> None:
    """Of the right class, whatever was asked, and said in words."""
    expected, words = ENDED[fault]
    server.fault(fault)
    error = fails(server, kind, PATIENCE)
    assert type(error) is expected
    assert words in str(error)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", TIMED_OUT)
def test_a_fault_without_an_end_is_unavailable_at_the_deadline(
    server: FaultServer, fault: str, kind: str
) -> None:
    """And nothing is asked twice."""
    server.fault(fault)
    error = fails(server, kind, TIMEOUT)
    assert type(error) is DashboardUnavailable
    assert "within 0.05 s" in str(error)
    assert len(server.requests) <= 1


@pytest.mark.parametrize("fault", [*ENDED, *TIMED_OUT, "close"])
def test_the_same_client_goes_on_when_a_fault_has_ended(server: FaultServer, fault: str) -> None:
    """Whatever happened to its connection; one is kept again then."""
    with DashboardClient(server.url, timeout=PATIENCE) as client:
        client.get_job_info("x")
        server.fault(fault)
        timeout = TIMEOUT if fault in TIMED_OUT else PATIENCE
        with_less = client.with_timeout(timeout)
        if fault == "close":
            assert with_less.get_job_info("x").status == "RUNNING"
        else:
            with pytest.raises(DashboardError):
                with_less.get_job_info("x")
        server.fault(None)
        for kind in ("single", "list", "submit", "logs", "stop"):
            KINDS[kind](client)
        connections = server.connections
        client.get_job_info("x")
        assert server.connections == connections


@pytest.mark.parametrize("fault", ["hang", "drip-headers", "drip-body", "stall-handshake"])
@pytest.mark.parametrize("tls", [None, CERTIFICATE], ids=["http", "https"])
def test_what_hangs_is_completed_when_the_fault_ends(
    dashboard: SimulatedDashboard, fault: str, tls: Path | None
) -> None:
    """The gate of a test: the answer comes when the test says so."""
    statuses: list[str] = []
    with (
        FaultServer(forwarding(dashboard.url), tls=tls) as server,
        DashboardClient(server.url, timeout=PATIENCE, verify=str(CERTIFICATE)) as client,
    ):
        server.fault(fault)
        asker = threading.Thread(target=lambda: statuses.append(client.get_job_info("x").status))
        asker.start()
        server.wait_for(1)
        assert statuses == []
        server.fault(None)
        asker.join(PATIENCE)
    assert statuses == ["RUNNING"]


@pytest.mark.parametrize("fault", ["html", "503", "hang", "reset-before-headers", "huge-body"])
def test_a_fault_instead_of_an_answer_keeps_the_request_from_the_dashboard(
    server: FaultServer, dashboard: SimulatedDashboard, fault: str
) -> None:
    """Nothing is submitted."""
    server.fault(fault)
    fails(server, "submit", TIMEOUT)
    assert dashboard.requests == []


@pytest.mark.parametrize("fault", ["truncate", "reset-after-headers", "drip-body", "short-length"])
def test_a_spoiled_answer_comes_after_the_deed(
    server: FaultServer, dashboard: SimulatedDashboard, fault: str
) -> None:
    """The job is submitted, once, and the client cannot know."""
    server.fault(fault)
    fails(server, "submit", 0.5)
    assert [request.method for request in dashboard.requests] == ["POST"]


def test_times(server: FaultServer) -> None:
    """A fault can be for the next requests only."""
    server.fault("503", times=2)
    with DashboardClient(server.url) as client:
        for _ in range(2):
            with pytest.raises(DashboardUnavailable):
                client.list_jobs()
        assert len(client.list_jobs()) == 1


@pytest.mark.parametrize("status", ["429", "503"])
@pytest.mark.parametrize(
    ("retry_after", "seconds"),
    [("7", 7.0), ("Fri, 31 Dec 1999 23:59:59 GMT", 0.0), ("99999999999999999999", None)],
)
def test_retry_after(
    server: FaultServer, status: str, retry_after: str, seconds: float | None
) -> None:
    """In seconds, as a date, and absurd, which counts as none."""
    server.fault(status, retry_after=retry_after)
    error = fails(server, "single", PATIENCE)
    assert isinstance(error, DashboardUnavailable)
    assert error.retry_after == seconds


def test_a_dashboard_that_cannot_be_reached(dashboard: SimulatedDashboard) -> None:
    """A server that stands before it closes the connection."""
    with FaultServer(forwarding("http://127.0.0.1:1")) as server:
        error = fails(server, "single", PATIENCE)
    assert type(error) is DashboardUnavailable


def test_faults_over_tls(dashboard: SimulatedDashboard) -> None:
    """They are no others than without."""
    with FaultServer(forwarding(dashboard.url), tls=CERTIFICATE) as server:
        for fault, (expected, _) in ENDED.items():
            server.fault(fault)
            assert type(fails(server, "single", PATIENCE)) is expected
        server.fault("stall-handshake")
        assert type(fails(server, "single", TIMEOUT)) is DashboardUnavailable


def test_a_client_that_leaves_ends_its_thread() -> None:
    """A server with a fault for ever does not gather threads."""
    ended = threading.Event()

    def script(peer: Peer) -> None:
        peer.request()
        peer.answer()
        ended.set()

    with FaultServer(script) as server:
        server.fault("hang")
        fails(server, "single", TIMEOUT)
        assert ended.wait(PATIENCE)


@pytest.mark.parametrize(
    "half",
    [
        b"GET /api/jo",
        b"GET / HTTP/1.1\r\nHost: a\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n{",
    ],
)
def test_half_a_request_is_none(half: bytes) -> None:
    """A client that leaves in the middle has asked for nothing."""
    ended = threading.Event()

    def script(peer: Peer) -> None:
        assert peer.request() is None
        ended.set()

    with FaultServer(script) as server:
        with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as client:
            client.sendall(half)
        assert ended.wait(PATIENCE)
        assert server.requests == []


def test_wrong_arguments() -> None:
    """Are told, and end no fault that is in force."""
    with FaultServer() as server:
        server.fault("503")
        for kind, arguments, words in (
            ("sleepy", {}, "it must be refuse, stall-handshake"),
            ("503", {"times": 0}, "times is 0"),
            ("refuse", {"times": 1}, "times is 1"),
            ("hang", {"retry_after": "1"}, "retry_after goes with a status only"),
        ):
            with pytest.raises(ValueError, match=words):
                server.fault(kind, **arguments)
        assert "503" in str(fails(server, "single", PATIENCE))
        with pytest.raises(TimeoutError, match="1 requests were struck"):
            server.wait_for(2, timeout=0.01)
        server.fault(None)
        with pytest.raises(RuntimeError, match="no fault"):
            server.wait_for(1)
