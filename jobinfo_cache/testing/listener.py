"""A listening socket on loopback that keeps count of its threads and connections."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import ssl
import threading
from collections.abc import Callable
from pathlib import Path

__all__ = ["HOST", "Listener"]

HOST = "127.0.0.1"
_BACKLOG = 512


class Listener:
    """Runs `serve` for each connection, in a thread of its own, and closes it afterwards.

    Threads are named after `name`. With `tls`, a PEM file with a certificate and its key, the
    connections are TLS sockets whose handshake is left to `serve`. An `OSError` of `serve` means
    that the client has gone. `bind`, `open` and `close` are for one thread at a time.
    """

    def __init__(
        self, serve: Callable[[socket.socket], None], *, name: str, tls: Path | None = None
    ) -> None:
        self._serve = serve
        self._name = name
        self._tls = None if tls is None else _tls_context(tls)
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
            self._listener.bind((HOST, port))
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
            target=self._accept, args=(self._listener, stopped), name=f"{self._name}-accept"
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
                # Not the TLS socket's own shutdown, which would go on in plain text.
                socket.socket.shutdown(connection, socket.SHUT_RDWR)
        for thread, _ in connections:
            thread.join()

    def _accept(self, listener: socket.socket, stopped: int) -> None:
        listener.setblocking(False)
        poller = select.poll()
        poller.register(listener, select.POLLIN)
        poller.register(stopped, select.POLLIN)
        while stopped not in dict(poller.poll()):
            with contextlib.suppress(OSError):  # the client has gone again
                self._start(listener.accept()[0])
        os.close(stopped)

    def _start(self, connection: socket.socket) -> None:
        connection.setblocking(True)
        if self._tls is not None:
            connection = self._tls.wrap_socket(
                connection, server_side=True, do_handshake_on_connect=False
            )
        thread = threading.Thread(
            target=self._run, args=(connection,), name=f"{self._name}-connection", daemon=True
        )
        with self._lock:  # `cut` must find no thread that has not started
            self._connections[thread] = connection
            try:
                thread.start()
            except RuntimeError:  # the interpreter ends, or has no more threads
                del self._connections[thread]
                connection.close()

    def _run(self, connection: socket.socket) -> None:
        try:
            with contextlib.suppress(OSError):  # the client has gone: there is no one to tell
                self._serve(connection)
        finally:
            connection.close()
            with self._lock:
                del self._connections[threading.current_thread()]


def _tls_context(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context
