"""Connections: one is kept, a closed one is replaced silently, aborts and forks are clean."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from jobinfo_cache.dashboard import DashboardClient
from jobinfo_cache.errors import DashboardUnavailable
from jobinfo_cache.testing import FaultServer
from jobinfo_cache.testing.peer import BODY, Peer, answering
from tests.http.certificate import CERTIFICATE, PATIENCE


@pytest.mark.parametrize("tls", [None, CERTIFICATE], ids=["http", "https"])
def test_requests_share_one_connection(tls: Path | None) -> None:
    """A client that asks again does so on the connection that it kept."""
    with (
        FaultServer(answering(), tls=tls) as server,
        DashboardClient(server.url, verify=str(CERTIFICATE)) as client,
    ):
        for _ in range(3):
            client.get_job_info("x")
        assert server.connections == 1


def test_an_answer_without_a_body_keeps_the_connection() -> None:
    """There is nothing to read, and the connection is kept all the same."""
    with FaultServer(answering(b"")) as server, DashboardClient(server.url) as client:
        client.update_deployments({})
        client.update_deployments({})
        assert server.connections == 1


def answers_once_then(end: Callable[[Peer], None]) -> Callable[[Peer], None]:
    """The first connection answers one request, reads another, and ends; later ones answer."""

    def script(peer: Peer) -> None:
        if peer.number:
            answering(BODY)(peer)
            return
        peer.request()
        peer.answer()
        peer.request()
        end(peer)

    return script


@pytest.mark.parametrize("end", [Peer.close, Peer.reset])
def test_a_get_on_a_connection_found_closed_is_sent_again(
    end: Callable[[Peer], None], caplog: pytest.LogCaptureFixture
) -> None:
    """Once, silently, on a new connection."""
    with FaultServer(answers_once_then(end)) as server, DashboardClient(server.url) as client:
        client.get_job_info("x")
        assert client.get_job_info("x").status == "RUNNING"
        assert len(server.requests) == 3
        assert server.connections == 2
    assert [each for each in caplog.records if each.levelno > logging.DEBUG] == []


@pytest.mark.parametrize("method", ["POST", "DELETE", "PUT"])
def test_nothing_but_a_get_is_sent_again(method: str) -> None:
    """The dashboard may have done it before the connection broke."""
    asks: dict[str, Callable[[DashboardClient], object]] = {
        "POST": lambda client: client.stop_job("x"),
        "DELETE": lambda client: client.delete_job("x"),
        "PUT": lambda client: client.update_deployments({}),
    }
    script = answers_once_then(Peer.close)
    with FaultServer(script) as server, DashboardClient(server.url) as client:
        client.get_job_info("x")
        with pytest.raises(DashboardUnavailable):
            asks[method](client)
        assert len(server.requests) == 2


def test_a_get_is_sent_again_only_once() -> None:
    """A server that closes each connection after the request is unavailable."""

    def script(peer: Peer) -> None:
        peer.request()
        if peer.number == 0:
            peer.answer()
            peer.request()

    with FaultServer(script) as server, DashboardClient(server.url) as client:
        client.get_job_info("x")
        with pytest.raises(DashboardUnavailable):
            client.get_job_info("x")
        assert len(server.requests) == 3


def test_a_get_that_timed_out_is_not_sent_again() -> None:
    """Silence on a kept connection is no sign that it is closed."""
    script = answers_once_then(Peer.hang)
    with FaultServer(script) as server, DashboardClient(server.url, timeout=0.2) as client:
        client.get_job_info("x")
        with pytest.raises(DashboardUnavailable):
            client.get_job_info("x")
        assert len(server.requests) == 2


def test_a_connection_closed_while_idle_is_replaced_for_a_post_too() -> None:
    """It is seen before anything is sent, so nothing is sent twice."""
    closed = threading.Event()

    def script(peer: Peer) -> None:
        peer.request()
        if peer.number == 0:
            peer.answer()
            peer.close()
            closed.set()
        else:
            peer.answer(b'{"submission_id": "x"}')

    with FaultServer(script) as server, DashboardClient(server.url) as client:
        client.get_job_info("x")
        assert closed.wait(PATIENCE)
        assert client.submit_job("true") == "x"
        assert len(server.requests) == 2


@pytest.mark.parametrize("threads", [32])
def test_a_storm_leaves_one_connection_and_no_warning(
    threads: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Connections beyond the kept one are closed quietly after use."""
    arrived = threading.Barrier(threads + 1)
    closed = threading.Semaphore(0)

    def script(peer: Peer) -> None:
        peer.request()
        arrived.wait(PATIENCE)
        peer.answer()
        while peer.request():
            peer.answer()
        closed.release()

    with FaultServer(script) as server, DashboardClient(server.url, timeout=PATIENCE) as client:
        askers = [threading.Thread(target=client.get_job_info, args=("x",)) for _ in range(threads)]
        for asker in askers:
            asker.start()
        arrived.wait(PATIENCE)
        for asker in askers:
            asker.join(PATIENCE)
        assert all(closed.acquire(timeout=PATIENCE) for _ in range(threads - 1))
        client.get_job_info("x")
        assert server.connections == threads
        assert not closed.acquire(blocking=False)
        client.close()
        assert closed.acquire(timeout=PATIENCE)
    assert [each for each in caplog.records if each.levelno > logging.DEBUG] == []


