"""One request on the wire: its deadline, and the sockets and connections that keep it.

The deadline lives in the sockets: each send and each receive waits for at most what is left of
the request's time. So it holds for proxies, TLS handshakes, headers and body alike. Only the
name look-up cannot be cut short.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Iterator
from http.client import HTTPException, HTTPResponse
from typing import Any

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError
from urllib3.util.connection import allowed_gai_family

__all__ = ["POOLS", "Exchange", "Kept", "TLSSocket"]


class Kept:
    """The idle connection of a dashboard: at most one. Safe from any thread, without a lock."""

    def __init__(self) -> None:
        self._idle: deque[Any] = deque()
        self._closed = False

    def take(self) -> Any | None:
        """The idle connection, if it is still open."""
        try:
            connection = self._idle.pop()
        except IndexError:
            return None
        if connection.is_connected:
            return connection
        connection.close()
        return None

    def give(self, connection: Any) -> None:
        """Keep the connection; close what is one too many."""
        self._idle.append(connection)
        self._trim(0 if self._closed else 1)

    def close(self) -> None:
        """Close the idle connection, and from now on each that is given."""
        self._closed = True
        self._trim(0)

    def __del__(self) -> None:
        # A client that was dropped without `close` leaves no socket to warn about.
        self.close()

    def _trim(self, size: int) -> None:
        while len(self._idle) > size:
            with contextlib.suppress(IndexError):  # another thread took it meanwhile
                self._idle.popleft().close()


class Exchange:
    """One request under way, which had `timeout` seconds at its start and is over by `deadline`.

    `reused` is True when it went out on a kept connection, `received` counts the bytes that came
    back, `ended` is True once the other side has closed. `aborted` and `too_large` say why it was
    cut short.
    """

    def __init__(self, timeout: float, deadline: float, max_bytes: int, kept: Kept) -> None:
        self.timeout = timeout
        self.deadline = deadline
        self.max_bytes = max_bytes
        self.kept = kept
        self.may_reuse = True
        self.reused = False
        self.received = 0
        self.ended = False
        self.aborted = False
        self.too_large = False
        self.sock: socket.socket | None = None

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """Make this the exchange that this thread's sockets work for."""
        outer = getattr(_thread, "exchange", None)
        _thread.exchange = self
        try:
            yield
        finally:
            self.sock = None
            _thread.exchange = outer

    def left(self) -> float:
        """The seconds left; raises `OSError` when the exchange is over."""
        if self.aborted:
            raise ConnectionAbortedError("aborted")
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        return left

    @property
    def expired(self) -> bool:
        """True once the deadline has passed."""
        return time.monotonic() >= self.deadline

    def enter(self, sock: socket.socket) -> None:
        """The socket is about to wait: let it wait no longer than what is left."""
        # First the socket, then the look at `aborted`; `abort` does it the other way round.
        self.sock = sock
        sock.settimeout(self.left())

    def count(self, size: int) -> None:
        """Bytes came in; raises `OSError` when they are too many, in whatever part they are."""
        self.received += size
        self.ended = not size
        if self.received > self.max_bytes:
            self.too_large = True
            raise OSError("too large")

    def found_closed(self) -> bool:
        """True when it failed because its kept connection had been closed before it was sent."""
        return self.reused and not (self.received or self.aborted or self.expired)

    def start_again(self) -> None:
        """Let it be sent once more, on a new connection."""
        self.may_reuse = self.reused = False

    def abort(self) -> None:
        """End the exchange from another thread: its thread wakes up at once."""
        self.aborted = True
        sock = self.sock
        if sock is not None:
            with contextlib.suppress(OSError):  # not connected, or closed already
                # Not the TLS socket's own shutdown, which would go on in plain text.
                socket.socket.shutdown(sock, socket.SHUT_RDWR)

    def take(self) -> Any | None:
        """The kept connection for this exchange, if there is one."""
        connection = self.kept.take() if self.may_reuse else None
        self.reused = connection is not None
        return connection


_thread = threading.local()


def _exchange() -> Exchange:
    exchange: Exchange = _thread.exchange
    return exchange


class _Socket(socket.socket):
    """A socket that waits for no longer than its thread's exchange has left."""

    __slots__ = ()

    def recv(self, *args: Any) -> bytes:
        _exchange().enter(self)
        data = super().recv(*args)
        _exchange().count(len(data))
        return data

    def recv_into(self, *args: Any) -> int:
        _exchange().enter(self)
        size = super().recv_into(*args)
        _exchange().count(size)
        return size

    def send(self, *args: Any) -> int:
        _exchange().enter(self)
        return super().send(*args)

    def sendall(self, *args: Any) -> None:
        _exchange().enter(self)
        super().sendall(*args)


class TLSSocket(_Socket, ssl.SSLSocket):
    """The same with TLS: give it to an `SSLContext` as `sslsocket_class`."""

    def recv(self, *args: Any) -> bytes:
        try:
            return super().recv(*args)
        except OSError:
            if self.version() is None:  # `ssl` looks into a socket that it is about to wrap,
                self.close()  # and does not close it if that fails
            raise

    def do_handshake(self, block: bool = False) -> None:
        _exchange().enter(self)
        super().do_handshake(block)


class _Response(HTTPResponse):
    """Refuses headers that were cut short, or that cannot be told from the body.

    The standard library takes the former for whole; urllib3 logs the latter, secrets included.
    """

    def begin(self) -> None:
        super().begin()
        if _exchange().ended:
            raise HTTPException("the connection was closed in the middle of the headers")
        if self.msg.defects or self.msg.get_payload():
            raise HTTPException("malformed headers")


class _HTTPConnection(HTTPConnection):
    response_class = _Response

    def _new_conn(self) -> socket.socket:
        """Try each address of the host with an equal share of the time that is left."""
        exchange = _exchange()
        failure: OSError = OSError("the name has no address")
        addresses = self._addresses()
        for number, (family, kind, protocol, _, address) in enumerate(addresses):
            sock = _Socket(family, kind, protocol)
            try:
                for option in self.socket_options or ():
                    sock.setsockopt(*option)
                exchange.enter(sock)
                sock.settimeout(exchange.left() / (len(addresses) - number))
                sock.connect(address)
            except OSError as error:
                sock.close()
                failure = error
            except BaseException:
                sock.close()
                raise
            else:
                return sock
        if isinstance(failure, TimeoutError):
            raise ConnectTimeoutError(self, "timed out") from failure
        raise NewConnectionError(self, str(failure)) from failure

    def _addresses(self) -> list[Any]:
        host = self._dns_host.strip("[]")
        try:
            return socket.getaddrinfo(host, self.port, allowed_gai_family(), socket.SOCK_STREAM)
        except socket.gaierror as error:
            raise NameResolutionError(self.host, self, error) from error


class _HTTPSConnection(_HTTPConnection, HTTPSConnection):
    pass


class _HTTPPool(HTTPConnectionPool):
    """Urllib3's requests and proxies over our own connections, of which one is kept."""

    ConnectionCls = _HTTPConnection

    def _get_conn(self, timeout: float | None = None) -> Any:
        return _exchange().take() or self._new_conn()

    def _put_conn(self, conn: Any) -> None:
        if conn is not None and not conn.is_closed:
            _exchange().kept.give(conn)


class _HTTPSPool(_HTTPPool, HTTPSConnectionPool):
    ConnectionCls = _HTTPSConnection

    def _validate_conn(self, conn: Any) -> None:
        # Not urllib3's own, which warns about each connection that `verify=False` asked for.
        if conn.is_closed:
            conn.connect()


POOLS = {"http": _HTTPPool, "https": _HTTPSPool}
