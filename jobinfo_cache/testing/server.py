"""A small HTTP server on loopback that keeps count of its threads and sockets."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import threading
from collections.abc import Callable
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler
from typing import Any

from jobinfo_cache.clock import Clock
from jobinfo_cache.testing import texts
from jobinfo_cache.testing.api import Answer, Call, text_answer

__all__ = ["Server"]

_HOST = "127.0.0.1"
_BACKLOG = 512
_SERVER = "Python/3.11 aiohttp/3.14.5"
_LINGER_NOT = struct.pack("ii", 1, 0)

_Handle = Callable[[Call, socket.socket], "Answer | None"]


class Server:
    """Hands each request to `handle`, in the thread of its connection.

    A request without an answer (None) has its connection reset. `bind`, `open` and `close` are
    for one thread at a time.
    """

    def __init__(self, handle: _Handle, clock: Clock) -> None:
        self._handle = handle
        self._clock = clock
        self._listener: socket.socket | None = None
        self._acceptor: threading.Thread | None = None
        self._stop = -1
        self._lock = threading.Lock()
        # Guarded by _lock:
        self._connections: dict[threading.Thread, socket.socket] = {}

    def bind(self, port: int) -> int:
        """Take the port (0: any) and return it; connections are refused until `open`."""
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._listener.bind((_HOST, port))
        except OSError:
            self._listener.close()
            raise
        return int(self._listener.getsockname()[1])

    def open(self) -> None:
        """Accept connections from now on."""
        assert self._listener is not None
        self._listener.listen(_BACKLOG)
        stopped, self._stop = os.pipe()
        self._acceptor = threading.Thread(
            target=self._accept, args=(self._listener, stopped), name="simulator-accept"
        )
        self._acceptor.daemon = True
        self._acceptor.start()

    def close(self) -> None:
        """Give the port up and end all connections and threads; waits for them."""
        if self._acceptor is not None:
            os.close(self._stop)
            self._acceptor.join()
            self._acceptor = None
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        self.cut()

    def cut(self) -> None:
        """End all connections of this moment, and wait for their threads."""
        with self._lock:
            connections = [*self._connections.items()]
        for _, connection in connections:
            with contextlib.suppress(OSError):  # it has ended by itself
                connection.shutdown(socket.SHUT_RDWR)
        for thread, _ in connections:
            thread.join()

    def _accept(self, listener: socket.socket, stopped: int) -> None:
        listener.setblocking(False)
        poller = select.poll()
        poller.register(listener, select.POLLIN)
        poller.register(stopped, select.POLLIN)
        while stopped not in dict(poller.poll()):
            try:
                connection, _ = listener.accept()
            except OSError:
                continue  # the client has gone again
            self._start(connection)
        os.close(stopped)

    def _start(self, connection: socket.socket) -> None:
        connection.setblocking(True)
        thread = threading.Thread(
            target=self._serve, args=(connection,), name="simulator-connection", daemon=True
        )
        with self._lock:  # `cut` must find no thread that has not started
            self._connections[thread] = connection
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with contextlib.suppress(OSError):  # the client has gone: there is no one to tell
                _Exchange(connection, self._handle, self._clock)
        finally:
            connection.close()
            with self._lock:
                del self._connections[threading.current_thread()]


class _Exchange(BaseHTTPRequestHandler):
    """The requests of one connection, one after another."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def __init__(self, connection: socket.socket, handle: _Handle, clock: Clock) -> None:
        self._handle = handle
        self._clock = clock
        no_server: Any = None
        super().__init__(connection, _HOST, no_server)

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
