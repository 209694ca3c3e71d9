"""The status page: what is served where, and to whom."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import socket
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from importlib import resources
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from jobinfo_cache._version import __version__
from jobinfo_cache.cache import JobInfoCache
from jobinfo_cache.statuspage import page
from jobinfo_cache.statuspage.health import Health
from jobinfo_cache.statuspage.overview import (
    ClusterRow,
    JobRow,
    Overview,
    gather,
    pause,
    slices,
)
from jobinfo_cache.statuspage.webserver import Refusal, Request, Response, WebServer

__all__ = ["StatusPage", "serve"]

_LIMIT = 200  # jobs shown unless the request says otherwise
_MOST = 10_000
_LONGEST_QUERY = 200  # characters
_CLOSE_TIMEOUT = 5.0  # seconds; the thread has nothing to wait for
_BACKLOG = 128
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
        " img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class StatusPage:
    """A status page that is being served; made by `serve`. A context manager.

    It holds the cache, so that a cache with a page lives until the page is closed. It reads
    nothing in the sense of `get_job_info`: looking keeps no job alive. Safe from any thread; only
    `close` waits. In the child of a fork it is closed.

    .. versionadded:: 0.1.0
    """

    def __init__(self, cache: JobInfoCache, listener: socket.socket) -> None:
        self._cache = cache
        self._health = Health(cache)
        self._registry: Any = None  # of Prometheus, once it was asked for
        self._gathering = asyncio.Lock()  # however many visitors, one looks through the jobs
        self._host, self._port = listener.getsockname()[:2]
        self._is_local = ipaddress.ip_address(self._host).is_loopback
        self._routes: dict[str, Callable[[Request], Awaitable[Response]]] = {
            "/": self._page,
            "/healthz": self._healthz,
            "/metrics": self._metrics,
            "/page.css": _stylesheet,
            "/page.js": _script,
            "/statusz.json": self._statusz,
        }
        self._server = WebServer(
            listener, self._respond, headers=_HEADERS, name="jobinfo-statuspage"
        )
        self._server.start()

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._port)

    @property
    def url(self) -> str:
        """Where to find it from this machine; without a trailing slash."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._host, self._host)
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    def close(self) -> None:
        """Give the port up, cut off all visitors and end the thread; waits for 5 s at most.

        Idempotent; the cache goes on. Safe from a signal handler.

        .. versionadded:: 0.1.0
        """
        self._server.close(_CLOSE_TIMEOUT)

    def __enter__(self) -> StatusPage:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # The server's thread

    async def _respond(self, request: Request) -> Response:
        if self._is_local and not _names_loopback(request.headers.get_all("Host", [])):
            # Else a web site whose name was made to lead here could read all of it.
            raise Refusal(421, "this page is on loopback: ask for 127.0.0.1 or localhost")
        if request.method not in ("GET", "HEAD"):
            raise Refusal(405, "this page can only be read", Allow="GET, HEAD")
        route = self._routes.get(request.path)
        if route is None:
            raise Refusal(404, f"there are: {', '.join(self._routes)}")
        return await route(request)

    async def _page(self, request: Request) -> Response:
        return _text("text/html", *await page.render(await self._overview(request)))

    async def _statusz(self, request: Request) -> Response:
        return _text("application/json", *await _json(await self._overview(request)))

    async def _healthz(self, _request: Request) -> Response:
        trouble = self._health.trouble()
        if trouble is not None:
            raise Refusal(503, trouble)
        return _text("text/plain", "ok\n")

    async def _metrics(self, request: Request) -> Response:
        try:
            from prometheus_client import CollectorRegistry
            from prometheus_client.exposition import choose_encoder

            from jobinfo_cache.metrics import JobInfoCollector
        except ImportError:
            raise Refusal(404, "needs the extra: pip install 'jobinfo-cache[prometheus]'") from None
        if self._registry is None:
            self._registry = CollectorRegistry()
            self._registry.register(JobInfoCollector(self._cache))
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return Response(200, content_type, [encode(self._registry)])

    async def _overview(self, request: Request) -> Overview:
        limit = request.query.get("limit", str(_LIMIT))
        if not (limit.isascii() and limit.isdigit() and len(limit) < 10 and int(limit) <= _MOST):
            raise Refusal(400, f"limit is {limit[:20]!r}; it must be a whole number to {_MOST}")
        query = request.query.get("q", "")[:_LONGEST_QUERY]
        async with self._gathering:
            return await gather(self._cache, query=query, limit=int(limit))


def serve(cache: JobInfoCache, host: str = "127.0.0.1", port: int = 0) -> StatusPage:
    """Serve a page about the cache until it is closed, or the program ends; 0 is any free port.

    At `/` is a page for people, at `/statusz.json` the same for programs, at `/healthz` the
    answer to a liveness probe, and at `/metrics` the figures for Prometheus (extra `prometheus`).
    It can only be read, and asks for no password: whoever reaches the port sees the names of
    clusters and jobs, their states and errors. On loopback it answers requests for a loopback
    name or address only.

    Starts one thread, `jobinfo-statuspage`, a daemon. Never blocks, a look-up of `host` aside;
    may be called from any thread. Raises `ValueError` for an empty `host`, `OSError` if the
    address cannot be had, and what the system says if it has no thread for it.

    .. versionadded:: 0.1.0
    """
    if not host:
        raise ValueError('host is empty; name an address, "0.0.0.0" for all of IPv4')
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return StatusPage(cache, socket.create_server((host, port), family=family, backlog=_BACKLOG))


def _names_loopback(hosts: list[str]) -> bool:
    """True if the one Host header names this machine by a name that no one else can give away."""
    if len(hosts) != 1:
        return False
    try:
        name = urlsplit(f"//{hosts[0]}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _text(content_type: str, *parts: str) -> Response:
    # A cluster's name may hold what cannot be encoded.
    body = [part.encode("utf-8", "replace") for part in parts]
    return Response(200, f"{content_type}; charset=utf-8", body)


async def _stylesheet(_request: Request) -> Response:
    return _text("text/css", _resource("page.css"))


async def _script(_request: Request) -> Response:
    return _text("text/javascript", _resource("page.js"))


def _resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


async def _json(overview: Overview) -> list[str]:
    """The overview as JSON, in parts."""
    head = {
        "version": __version__,
        "at": overview.at,
        "closed": overview.is_closed,
        "query": overview.query,
        "limit": overview.limit,
        "stats": vars(overview.stats),
        "statuses": overview.statuses,
        "clusters_found": overview.clusters_found,
        "jobs_found": overview.jobs_found,
    }
    parts = [json.dumps(head, default=datetime.isoformat)[:-1], ', "clusters": [']
    parts += await _json_rows(overview.clusters)
    parts += ['], "jobs": [']
    parts += await _json_rows(overview.jobs)
    return [*parts, "]}\n"]


async def _json_rows(rows: Sequence[ClusterRow | JobRow]) -> list[str]:
    parts: list[str] = []
    for some in slices(rows):
        written = [json.dumps(row._asdict(), default=datetime.isoformat) for row in some]
        parts.append((",\n" if parts else "") + ",\n".join(written))
        await pause()
    return parts
