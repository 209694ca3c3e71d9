"""Whatever comes back, memory is bounded and the error says what was wrong."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Callable, Iterator

import pytest

from jobinfo_cache.dashboard import DashboardClient
from jobinfo_cache.errors import BadResponse, DashboardError, DashboardUnavailable
from jobinfo_cache.testing import FaultServer
from jobinfo_cache.testing.peer import BODY, Peer, Script, answering, response

MEGABYTE = 1_048_576


def failure(
    server: FaultServer, *, timeout: float = 10.0, max_response_bytes: int = 33_554_432
) -> DashboardError:
    with DashboardClient(
        server.url, timeout=timeout, max_response_bytes=max_response_bytes
    ) as client:
        with pytest.raises(DashboardError) as caught:
            client.get_job_info("x")
        return caught.value


@pytest.fixture
def peak() -> Iterator[Callable[[], int]]:
    """The bytes that Python objects took at most since the test began."""
    tracemalloc.start()
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    yield lambda: tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()


def floods_body(peer: Peer) -> None:
    peer.request()
    peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2147483648\r\n\r\n")
    peer.flood(b" " * MEGABYTE)


def floods_without_length(peer: Peer) -> None:
    peer.request()
    peer.send(b"HTTP/1.1 200 OK\r\n\r\n")
    peer.flood(b" " * MEGABYTE)


def floods_chunks(peer: Peer) -> None:
    peer.request()
    peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    peer.flood(b"100000\r\n" + b" " * MEGABYTE + b"\r\n")


def floods_chunk_size(peer: Peer) -> None:
    peer.request()
    peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    peer.flood(b"0" * MEGABYTE)


def floods_trailer(peer: Peer) -> None:
    peer.request()
    peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n")
    peer.flood(b"x" * MEGABYTE)


def floods_continues(peer: Peer) -> None:
    peer.request()
    peer.flood(b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000)


def gzip_bomb(peer: Peer) -> None:
    peer.request()
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    million = b" " * MEGABYTE
    bomb = b"".join(packer.compress(million) for _ in range(256)) + packer.flush()
    peer.answer(bomb, "200 OK", "Content-Encoding: gzip")


@pytest.mark.parametrize("script", [floods_body, floods_without_length, floods_chunks, gzip_bomb])
def test_a_huge_body_is_a_bad_response_and_takes_little_memory(
    script: Script, peak: Callable[[], int]
) -> None:
    """However it is framed, and after decompression as well."""
    with FaultServer(script) as server:
        error = failure(server)
        assert isinstance(error, BadResponse)
        assert "more than 33554432 bytes" in str(error)
    assert peak() < 50 * MEGABYTE


@pytest.mark.parametrize("script", [floods_chunk_size, floods_trailer, floods_continues])
def test_a_flood_that_is_no_body_takes_little_memory(
    script: Script, peak: Callable[[], int]
) -> None:
    """Framing and interim answers are bounded too, by size or by the deadline."""
    with FaultServer(script) as server:
        failure(server, timeout=1.0)
    assert peak() < 50 * MEGABYTE


def test_an_endless_error_page_is_told_by_its_status(peak: Callable[[], int]) -> None:
    """Of a 503 only the beginning is read."""

    def script(peer: Peer) -> None:
        peer.request()
        peer.send(b"HTTP/1.1 503 Busy\r\nContent-Type: text/html\r\n\r\n<h1>Busy</h1>")
        peer.flood(b"x" * MEGABYTE)

    with FaultServer(script) as server:
        error = failure(server)
    assert isinstance(error, DashboardUnavailable)
    assert '503 Service Unavailable, text/html: "<h1>Busy</h1>xxx' in str(error)
    assert len(str(error)) < 350
    assert peak() < 5 * MEGABYTE


def test_the_limit_is_exact() -> None:
    """A body of `max_response_bytes` is read, one byte more is not."""
    with FaultServer(answering()) as server:
        with DashboardClient(server.url, max_response_bytes=len(BODY)) as client:
            assert client.get_job_info("x").status == "RUNNING"
        assert isinstance(failure(server, max_response_bytes=len(BODY) - 1), BadResponse)


def test_a_compressed_answer_is_read() -> None:
    """Proxies may compress."""
    packed = gzip.compress(BODY)
    with (
        FaultServer(answering(packed, "200 OK", "Content-Encoding: gzip")) as server,
        DashboardClient(server.url) as client,
    ):
        assert client.get_job_info("x").status == "RUNNING"
        assert client.get_job_info("x").status == "RUNNING"
        assert server.connections == 1


def cut(data: bytes) -> Script:
    def script(peer: Peer) -> None:
        peer.request()
        peer.send(data)

    return script


def resets(data: bytes) -> Script:
    def script(peer: Peer) -> None:
        peer.request()
        peer.send(data)
        peer.reset()

    return script


BROKEN: dict[str, Script] = {
    "nothing": cut(b""),
    "half a status line": cut(b"HTTP/1.1 2"),
    "half the headers": cut(b"HTTP/1.1 200 OK\r\nContent-Type: applic"),
    "half the body": cut(response()[:-10]),
    "no body": cut(response()[: -len(BODY)]),
    "half a chunk": cut(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n{}"),
    "no last chunk": cut(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"),
    "odd chunk": cut(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n"),
    "half a gzip": cut(response(gzip.compress(BODY), "200 OK", "Content-Encoding: gzip")[:-12]),
    "no gzip": cut(response(BODY, "200 OK", "Content-Encoding: gzip")),
    "another protocol": cut(b"SSH-2.0-OpenSSH_9.2\r\n"),
    "malformed headers": cut(b"HTTP/1.1 200 OK\r\nno colon here\r\nA: b\r\n\r\n{}"),
    "an endless header": cut(b"HTTP/1.1 200 OK\r\nA: " + b"b" * 100_000),
    "a thousand headers": cut(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 1000 + b"\r\n"),
    "reset before headers": resets(b""),
    "reset in headers": resets(b"HTTP/1.1 200 OK\r\nContent-"),
    "reset in body": resets(response()[:-10]),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_answer_counts_as_unavailable(
    fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Cut short, reset, or no HTTP at all: try again later; nobody logs anything about it."""
    with FaultServer(BROKEN[fault]) as server:
        error = failure(server)
        assert type(error) is DashboardUnavailable
        assert str(error).startswith(f"GET {server.url}/api/jobs/x: ")
        assert "\n" not in str(error)
        assert error.status_code is None
        assert error.fetched_at is not None
        assert len(server.requests) == 1
    assert [each for each in caplog.records if each.levelname != "DEBUG"] == []


def test_more_body_than_announced_is_not_read() -> None:
    """What follows a body is neither part of it nor the next answer."""

    def script(peer: Peer) -> None:
        while peer.request():
            other = response(BODY.replace(b"RUNNING", b"SUCCEEDED"))
            peer.send(response() + other)

    with FaultServer(script) as server, DashboardClient(server.url) as client:
        assert client.get_job_info("x").status == "RUNNING"
        assert client.get_job_info("x").status == "RUNNING"
