"""A request is over by its deadline, whatever the server does."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from jobinfo_cache.dashboard import DashboardClient
from jobinfo_cache.errors import DashboardUnavailable
from jobinfo_cache.testing import FaultServer
from jobinfo_cache.testing.peer import Peer, Script
from tests.http.certificate import CERTIFICATE, PATIENCE
from tests.http.kinds import KINDS

TIMEOUT = 0.2
BOUND = 5.0  # far above the timeout, far below for ever


def silent(peer: Peer) -> None:
    peer.request()
    peer.hang()


def deaf(peer: Peer) -> None:
    peer.hang()


def silent_after_headers(peer: Peer) -> None:
    peer.request()
    peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
    peer.hang()


def drips_headers(peer: Peer) -> None:
    peer.request()
    peer.send(b"HTTP/1.1 200 OK\r\nX-Long: ")
    peer.drip(b"a")


def drips_status_line(peer: Peer) -> None:
    peer.request()
    peer.drip(b"H")


def continues_for_ever(peer: Peer) -> None:
    peer.request()
    peer.drip(b"HTTP/1.1 100 Continue\r\n\r\n")


def drips_body(peer: Peer) -> None:
    peer.request()
    peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    peer.drip(b" ")


def drips_error_body(peer: Peer) -> None:
    peer.request()
    peer.send(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 100000\r\n\r\n")
    peer.drip(b" ")


def drips_chunks(peer: Peer) -> None:
    peer.request()
    peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    peer.drip(b"1\r\n \r\n")


def drips_chunk_size(peer: Peer) -> None:
    peer.request()
    peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    peer.drip(b"0")


def drips_trailer(peer: Peer) -> None:
    peer.request()
    peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n")
    peer.drip(b"X: y\r\n")


SLOW: list[Script] = [
    silent,
    deaf,
    silent_after_headers,
    drips_headers,
    drips_status_line,
    continues_for_ever,
    drips_body,
    drips_error_body,
    drips_chunks,
    drips_chunk_size,
    drips_trailer,
]


def fails_in_time(client: DashboardClient, ask: Callable[[DashboardClient], object]) -> str:
    begun = time.monotonic()
    with client, pytest.raises(DashboardUnavailable) as caught:
        ask(client)
    assert time.monotonic() - begun < BOUND
    return str(caught.value)


@pytest.mark.parametrize("tls", [None, CERTIFICATE], ids=["http", "https"])
@pytest.mark.parametrize("script", SLOW)
def test_no_server_holds_a_request_beyond_its_deadline(script: Script, tls: Path | None) -> None:
    """Silence and drips, wherever they begin, end with the deadline and say so."""
    with FaultServer(script, tls=tls) as server:
        client = DashboardClient(server.url, timeout=TIMEOUT, verify=str(CERTIFICATE))
        assert "within 0.2 s" in fails_in_time(client, KINDS["single"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("script", [silent, drips_headers, drips_body])
def test_the_deadline_holds_for_every_kind_of_request(script: Script, kind: str) -> None:
    """Not the single look-up only: lists, submissions, stops and logs end in time as well."""
    with FaultServer(script) as server:
        client = DashboardClient(server.url, timeout=TIMEOUT)
        assert "within 0.2 s" in fails_in_time(client, KINDS[kind])
        assert len(server.requests) <= 1, "after a timeout nothing is sent again"


def test_a_stalled_tls_handshake_ends_with_the_deadline() -> None:
    """A server that accepts and never shakes hands holds nobody."""
    with FaultServer(deaf) as server:
        client = DashboardClient(server.url.replace("http:", "https:"), timeout=TIMEOUT)
        assert "within 0.2 s" in fails_in_time(client, KINDS["single"])


def test_a_dripped_tls_handshake_ends_with_the_deadline() -> None:
    """A record of the handshake that comes byte by byte holds nobody either."""

    def drips_handshake(peer: Peer) -> None:
        peer.send(b"\x16\x03\x03\x3f\xff")
        peer.drip(b"\x00")

    with FaultServer(drips_handshake) as server:
        client = DashboardClient(server.url.replace("http:", "https:"), timeout=TIMEOUT)
        assert "within 0.2 s" in fails_in_time(client, KINDS["single"])


def test_a_listener_that_accepts_nothing_ends_with_the_deadline() -> None:
    """Connecting counts: a full backlog answers no SYN, like a host that is gone."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        client = DashboardClient(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=TIMEOUT)
        assert "within 0.2 s" in fails_in_time(client, KINDS["single"])
        for filler in fillers:
            filler.close()


def test_a_body_that_nobody_reads_ends_with_the_deadline() -> None:
    """Sending counts: a submission larger than the buffers fails when the server does not read."""
    with FaultServer(deaf) as server:
        client = DashboardClient(server.url, timeout=TIMEOUT)
        blob = "x" * 30_000_000
        fails_in_time(client, lambda client: client.submit_job("true", metadata={"blob": blob}))


def test_a_proxy_that_drips_its_consent_ends_with_the_deadline() -> None:
    """The answer to CONNECT has to come in time too."""
    with FaultServer(drips_headers) as proxy:
        proxies = {"https": proxy.url}
        client = DashboardClient("https://127.0.0.1:1", timeout=TIMEOUT, proxies=proxies)
        assert "within 0.2 s" in fails_in_time(client, KINDS["single"])


@pytest.mark.parametrize("scheme", ["https", "HTTPS"])
def test_a_tls_proxy_that_drips_ends_with_the_deadline(scheme: str) -> None:
    """However its scheme is written: the TLS settings are ours, and the sockets know deadlines."""
    with FaultServer(drips_headers, tls=CERTIFICATE) as proxy:
        url = proxy.url.replace("https", scheme)
        client = DashboardClient(
            "http://127.0.0.1:1", timeout=TIMEOUT, proxies={"http": url}, verify=str(CERTIFICATE)
        )
        assert "within 0.2 s" in fails_in_time(client, KINDS["single"])


def test_a_slow_request_leaves_no_socket_and_no_thread() -> None:
    """The server sees the connection closed; nothing of the client runs on."""
    closed = threading.Event()

    def silent_until_closed(peer: Peer) -> None:
        peer.request()
        assert peer.request() is None
        closed.set()

    with FaultServer(silent_until_closed) as server:
        client = DashboardClient(server.url, timeout=TIMEOUT)
        fails_in_time(client, KINDS["single"])
        assert closed.wait(PATIENCE)
    assert not [each for each in threading.enumerate() if each.name.startswith("jobinfo")]
