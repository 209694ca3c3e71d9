"""A program whose cache goes through everything, for a Prometheus to look at.

    python -m tests.apps.busy

It writes the port of its metrics as a line, and runs until its standard input ends.
"""

from __future__ import annotations

import itertools
import sys
import threading
from contextlib import ExitStack

from prometheus_client import CollectorRegistry, start_http_server

from jobinfo_cache import (
    CachedDashboardClient,
    Cluster,
    DashboardClient,
    DashboardError,
    JobChange,
    JobInfo,
    JobInfoCache,
    Settings,
    TryAgain,
)
from jobinfo_cache.metrics import JobInfoCollector
from jobinfo_cache.testing import SimulatedDashboard

SETTINGS = Settings(
    workers=2,  # one for dashboards in trouble, of which there are two that hang
    poll_interval=0.2,
    max_backoff=0.4,
    expiry=1.5,
    cleanup_interval=0.2,
    cache_size=24,
    request_timeout=0.5,
)
PACE = 0.05  # seconds between two rounds of the controller


class FaultyClient(DashboardClient):
    """A client with a fault of its own."""

    def get_job_info(self, job_id: str) -> JobInfo:
        raise ZeroDivisionError(job_id)


def complain(change: JobChange) -> None:
    """An `on_change` that does not like one of the jobs."""
    if change.job_id == "gone":
        raise ValueError("a callback's fault")


class Controller:
    """Reads all sorts of jobs of all sorts of dashboards, again and again."""

    def __init__(self, cache: JobInfoCache, stack: ExitStack) -> None:
        self._cache = cache
        self._stack = stack
        self._number = itertools.count()
        self._well = self._client("well")
        self._late = self._client("late", latency=0.1)
        self._dead = [self._client(f"hangs-{number}", fault="hang") for number in range(2)]
        self._others = [
            self._client("garbage", fault="garbage"),
            self._client("locked", token="secret"),
            cache.client(FaultyClient("http://127.0.0.1:1"), Cluster("busy", "faulty", "uid")),
        ]

    def _client(
        self, name: str, *, fault: str | None = None, token: str | None = None, latency: float = 0.0
    ) -> CachedDashboardClient:
        simulator = SimulatedDashboard(token=token, latency=latency)
        dashboard = self._stack.enter_context(simulator)
        for number in range(6):
            dashboard.add_job(f"runs-{number}", status="RUNNING")
        dashboard.add_job("ended", status="SUCCEEDED")
        dashboard.fault(fault)
        return self._cache.client(dashboard.url, Cluster("busy", name, "uid"))

    def round(self) -> None:
        """One reconcile of all."""
        new = next(self._number)
        for number in range(6):
            _read(self._well, f"runs-{number}")
        _read(self._well, "ended")
        _read(self._well, "gone")  # not found
        _read(self._well, "runs-0", max_age=0.001)  # stale
        _read(self._late, "runs-0")
        if new % 5 == 0:
            self._late.forget("runs-0")  # now and then while it is asked for
        for client in (*self._dead, *self._others):
            _read(client, "runs-0")
        if new % 40 == 0:  # in between they expire, as nobody reads them
            for number in range(12):
                _read(self._dead[0], f"new-{new}-{number}")  # more than there is room for


def _read(client: CachedDashboardClient, job_id: str, max_age: float | None = None) -> None:
    try:
        client.get_job_info(job_id, max_age=max_age)
    except (TryAgain, DashboardError):
        return  # what a controller does: it comes again


def _wait_for_the_end(ended: threading.Event) -> None:
    sys.stdin.read()
    ended.set()


def main() -> None:
    """Run until the standard input ends."""
    ended = threading.Event()
    threading.Thread(target=_wait_for_the_end, args=(ended,), daemon=True).start()
    registry = CollectorRegistry()
    with ExitStack() as stack:
        cache = stack.enter_context(JobInfoCache(SETTINGS, on_change=complain))
        registry.register(JobInfoCollector(cache))
        server, _ = start_http_server(0, addr="127.0.0.1", registry=registry)
        stack.callback(server.shutdown)
        controller = Controller(cache, stack)
        sys.stdout.write(f"{server.server_port}\n")
        sys.stdout.flush()
        while not ended.wait(PACE):
            controller.round()


if __name__ == "__main__":
    main()
