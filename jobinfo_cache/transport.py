"""Sends requests to one dashboard, each wholly over by its deadline."""

from __future__ import annotations

import contextlib
import copy
import http.client
import socket
import ssl
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timezone

import requests
import urllib3.exceptions
from requests.structures import CaseInsensitiveDict

from jobinfo_cache._version import __version__
from jobinfo_cache.adapter import Adapter, forget_tls_contexts
from jobinfo_cache.answers import Answer, Redact, printable
from jobinfo_cache.errors import BadResponse, DashboardError, DashboardUnavailable
from jobinfo_cache.exchange import Exchange, Kept
from jobinfo_cache.fork import renew_after_fork

__all__ = ["Transport"]

_CHUNK = 65_536
_MAX_ERROR_BODY = 65_536
_MAX_HEADERS = 1_048_576
_FAULTS = (
    requests.RequestException,
    urllib3.exceptions.HTTPError,
    http.client.HTTPException,
    OSError,
    ValueError,
)


class Transport:
    """The way to one dashboard: its proxy, its TLS settings and one kept connection.

    `hide` is told the secrets of the proxy, which `redact` is to leave out from then on. Safe from
    any thread. Holds no lock; after a fork the child starts with no connection.
    """

    def __init__(
        self,
        url: str,
        *,
        verify: bool | str | ssl.SSLContext,
        proxies: Mapping[str, str] | None,
        max_response_bytes: int,
        redact: Redact,
        hide: Callable[[Iterable[str]], None],
    ) -> None:
        self._url = url
        self._verify = verify
        self._proxies = proxies
        self._max_response_bytes = max_response_bytes
        self._redact = redact
        self._hide = hide
        self._adapter: Adapter | None = None
        self._merged: tuple[Mapping[str, str], Mapping[str, str]] = ({}, _OUR_HEADERS)
        self._kept = Kept()
        self._under_way: set[Exchange] = set()
        self._aborted = False
        renew_after_fork(self)

    def separate(self) -> Transport:
        """The same way for another user, with a kept connection and requests of its own."""
        other = copy.copy(self)
        vars(other).update(_kept=Kept(), _under_way=set(), _aborted=False)
        renew_after_fork(other)
        return other

    def send(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        timeout: float,
        deadline: float,
    ) -> Answer:
        """Send a request and read the answer; over by `deadline` on `time.monotonic`.

        `timeout` is what the request had at its start, for the words of a failure. Only a name
        look-up may take longer. A GET whose kept connection turned out to be closed is sent once
        more. Raises `DashboardUnavailable`, or `BadResponse` for an answer that is too large.
        """
        request = _prepared(method, self._url + path, self._with_ours(headers), body)
        max_bytes = self._max_response_bytes + _MAX_HEADERS
        exchange = Exchange(timeout, deadline, max_bytes, self._kept)
        sent_at = datetime.now(timezone.utc)
        # First in the set, then the look at `_aborted`; `abort` does it the other way round.
        self._under_way.add(exchange)
        if self._aborted:
            exchange.abort()
        try:
            with exchange.current():
                return self._exchange(request, exchange, sent_at)
        except _FAULTS as error:
            fault: Exception = error
        finally:
            self._under_way.discard(exchange)
        # Outside the handler, so that the fault is chained only where it is safe to show.
        raise self._failure(request, exchange, sent_at, fault)

    def abort(self) -> None:
        """End all requests under way, and all later ones: they fail at once, in their threads."""
        self._aborted = True
        for exchange in list(self._under_way):
            exchange.abort()
        self.close()

    def close(self) -> None:
        """Close the kept connection; those of requests under way close when they are over."""
        kept, self._kept = self._kept, Kept()
        kept.close()

    def renew(self) -> None:
        """In a forked child: let go of what the parent uses, without a word to the other side."""
        forget_tls_contexts()
        for exchange in self._under_way:
            if exchange.sock is not None:
                with contextlib.suppress(OSError):
                    socket.close(exchange.sock.detach())
        self._kept.close()
        self._kept = Kept()
        self._under_way = set()
        self._adapter = None

    def _with_ours(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """The headers and ours, put together once for as long as they stay the same."""
        given, merged = self._merged
        if given is not headers:
            merged = CaseInsensitiveDict(_OUR_HEADERS)
            merged.update(headers)
            self._merged = (headers, merged)
        return merged

    def _exchange(
        self, request: requests.PreparedRequest, exchange: Exchange, sent_at: datetime
    ) -> Answer:
        try:
            return self._attempt(request, exchange, sent_at)
        except _FAULTS:
            if request.method != "GET" or not exchange.found_closed():
                raise
        exchange.start_again()
        return self._attempt(request, exchange, sent_at)

    def _attempt(
        self, request: requests.PreparedRequest, exchange: Exchange, sent_at: datetime
    ) -> Answer:
        exchange.left()  # it may be over before it has begun
        adapter = self._adapter
        if adapter is None:
            adapter = Adapter(self._url, self._verify, self._proxies)
            self._hide(adapter.secrets)
            self._adapter = adapter
        response = adapter.send(
            request, stream=True, timeout=exchange.timeout, proxies=adapter.proxies
        )
        try:
            content = self._read(response, exchange)
        finally:
            response.raw.close()
        return Answer(
            method=str(request.method),
            url=str(request.url),
            sent_at=sent_at,
            status=response.status_code,
            content_type=response.headers.get("Content-Type", ""),
            retry_after=response.headers.get("Retry-After"),
            content=content,
        )

    def _read(self, response: requests.Response, exchange: Exchange) -> bytes:
        """The body, decompressed; of an error's body no more than its beginning."""
        is_error = response.status_code != 200
        limit = _MAX_ERROR_BODY if is_error else self._max_response_bytes
        body = bytearray()
        for chunk in response.raw.stream(_CHUNK, decode_content=True):
            body += chunk
            if len(body) > limit:
                if is_error:
                    return bytes(body[:limit])
                exchange.too_large = True
                raise OSError("too large")
        response.raw.release_conn()
        return bytes(body)

    def _failure(
        self,
        request: requests.PreparedRequest,
        exchange: Exchange,
        sent_at: datetime,
        fault: Exception,
    ) -> DashboardError:
        failed: type[DashboardError] = DashboardUnavailable
        chain = _chain(fault)
        if exchange.aborted:
            what = "given up, because the client was told to abort"
        elif exchange.too_large:
            failed = BadResponse
            what = f"the answer has more than {self._max_response_bytes} bytes"
        elif exchange.expired:
            what = f"no complete answer within {exchange.timeout:g} s"
        else:
            what = printable(self._redact(_reason(chain[-1])))
        message = f"{request.method} {request.url}: {what}"
        failure = failed(message, url=str(request.url), fetched_at=sent_at)
        words = "\n".join(f"{error} {error!r}" for error in chain)
        if self._redact(words) == words:
            failure.__cause__ = fault
        for error in chain:
            _strip(error)
        return failure


def _prepared(
    method: str, url: str, headers: Mapping[str, str], body: bytes | None
) -> requests.PreparedRequest:
    # By hand: preparing costs more than sending, and the URL and the headers were checked.
    request = requests.PreparedRequest()
    request.method = method
    request.url = url
    request.headers = headers  # type: ignore[assignment] # not changed, but for requests with more
    if method == "GET":
        return request
    request.headers = CaseInsensitiveDict(headers)
    if body is not None:
        request.body = body
        request.headers["Content-Type"] = "application/json"
        request.headers["Content-Length"] = str(len(body))
    else:
        request.headers["Content-Length"] = "0"
    return request


_OUR_HEADERS = {
    "User-Agent": f"jobinfo-cache/{__version__} {requests.utils.default_user_agent()}",
    "Accept": "application/json",
    "Accept-Encoding": "gzip, deflate",
}


def _chain(error: BaseException) -> list[BaseException]:
    """The exception and those it came from, the first cause last."""
    chain: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and following not in chain:
        chain.append(following)
        nested = [getattr(following, "reason", None), *reversed(following.args)]
        inner = [each for each in nested if isinstance(each, BaseException)]
        following = following.__cause__ or following.__context__ or (inner[0] if inner else None)
    return chain


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


def _strip(error: BaseException) -> None:
    """Let go of frames and headers: the exception may be kept for long."""
    error.__traceback__ = None
    if isinstance(error, requests.RequestException):
        error.request = error.response = None
