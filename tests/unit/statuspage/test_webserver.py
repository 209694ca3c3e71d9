"""Tests of the server under the status page: visitors that are slow, rude or many."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from urllib.request import urlopen

import pytest

from jobinfo_cache.statuspage import StatusPage, webserver
from jobinfo_cache.statuspage.webserver import Request, Response
from tests.support import TIMEOUT
from tests.unit.statuspage.visits import ask, connected, document, rest

_GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
def visitor(page: StatusPage) -> Iterator[socket.socket]:
    """A visitor who has said nothing yet."""
    with connected(page) as visitor:
        yield visitor


def visits_end(page: StatusPage) -> None:
    """Wait until the server has no visitor."""
    server = page._server

    async def wait() -> None:
        while others := set(server._visits):
            await asyncio.wait(others)

    asyncio.run_coroutine_threadsafe(wait(), server._loop).result(TIMEOUT)


class TestSlowVisitors:
    """Who says nothing, or takes nothing."""

    @pytest.mark.parametrize("said", [b"", b"G", b"GET / HTTP/1.1\r\nHost: localhost\r\n"])
    def test_hold_up_nobody(self, page: StatusPage, visitor: socket.socket, said: bytes) -> None:
        """While one hangs in the middle of a request, others are answered."""
        visitor.sendall(said)

        assert ask(page).status == 200
        assert ask(page, "/healthz").status == 200

    def test_are_cut_off(self, page: StatusPage, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whoever has not asked by the deadline is cut off without an answer."""
        monkeypatch.setattr(webserver, "_DEADLINE", 0.05)
        with connected(page) as visitor:
            visitor.sendall(b"GET / HTTP/1.1\r\n")

            assert rest(visitor) == b""

    def test_are_cut_off_while_they_are_answered(self, page: StatusPage) -> None:
        """Whoever does not take the answer holds up neither others nor the end."""

        async def endless(request: Request) -> Response:
            return Response(200, "text/plain", [b"x" * 1_000_000] * 100)

        page._routes["/endless"] = endless
        with connected(page) as visitor:
            visitor.sendall(b"GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n")
            received = len(visitor.recv(200))
            assert ask(page, "/healthz").status == 200
            page.close()
            received += len(rest(visitor))

        assert 0 < received < 100_000_000

    def test_too_many_cost_the_first_ones_their_place(
        self, page: StatusPage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """However many hang, a newcomer is answered: the one that came first has to go."""
        monkeypatch.setattr(webserver, "_DEADLINE", 60.0)
        with contextlib.ExitStack() as stack:
            hanging = [stack.enter_context(connected(page)) for _ in range(64)]
            for visitor in hanging:
                visitor.sendall(b"G")

            assert ask(page, "/healthz").status == 200
            assert rest(hanging[0]) == b""
            hanging[-1].sendall(_GET[1:])
            assert rest(hanging[-1]).endswith(b"ok\n")

    def test_may_say_it_in_pieces(self, visitor: socket.socket) -> None:
        """A request that comes byte by byte is a request."""
        for byte in _GET:
            visitor.sendall(bytes([byte]))

        assert rest(visitor).endswith(b"\r\n\r\nok\n")


class TestRudeVisitors:
    """What is no request."""

    @pytest.mark.parametrize(
        ("said", "status"),
        [
            (b"\r\n\r\n", 400),
            (b"GET /\r\n\r\n", 400),
            (b"GET  / HTTP/1.1\r\n\r\n", 400),
            (b"\x16\x03\x01\x02\x00\r\n\r\n", 400),
            (b"GET /?" + b"a=1&" * 20 + b" HTTP/1.1\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n", 400),
            (b"GET / HTTP/2.0\r\n\r\n", 505),
            (b"GET / HTTP/1.1\r\nA: " + b"x" * 20_000 + b"\r\n\r\n", 431),
            (b"x" * 40_000, 431),
            (b"GET / HTTP/1.1\r\n\r\n", 421),
            (b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", 421),
        ],
        ids=lambda value: str(value)[:24] if isinstance(value, bytes) else None,
    )
    def test_are_told_what_is_wrong(
        self, page: StatusPage, visitor: socket.socket, said: bytes, status: int
    ) -> None:
        """What is no request gets the status that says so, and the server goes on."""
        visitor.sendall(said)
        assert rest(visitor).startswith(f"HTTP/1.1 {status} ".encode())
        assert ask(page).status == 200

    @pytest.mark.parametrize("said", [b"", b"GET / HT", _GET])
    def test_who_go_at_once(
        self, page: StatusPage, said: bytes, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Whoever goes before the answer has come leaves nothing behind, and nobody is told."""
        for _ in range(10):
            with connected(page) as visitor:
                visitor.sendall(said)
        visits_end(page)

        assert document(page, "/healthz") == "ok\n"
        assert caplog.records == []

    def test_head_has_no_body(self, visitor: socket.socket) -> None:
        """Nothing follows the headers of an answer to HEAD."""
        visitor.sendall(_GET.replace(b"GET", b"HEAD"))
        assert rest(visitor).endswith(b"\r\n\r\n")

    def test_one_request_a_connection(self, visitor: socket.socket) -> None:
        """A second request on the connection is not answered."""
        visitor.sendall(_GET + _GET)
        assert rest(visitor).count(b"HTTP/1.1") == 1


class TestEnd:
    """`close` while somebody visits."""

    def test_cuts_off_who_hangs(self, page: StatusPage, visitor: socket.socket) -> None:
        """Visitors of all kinds do not hold up the end, and are cut off."""
        visitor.sendall(b"GET / HT")
        silent = connected(page)
        document(page, "/healthz")  # so that the others have been let in
        page.close()

        assert rest(visitor) == b""
        assert rest(silent) == b""
        silent.close()
        assert not page._server._thread.is_alive()

    def test_knocking_while_it_closes(self, page: StatusPage) -> None:
        """Visitors who are just coming in are cut off as well, and leave nothing behind."""
        knocking = [connected(page) for _ in range(20)]
        page.close()
        for visitor in knocking:
            assert rest(visitor) == b""
            visitor.close()


def test_trouble_of_the_event_loop_is_logged(
    page: StatusPage, caplog: pytest.LogCaptureFixture
) -> None:
    """What the event loop complains of goes to the library's log, and not to stderr."""
    page._server._loop.call_soon_threadsafe(lambda: 1 / 0)

    assert ask(page).status == 200
    assert [record.name for record in caplog.records] == ["jobinfo_cache.statuspage.webserver"]


def test_is_plain_http(page: StatusPage) -> None:
    """The standard library's client is content with it."""
    with urlopen(f"{page.url}/healthz", timeout=TIMEOUT) as answer:
        assert answer.read() == b"ok\n"
