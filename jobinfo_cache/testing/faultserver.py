"""A server that does whatever a network can do to a client."""

from __future__ import annotations

import contextlib
import itertools
import socket
import ssl
from collections import deque
from pathlib import Path
from types import TracebackType

from jobinfo_cache.testing.gate import Gate
from jobinfo_cache.testing.listener import HOST, Listener
from jobinfo_cache.testing.peer import Peer, Received, Script, answering
from jobinfo_cache.testing.tricks import CONNECTION_KINDS, Make, Trouble

__all__ = ["FaultServer"]

_KEPT = 10_000


class FaultServer:
    """Runs `script` on each connection, and goes wrong below HTTP on demand. A context manager.

    The script may be a test's own; `answering` and `forwarding` of `jobinfo_cache.testing.peer`
    make one that answers each request alike, and one that stands before a dashboard. With `tls`,
    a PEM file with a certificate and its key, it speaks TLS. All on loopback, on a free port.
    Safe from any thread, except that `fault`, `start` and `close` are for one thread at a time.
    `wait_for` blocks; `close`, and some faults, wait for the threads of connections.

    .. versionadded:: 0.1.0
    """

    def __init__(self, script: Script | None = None, *, tls: Path | None = None) -> None:
        self.script = script or answering()
        #: Opens when the server closes.
        self.over = Gate()
        self._listener = Listener(self._serve, name="fault-server", tls=tls)
        self._scheme = "http" if tls is None else "https"
        self._port = 0
        self._trouble: Trouble | None = None
        self._requests: deque[Received] = deque(maxlen=_KEPT)
        self._numbers = itertools.count()
        self._connections = 0

    def __enter__(self) -> FaultServer:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def start(self) -> FaultServer:
        """Listen; once only.

        .. versionadded:: 0.1.0
        """
        self._port = self._listener.bind(0)
        self._listener.open()
        return self

    def close(self) -> None:
        """End the fault and all connections; waits for their threads. Idempotent.

        .. versionadded:: 0.1.0
        """
        self.over.release()
        self._end_trouble()
        self._listener.close()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._port

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"{self._scheme}://{HOST}:{self._port}"

    @property
    def requests(self) -> list[Received]:
        """The requests so far, the last 10,000 of them, in order of arrival."""
        return [*self._requests]

    @property
    def connections(self) -> int:
        """How many connections there were so far."""
        return self._connections

    def fault(
        self, kind: str | None, *, times: int | None = None, retry_after: str | None = None
    ) -> None:
        """From now on, or for the next `times` requests, go wrong; None ends it.

        Before the request is carried out: "refuse" connections, "stall-handshake" (accept and say
        nothing), "reset-before-headers", "hang", "html" with 200, "login-redirect", a status such
        as "429" or "503" (with `retry_after` as its Retry-After), "huge-body" (2 GB), "gzip-bomb"
        (256 MB). After that: "reset-after-headers", "truncate", "drip-headers", "drip-body",
        "long-length" and "short-length" (a wrong Content-Length), "close" (after a whole answer,
        without notice). What hangs or drips goes on until the fault ends, and is completed then.

        The first two drop the connections there are, wait for their threads, and take no `times`.
        Raises `ValueError` for another kind, or for arguments that do not go with it.

        .. versionadded:: 0.1.0
        """
        trouble = None if kind is None else Trouble(kind, times, retry_after)
        self._end_trouble()
        self._trouble = trouble
        if kind in CONNECTION_KINDS:
            self._listener.close()
            self._listener.bind(self._port)  # nobody else gets the port meanwhile
        if kind in CONNECTION_KINDS and kind != "refuse":
            self._listener.open()

    def wait_for(self, n: int, timeout: float = 10.0) -> None:
        """Block until the fault in force has struck `n` requests (or stalled `n` handshakes).

        Raises `TimeoutError` after `timeout` real seconds, and `RuntimeError` if there is no fault.

        .. versionadded:: 0.1.0
        """
        if self._trouble is None:
            raise RuntimeError("there is no fault to wait for")
        self._trouble.wait_for(n, timeout)

    def note(self, received: Received) -> None:
        """Keep a request that a peer has read.

        .. versionadded:: 0.1.0
        """
        self._requests.append(received)

    def deliver(self, peer: Peer, make: Make) -> None:
        """Send the answer that `make` returns to the peer, or what the fault makes of it.

        A script of one's own calls it where the fault shall strike; `Peer.answer` does.

        .. versionadded:: 0.1.0
        """
        trouble = self._trouble
        if trouble is None or not trouble.strikes():
            peer.send(make())
        else:
            trouble.spoil(peer, make)

    def _end_trouble(self) -> None:
        trouble, self._trouble = self._trouble, None
        if trouble is None:
            return
        trouble.gate.release()
        if trouble.kind == "refuse" and not self.over.is_released:
            self._listener.open()

    def _serve(self, sock: socket.socket) -> None:
        number = next(self._numbers)
        self._connections = number + 1
        trouble = self._trouble
        if trouble is not None and trouble.kind == "stall-handshake" and trouble.strikes():
            trouble.gate.hold(sock)
        if isinstance(sock, ssl.SSLSocket):
            sock.do_handshake()
        peer = Peer(self, sock, number)
        with contextlib.closing(peer.input):
            self.script(peer)