def test_close_drops_the_kept_connection_and_the_client_goes_on() -> None:
    """The server sees the end of it; the next request makes a new one."""
    ended = threading.Event()

    def script(peer: Peer) -> None:
        answering()(peer)
        ended.set()

    with FaultServer(script) as server, DashboardClient(server.url) as client:
        client.get_job_info("x")
        client.close()
        assert ended.wait(PATIENCE)
        assert client.get_job_info("x").status == "RUNNING"
        assert server.connections == 2


def test_close_leaves_a_request_under_way_alone() -> None:
    """It gets its answer; its connection is closed after that instead of kept."""
    asked, answer, ended = threading.Event(), threading.Event(), threading.Event()
    statuses: list[str] = []

    def script(peer: Peer) -> None:
        peer.request()
        asked.set()
        answer.wait(PATIENCE)
        peer.answer()
        peer.request()
        ended.set()

    with FaultServer(script) as server:
        client = DashboardClient(server.url, timeout=PATIENCE)
        asker = threading.Thread(target=lambda: statuses.append(client.get_job_info("x").status))
        asker.start()
        assert asked.wait(PATIENCE)
        client.close()
        answer.set()
        asker.join(PATIENCE)
        assert statuses == ["RUNNING"]
        assert ended.wait(PATIENCE)


def waits_for_answer(peer: Peer) -> None:
    peer.request()
    peer.server.reached.set()  # type: ignore[attr-defined]
    peer.hang()


def waits_in_body(peer: Peer) -> None:
    peer.request()
    peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
    peer.server.reached.set()  # type: ignore[attr-defined]
    peer.hang()


def waits_in_handshake(peer: Peer) -> None:
    peer.server.reached.set()  # type: ignore[attr-defined]
    peer.hang()


@pytest.mark.parametrize(
    ("script", "tls"),
    [
        (waits_for_answer, None),
        (waits_for_answer, CERTIFICATE),
        (waits_in_body, None),
        (waits_in_body, CERTIFICATE),
        (waits_in_handshake, None),
    ],
)
def test_abort_ends_a_request_at_once(script: Callable[[Peer], None], tls: Path | None) -> None:
    """From another thread, in whatever stage the request is; later ones are not even sent."""
    failures: list[str] = []

    def ask(client: DashboardClient) -> None:
        try:
            client.get_job_info("x")
        except DashboardUnavailable as error:
            failures.append(str(error))

    with FaultServer(script, tls=tls) as server:
        server.reached = reached = threading.Event()  # type: ignore[attr-defined]
        url = server.url if tls or script is not waits_in_handshake else f"https{server.url[4:]}"
        client = DashboardClient(url, timeout=3600.0, verify=str(CERTIFICATE))
        asker = threading.Thread(target=ask, args=(client,))
        asker.start()
        assert reached.wait(PATIENCE)
        client.abort()
        asker.join(PATIENCE)
        assert not asker.is_alive()
        assert len(failures) == 1
        assert "abort" in failures[0]
        sent = len(server.requests)
        ask(client)
        assert "abort" in failures[1]
        assert len(server.requests) == sent


def test_abort_ends_a_request_that_is_connecting() -> None:
    """A host that answers no SYN holds nobody beyond `abort`."""
    failures: list[str] = []
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        client = DashboardClient(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=3600.0)

        def ask() -> None:
            try:
                client.get_job_info("x")
            except DashboardUnavailable as error:
                failures.append(str(error))

        asker = threading.Thread(target=ask)
        asker.start()
        while asker.is_alive():  # it may not have begun to connect at the first try
            client.abort()
            asker.join(0.05)
        assert "abort" in failures[0]
        for filler in fillers:
            filler.close()


def test_abort_ends_the_client_and_no_other() -> None:
    """Its connection is closed; a separate client, equal to it, goes on with one of its own."""
    with FaultServer(answering()) as server, DashboardClient(server.url) as client:
        client.get_job_info("x")
        other = client.separate()
        assert other == client
        other.get_job_info("x")
        client.abort()
        assert server.connections == 2
        assert not client._transport._kept._idle
        other.get_job_info("x")
        assert server.connections == 2
        other.close()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_after_a_fork_the_child_has_its_own_connection() -> None:
    """The child asks on a new connection, and the parent's kept one goes on."""
    with FaultServer(answering()) as server, DashboardClient(server.url) as client:
        client.get_job_info("x")
        child = os.fork()
        if not child:
            try:
                os._exit(0 if client.get_job_info("x").status == "RUNNING" else 1)
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        client.get_job_info("x")
        assert server.connections == 2
        assert len(server.requests) == 3


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_after_a_fork_the_child_holds_no_socket_of_a_request_under_way() -> None:
    """The request of another thread goes on in the parent, and ends there alone."""
    asked, answer = threading.Event(), threading.Event()
    statuses: list[str] = []

    def script(peer: Peer) -> None:
        peer.request()
        asked.set()
        answer.wait(PATIENCE)
        peer.answer()

    with FaultServer(script) as server:
        client = DashboardClient(server.url, timeout=PATIENCE)
        asker = threading.Thread(target=lambda: statuses.append(client.get_job_info("x").status))
        asker.start()
        assert asked.wait(PATIENCE)
        child = os.fork()
        if not child:
            os._exit(_sockets_to(server.port))
        assert os.waitpid(child, 0)[1] == 0
        answer.set()
        asker.join(PATIENCE)
        assert statuses == ["RUNNING"]
        client.close()


def _sockets_to(port: int) -> int:
    """How many sockets of this process are connected to the port."""
    found = 0
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - no objects in a forked child
        try:
            with socket.socket(fileno=os.dup(int(name))) as sock:
                found += sock.getpeername()[1] == port
        except (OSError, IndexError, TypeError):
            continue
    return found
