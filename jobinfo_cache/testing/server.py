"""The server's side of an HTTP connection, in the manner of the real dashboard."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler
from typing import Any

from jobinfo_cache.clock import Clock
from jobinfo_cache.testing import texts
from jobinfo_cache.testing.api import Answer, Call, text_answer
from jobinfo_cache.testing.listener import HOST

__all__ = ["serve"]

_SERVER = "Python/3.11 aiohttp/3.14.5"
_LINGER_NOT = struct.pack("ii", 1, 0)

_Handle = Callable[[Call, socket.socket], "Answer | None"]


def serve(connection: socket.socket, handle: _Handle, clock: Clock) -> None:
    """Hand each request of the connection to `handle`, and send what it answers, to the end.

    A request without an answer (None) has its connection reset. Raises `OSError` when the client
    has gone.
    """
    _Exchange(connection, handle, clock)


class _Exchange(BaseHTTPRequestHandler):
    """The requests of one connection, one after another."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def __init__(self, connection: socket.socket, handle: _Handle, clock: Clock) -> None:
        self._handle = handle
        self._clock = clock
        no_server: Any = None
        super().__init__(connection, HOST, no_server)

    def handle_one_request(self) -> None:
        self.raw_requestline = self.rfile.readline(65_537)
        if not self.raw_requestline:
            self.close_connection = True
            return
        if not self.parse_request():
            return
        length = self.headers.get("Content-Length", "")
        body = self.rfile.read(int(length)) if length.isdigit() else b""
        path = self.requestline.split()[1]  # self.path has lost a second slash
        answer = self._handle(Call(self.command, path, self.headers, body), self.connection)
        if answer is None:
            self.close_connection = True
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
            return
        self._send(answer)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what is no HTTP, in the real server's manner; the connection ends."""
        self.close_connection = True
        self._send(text_answer(code, texts.plain(code)))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Quiet: requests are in the journal."""

    def _send(self, answer: Answer) -> None:
        headers = {
            "Content-Type": answer.content_type,
            **answer.headers,
            "Content-Length": str(len(answer.body)),
            "Date": format_datetime(self._clock.now(), usegmt=True),
            "Server": _SERVER,
        }
        lines = [f"HTTP/1.1 {answer.status} {texts.PHRASES.get(answer.status, '')}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        head = "\r\n".join([*lines, "", ""]).encode("latin-1")
        self.wfile.write(head if self.command == "HEAD" else head + answer.body)
