"""The requests that a simulated dashboard has had."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from jobinfo_cache.testing.api import Call

__all__ = ["Journal", "Request"]

_SECRET_HEADERS = ("authorization", "x-ray-authorization", "cookie")
_LENGTH = 50_000


@dataclass(frozen=True)
class Request:
    """One request. `status` is None while it has no answer; `at` is on the clock's scale.

    `path` is as sent, not decoded. The values of secret headers are left out.
    """

    method: str
    path: str
    status: int | None
    headers: dict[str, str]
    at: float


@dataclass
class Entry:
    """A request that may still be answered."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    at: float
    status: int | None = field(default=None)


class Journal:
    """The last 50,000 requests, in order of arrival. Safe from any thread."""

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque(maxlen=_LENGTH)

    def arrived(self, call: Call, at: float) -> Entry:
        """Note a request; its `status` may be set later."""
        entry = Entry(call.method, call.path, tuple(_without_secrets(call.headers.items())), at)
        self._entries.append(entry)
        return entry

    def requests(self) -> list[Request]:
        """What has been noted so far."""
        return [
            Request(entry.method, entry.path, entry.status, dict(entry.headers), entry.at)
            for entry in self._entries.copy()
        ]


def _without_secrets(headers: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    return ((n, "" if n.lower() in _SECRET_HEADERS else value) for n, value in headers)
