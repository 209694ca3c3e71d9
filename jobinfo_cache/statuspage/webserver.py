"""A small HTTP server in one thread, which no visitor can hold up.

Visitors are tasks of an event loop: one that is slow or says nothing costs a connection until
its deadline, and never a thread. A connection serves one request.
"""

from __future__ import annotations

import asyncio
import contextlib
import http
import http.client
import io
import selectors
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.message import Message
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from jobinfo_cache.dispatcher import join_thread
from jobinfo_cache.fork import renew_after_fork
from jobinfo_cache.instrumentation import get_logger

__all__ = ["Refusal", "Request", "Response", "WebServer"]

log = get_logger(__name__)

_DEADLINE = 10.0  # seconds for a whole visit, from its connection to the last byte
_MOST_VISITS = 64  # at a time; then the one that began first, most likely a hanging one, is cut
_LONGEST_HEAD = 16_384  # bytes
_MOST_PARAMETERS = 10
_ACCEPT_RETRY = 1.0  # seconds
_HEAD_END = b"\r\n\r\n"


class Request(NamedTuple):
    """The head of a request. `path` is as it was sent; `query` has each parameter's last value."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Message


@dataclass(frozen=True)
class Response:
    """What is sent back; `headers` are beside those that the server adds itself.

    The body is in parts: one call that copies megabytes is one that other threads wait for.
    """

    status: int
    content_type: str
    body: Sequence[bytes]
    headers: Mapping[str, str] = field(default_factory=dict)


class Refusal(Exception):  # noqa: N818 - an answer, not a fault
    """The request is answered with a status other than 200, and one line of text."""

    def __init__(self, status: int, text: str, **headers: str) -> None:
        super().__init__(text)
        body = [f"{text}\n".encode()]
        self.response = Response(status, "text/plain; charset=utf-8", body, headers)


class WebServer:
    """Answers each request on a listening socket with what `respond` returns.

    `respond` runs in the server's thread, a daemon; it must not block. It may raise a `Refusal`.
    The child of a fork has no server: its copy of the socket is closed.
    """

    def __init__(
        self,
        listener: socket.socket,
        respond: Callable[[Request], Awaitable[Response]],
        *,
        headers: Mapping[str, str],
        name: str,
    ) -> None:
        listener.setblocking(False)
        self._listener = listener
        self._respond = respond
        self._headers = headers
        # Not epoll or kqueue, whose registrations a forked child would share.
        self._loop = asyncio.SelectorEventLoop(selectors.PollSelector())
        self._loop.set_exception_handler(_log_fault)
        self._stopped = asyncio.Event()
        self._visits: dict[asyncio.Task[None], None] = {}  # in the order of their beginning
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin to answer; raises what the system says if it has no thread for it."""
        try:
            self._thread.start()
        except BaseException:
            self._loop.close()
            self._listener.close()
            raise
        renew_after_fork(self)

    def renew(self) -> None:
        """Let go of the socket; a fork's child begins so, without the thread."""
        self._listener.close()

    def close(self, timeout: float) -> None:
        """Cut off all visits and end the thread; waits for that for at most `timeout` seconds."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: it has ended
            self._loop.call_soon_threadsafe(self._stopped.set)
        join_thread(self._thread, timeout)

    # The server's thread

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        self._listen()
        await self._stopped.wait()
        self._loop.remove_reader(self._listener)
        self._listener.close()
        while self._visits:
            for visit in self._visits:
                visit.cancel()
            await asyncio.wait(self._visits)

    def _listen(self) -> None:
        if not self._stopped.is_set():
            self._loop.add_reader(self._listener, self._admit)

    def _admit(self) -> None:
        """Let one visitor in."""
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return  # the visitor has gone again
        except OSError as error:  # most likely there are too many open files
            log.warning("no visitor can be let in for a while", error=str(error))
            self._loop.remove_reader(self._listener)
            self._loop.call_later(_ACCEPT_RETRY, self._listen)
            return
        connection.setblocking(False)
        if len(self._visits) >= _MOST_VISITS:
            next(iter(self._visits)).cancel()
        visit = self._loop.create_task(self._visit(connection))
        self._visits[visit] = None

        def end(visit: asyncio.Task[None]) -> None:
            del self._visits[visit]
            connection.close()  # here, as a task that is cancelled early never begins

        visit.add_done_callback(end)

    async def _visit(self, connection: socket.socket) -> None:
        # What is suppressed: the visitor has gone, or is too slow.
        with contextlib.suppress(OSError, asyncio.TimeoutError):
            await asyncio.wait_for(self._answer(connection), _DEADLINE)

    async def _answer(self, connection: socket.socket) -> None:
        is_head = False
        try:
            head = await self._head(connection)
            if head is None:
                return
            request = _parsed(head)
            is_head = request.method == "HEAD"
            response = await self._respond(request)
        except Refusal as refusal:
            response = refusal.response
        except OSError:
            raise
        except Exception as fault:
            log.warning("the status page could not be made", exc_info=fault)
            response = Refusal(500, "the page could not be made; the log says why").response
        parts = [self._written(response), *(() if is_head else response.body)]
        for part in parts:
            await self._loop.sock_sendall(connection, part)
        connection.shutdown(socket.SHUT_WR)  # `close` says nothing while a child has a copy

    async def _head(self, connection: socket.socket) -> bytes | None:
        """The head of the request, without its end; None if the visitor goes before that."""
        received = bytearray()
        while (end := received.find(_HEAD_END)) < 0 and len(received) < _LONGEST_HEAD:
            part = await self._loop.sock_recv(connection, _LONGEST_HEAD)
            if not part:
                return None
            received += part
        if end < 0:
            raise Refusal(431, "the head of the request is too long")
        return bytes(received[:end])

    def _written(self, response: Response) -> bytes:
        """The head of the response."""
        headers = {
            "Content-Type": response.content_type,
            "Content-Length": str(sum(map(len, response.body))),
            "Connection": "close",
            **self._headers,
            **response.headers,
        }
        phrase = http.HTTPStatus(response.status).phrase
        lines = [f"HTTP/1.1 {response.status} {phrase}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _parsed(head: bytes) -> Request:
    line, _, rest = head.partition(b"\r\n")
    words = line.decode("latin-1").split(" ")
    try:
        method, target, version = words
        headers = http.client.parse_headers(io.BytesIO(rest))
        path, _, query = target.partition("?")
        parameters = parse_qsl(query, max_num_fields=_MOST_PARAMETERS)
    except (ValueError, http.client.HTTPException):
        raise Refusal(400, "this is no request") from None
    if not version.startswith("HTTP/1."):
        raise Refusal(505, "this server speaks HTTP/1.1")
    return Request(method, path, dict(parameters), headers)


def _log_fault(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Where the event loop tells of its own trouble, like a lack of file descriptors."""
    log.warning(
        "the status page has trouble",
        what=str(context.get("message")),
        exc_info=context.get("exception"),
    )
