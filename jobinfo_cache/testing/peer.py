"""The server's end of a connection, on which a script says what it likes."""

from __future__ import annotations

import contextlib
import http.client
import socket
import struct
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from jobinfo_cache.testing.gate import outlasts

if TYPE_CHECKING:
    from jobinfo_cache.testing.faultserver import FaultServer

__all__ = ["BODY", "Peer", "Received", "Script", "answering", "forwarding", "response"]

#: A running job, as a dashboard with the job "x" would answer it.
BODY = b'{"status": "RUNNING", "submission_id": "x", "job_id": null}'

_DRIP = 0.02  # seconds between two pieces; far below any deadline
_LINGER_NOT = struct.pack("ii", 1, 0)
_PATIENCE = 20.0  # seconds for the server that a request is passed on to
_OF_ONE_HOP = ("connection", "content-length", "transfer-encoding")


class Received(NamedTuple):
    """What a client sent; the names of headers are in lower case."""

    line: str
    headers: dict[str, str]
    body: bytes


class Peer:
    """One connection of a `FaultServer`, for the thread that serves it.

    `number` counts the server's connections from 0. `sock` is the connection itself.

    .. versionadded:: 0.1.0
    """

    def __init__(self, server: FaultServer, sock: socket.socket, number: int) -> None:
        self.server = server
        self.sock = sock
        self.number = number
        #: What comes in.
        self.input = sock.makefile("rb")

    def request(self) -> Received | None:
        """The next request, or None when the connection is closed before its end.

        Raises `ValueError` for what is no request: that is a fault of the client's.

        .. versionadded:: 0.1.0
        """
        lines = []
        while (line := b"" if self.input.closed else self.input.readline()) not in (b"\r\n", b""):
            lines.append(line.decode("latin-1").rstrip())
        if not line:
            return None
        if not lines or len(lines[0].split()) != 3:
            raise ValueError(f"no request: {lines!r}")
        headers = {}
        for each in lines[1:]:
            name, _, value = each.partition(":")
            headers[name.lower()] = value.strip()
        length = int(headers.get("content-length", "0"))
        body = self.input.read(length)
        if len(body) < length:
            return None
        received = Received(lines[0], headers, body)
        self.server.note(received)
        return received

    def send(self, data: bytes) -> None:
        """Send the bytes as they are, whatever fault the server has.

        .. versionadded:: 0.1.0
        """
        self.sock.sendall(data)

    def answer(self, body: bytes = BODY, status: str = "200 OK", *headers: str) -> None:
        """Send a whole response, or what the server's fault makes of it.

        .. versionadded:: 0.1.0
        """
        self.server.deliver(self, partial(response, body, status, *headers))

    def hang(self) -> None:
        """Do nothing until the server closes, or the client does.

        .. versionadded:: 0.1.0
        """
        self.server.over.hold(self.sock)

    def drip(self, data: bytes) -> None:
        """Send `data` again and again, with pauses, until the server or the client closes.

        .. versionadded:: 0.1.0
        """
        while self.pauses():
            self.send(data)

    def flood(self, data: bytes) -> None:
        """Send `data` again and again until the server or the client closes.

        .. versionadded:: 0.1.0
        """
        while not self.server.over.is_released:
            self.send(data)

    def pauses(self) -> bool:
        """Wait for as long as lies between two drips; False when a side has closed meanwhile.

        .. versionadded:: 0.1.0
        """
        return outlasts(self.sock, None, _DRIP) and not self.server.over.is_released

    def close(self) -> None:
        """Close the connection, as servers do.

        .. versionadded:: 0.1.0
        """
        with contextlib.suppress(OSError):  # the client was faster
            self.sock.shutdown(socket.SHUT_RDWR)

    def reset(self) -> None:
        """Break the connection off.

        .. versionadded:: 0.1.0
        """
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
        self.input.close()
        self.sock.close()


Script = Callable[[Peer], None]


def response(body: bytes = BODY, status: str = "200 OK", *headers: str) -> bytes:
    """The bytes of a response; it is JSON unless a header says otherwise."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    if not any(header.lower().startswith("content-type") for header in headers):
        lines.append("Content-Type: application/json")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def answering(body: bytes = BODY, status: str = "200 OK", *headers: str) -> Script:
    """A script that answers each request alike.

    .. versionadded:: 0.1.0
    """

    def script(peer: Peer) -> None:
        while peer.request():
            peer.answer(body, status, *headers)

    return script


def forwarding(url: str) -> Script:
    """A script that passes each request on to the dashboard at `url`, and its answer back.

    A fault that sends nothing of an answer, or another one, keeps the request from the dashboard;
    one that spoils the answer does so after the dashboard has done what it was asked. Where the
    dashboard cannot be reached, the connection is closed.

    .. versionadded:: 0.1.0
    """
    host = urlsplit(url).netloc

    def script(peer: Peer) -> None:
        while received := peer.request():
            peer.server.deliver(peer, partial(_fetched, host, received))

    return script


def _fetched(host: str, received: Received) -> bytes:
    """The answer of the server at `host`, on a connection of its own."""
    method, path, _ = received.line.split()
    with contextlib.closing(http.client.HTTPConnection(host, timeout=_PATIENCE)) as connection:
        try:
            connection.request(method, path, received.body, received.headers)
            answer = connection.getresponse()
            body = answer.read()
        except http.client.HTTPException as error:
            raise ConnectionError("the dashboard did not answer") from error
    headers = [
        f"{name}: {value}"
        for name, value in answer.headers.items()
        if name.lower() not in _OF_ONE_HOP
    ]
    return response(body, f"{answer.status} {answer.reason}", *headers)
