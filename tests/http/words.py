"""Random bytes that look like HTTP for as long as it hurts, for the fuzz tests."""

from __future__ import annotations

from hypothesis import strategies as st

from jobinfo_cache.testing.peer import Peer, response

_HEADS = st.sampled_from(
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x00",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: ",
        b"HTTP/1.1 ",
        b"HTTP/1.0 503 X\r\nRetry-After: ",
        b"HTTP/1.1 302 X\r\nLocation: ",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        response(b"{}")[:-2],
        response(),
        response(b'{"status": "RUNNING"')[:-1],
    ]
)
_PIECES = st.lists(
    st.binary(max_size=40)
    | st.sampled_from([b"\r\n", b"\r\n\r\n", b"0\r\n\r\n", b"{}", b"5\r\n", b": ", b"\x00", b"-1"])
    | st.just(response()),
    max_size=6,
)

#: What a server may say.
WORDS = st.builds(lambda head, pieces: head + b"".join(pieces), _HEADS, _PIECES)


class Babbler:
    """A script that answers each request with `words`, and closes unless it `stays`."""

    def __init__(self) -> None:
        self.words = b""
        self.stays = False

    def __call__(self, peer: Peer) -> None:
        while peer.request():
            peer.send(self.words)
            if not self.stays:
                return
