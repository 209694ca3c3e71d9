"""What a network, a proxy or a server in trouble makes of an answer."""

from __future__ import annotations

import functools
import re
import threading
import zlib
from collections.abc import Callable

from jobinfo_cache.testing import texts
from jobinfo_cache.testing.gate import Gate
from jobinfo_cache.testing.peer import Peer, response

__all__ = ["CONNECTION_KINDS", "Make", "Trouble"]

#: Makes the true answer; the request is not carried out before.
Make = Callable[[], bytes]

#: What happens to connections, not to answers; the listener sees to "refuse".
CONNECTION_KINDS = ("refuse", "stall-handshake")

_HUGE = 2_147_483_648
_PIECE = b" " * 1_048_576
_BOMB_PIECES = 256


class Trouble:
    """A fault in force: its `gate` opens when it ends. Safe from any thread.

    Raises `ValueError` for a kind that does not exist, or arguments that do not go with it.
    """

    def __init__(self, kind: str, times: int | None, retry_after: str | None) -> None:
        is_status = re.fullmatch("[45][0-9][0-9]", kind) is not None
        if not (is_status or kind in CONNECTION_KINDS or kind in _TRICKS):
            known = ", ".join([*CONNECTION_KINDS, *_TRICKS])
            raise ValueError(f"kind is {kind!r}; it must be {known}, a status from 400, or None")
        if retry_after is not None and not is_status:
            raise ValueError(f"kind is {kind!r}; retry_after goes with a status only")
        if times is not None and (times < 1 or kind in CONNECTION_KINDS):
            raise ValueError(f"times is {times!r}; it must be at least 1, and not for {kind}")
        self.kind = kind
        self.gate = Gate()
        self._trick = _status(kind, retry_after) if is_status else _TRICKS.get(kind)
        self._changed = threading.Condition()
        # Guarded by _changed:
        self._left = times
        self._struck = 0

    def strikes(self) -> bool:
        """Count one request or connection; False if there were enough already."""
        with self._changed:
            if self._left == 0:
                return False
            if self._left is not None:
                self._left -= 1
            self._struck += 1
            self._changed.notify_all()
            return True

    def wait_for(self, n: int, timeout: float) -> None:
        """Block until `n` were struck; raises `TimeoutError` after `timeout` real seconds."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._struck >= n, timeout):
                raise TimeoutError(f"{self._struck} requests were struck in {timeout} s, not {n}")

    def spoil(self, peer: Peer, make: Make) -> None:
        """Send what it makes of an answer; blocks as long as it takes."""
        if self._trick is None:
            peer.send(make())  # it is about connections
        else:
            self._trick(peer, make, self.gate)


def _hang(peer: Peer, make: Make, gate: Gate) -> None:
    if gate.hold(peer.sock):
        peer.send(make())


def _reset_before_headers(peer: Peer, _make: Make, _gate: Gate) -> None:
    peer.reset()


def _reset_after_headers(peer: Peer, make: Make, _gate: Gate) -> None:
    head, _ = _parts(make())
    peer.send(head)
    peer.reset()


def _truncate(peer: Peer, make: Make, _gate: Gate) -> None:
    whole = make()
    peer.send(whole[:-1])
    peer.close()


def _drip_headers(peer: Peer, make: Make, gate: Gate) -> None:
    line, _, rest = make().partition(b"\r\n")
    peer.send(line + b"\r\nX-Drip: ")
    while not gate.is_released and peer.pauses():
        peer.send(b"x")
    peer.send(b"\r\n" + rest)


def _drip_body(peer: Peer, make: Make, gate: Gate) -> None:
    head, body = _parts(make())
    lines = [each for each in head.split(b"\r\n") if not each.startswith(b"Content-Length")]
    lines.insert(1, b"Transfer-Encoding: chunked")
    peer.send(b"\r\n".join(lines))
    while not gate.is_released and peer.pauses():
        peer.send(b"1\r\n \r\n")
    chunk = b"%x\r\n%s\r\n" % (len(body), body) if body else b""
    peer.send(chunk + b"0\r\n\r\n")


def _html(peer: Peer, _make: Make, _gate: Gate) -> None:
    peer.send(response(texts.LOGIN.encode(), "200 OK", "Content-Type: text/html"))


def _login_redirect(peer: Peer, _make: Make, _gate: Gate) -> None:
    peer.send(response(b"", "302 Found", f"Location: {peer.server.url}/login"))


def _huge_body(peer: Peer, _make: Make, gate: Gate) -> None:
    peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % _HUGE)
    for _ in range(_HUGE // len(_PIECE)):
        if gate.is_released:
            peer.close()
            return
        peer.send(_PIECE)


def _gzip_bomb(peer: Peer, _make: Make, _gate: Gate) -> None:
    peer.send(response(_bomb(), "200 OK", "Content-Encoding: gzip"))


def _long_length(peer: Peer, make: Make, gate: Gate) -> None:
    peer.send(_with_length(make(), 1))
    gate.hold(peer.sock)
    peer.close()


def _short_length(peer: Peer, make: Make, _gate: Gate) -> None:
    peer.send(_with_length(make(), -1))


def _close(peer: Peer, make: Make, _gate: Gate) -> None:
    peer.send(make())
    peer.close()


_TRICKS: dict[str, Callable[[Peer, Make, Gate], None]] = {
    "reset-before-headers": _reset_before_headers,
    "reset-after-headers": _reset_after_headers,
    "truncate": _truncate,
    "drip-headers": _drip_headers,
    "drip-body": _drip_body,
    "hang": _hang,
    "html": _html,
    "login-redirect": _login_redirect,
    "huge-body": _huge_body,
    "gzip-bomb": _gzip_bomb,
    "long-length": _long_length,
    "short-length": _short_length,
    "close": _close,
}


def _status(kind: str, retry_after: str | None) -> Callable[[Peer, Make, Gate], None]:
    status = int(kind)
    headers = ["Content-Type: text/plain"]
    if retry_after is not None:
        headers.append(f"Retry-After: {retry_after}")
    answer = response(
        texts.plain(status).encode(), f"{status} {texts.PHRASES.get(status, '')}", *headers
    )
    return lambda peer, _make, _gate: peer.send(answer)


def _parts(whole: bytes) -> tuple[bytes, bytes]:
    """The head of a response, with the empty line, and its body."""
    head, end, body = whole.partition(b"\r\n\r\n")
    return head + end, body


def _with_length(whole: bytes, difference: int) -> bytes:
    """The response with a Content-Length that is wrong by so much."""
    head, body = _parts(whole)
    wrong = b"Content-Length: %d" % max(len(body) + difference, 0)
    return re.sub(rb"Content-Length: \d+", wrong, head, count=1) + body


@functools.lru_cache(maxsize=1)
def _bomb() -> bytes:
    """256 MB of blanks in little more than 1 MB."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    return b"".join(packer.compress(_PIECE) for _ in range(_BOMB_PIECES)) + packer.flush()
