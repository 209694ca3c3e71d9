"""A server on plain sockets that a test drives through anything a network can do."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

CERTIFICATE = Path(__file__).with_name("localhost.pem")
PATIENCE = 20.0  # seconds; only a failing test uses them up
BODY = b'{"status": "RUNNING", "submission_id": "x", "job_id": null}'


class Request(NamedTuple):
    """What a client sent."""

    line: str
    headers: dict[str, str]
    body: bytes


class Peer:
    """The server's end of one connection. `number` counts connections from 0."""

    def __init__(self, server: FaultServer, sock: socket.socket, number: int) -> None:
        self.server = server
        self.sock = sock
        self.number = number
        self._input = sock.makefile("rb")

    def request(self) -> Request | None:
        """The next request, or None when the client has closed the connection."""
        line = self._input.readline()
        if not line:
            return None
        headers = {}
        while (header := self._input.readline()) not in (b"\r\n", b""):
            name, _, value = header.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        body = self._input.read(int(headers.get("content-length", "0")))
        request = Request(line.decode("latin-1").rstrip(), headers, body)
        self.server.requests.append(request)
        return request

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def answer(self, body: bytes = BODY, status: str = "200 OK", *headers: str) -> None:
        """Send a whole response."""
        self.send(response(body, status, *headers))

    def hang(self) -> None:
        """Do nothing until the test is over."""
        self.server.over.wait(PATIENCE)

    def drip(self, data: bytes) -> None:
        """Send `data` now and then until the test is over."""
        while not self.server.over.wait(0.02):
            self.send(data)

    def flood(self, data: bytes) -> None:
        """Send `data` again and again until the client has had enough."""
        while not self.server.over.is_set():
            self.send(data)

    def close(self) -> None:
        """Close the connection, as servers do."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)

    def reset(self) -> None:
        """Break the connection off."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._input.close()
        self.sock.close()


Script = Callable[[Peer], None]


def response(body: bytes = BODY, status: str = "200 OK", *headers: str) -> bytes:
    """The bytes of a response."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    if not any(header.lower().startswith("content-type") for header in headers):
        lines.append("Content-Type: application/json")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


class FaultServer:
    """Runs `script` for each connection, in a thread of its own.

    `requests` lists what was read, in order; `over` is set when the test is over.
    """

    def __init__(self, script: Script, *, tls: bool = False) -> None:
        self.script = script
        self.requests: list[Request] = []
        self.peers: list[Peer] = []
        self.over = threading.Event()
        self._context: ssl.SSLContext | None = None
        if tls:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(CERTIFICATE)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.port}"

    def __enter__(self) -> FaultServer:
        self._start(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.over.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        for peer in self.peers:
            peer.close()
        for thread in self._threads:
            thread.join(PATIENCE)
        self._listener.close()

    def _start(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name="fault-server", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self.over.is_set():
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self._start(lambda sock=sock: self._serve(sock))  # type: ignore[misc]

    def _serve(self, sock: socket.socket) -> None:
        with sock, contextlib.suppress(OSError):
            if self._context is not None:
                sock = self._context.wrap_socket(sock, server_side=True)
            peer = Peer(self, sock, len(self.peers))
            self.peers.append(peer)
            with sock, peer._input:
                self.script(peer)


def answering(body: bytes = BODY, status: str = "200 OK", *headers: str) -> Script:
    """A script that answers each request alike."""

    def script(peer: Peer) -> None:
        while peer.request():
            peer.answer(body, status, *headers)

    return script


@contextlib.contextmanager
def serving(script: Script, *, tls: bool = False) -> Iterator[FaultServer]:
    """A running server."""
    with FaultServer(script, tls=tls) as server:
        yield server
