"""What the tests of the simulated dashboard do again and again."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import requests

from jobinfo_cache.testing import SimulatedDashboard

TIMEOUT = 20.0  # seconds; only a failure uses them up


def request(
    dashboard: SimulatedDashboard, method: str, path: str, **arguments: Any
) -> requests.Response:
    """One request on a connection of its own."""
    with requests.Session() as session:
        session.trust_env = False
        return session.request(method, dashboard.url + path, timeout=TIMEOUT, **arguments)


def get(dashboard: SimulatedDashboard, path: str, **arguments: Any) -> requests.Response:
    return request(dashboard, "GET", path, **arguments)


def submit(dashboard: SimulatedDashboard, job_id: str) -> None:
    body = {"entrypoint": "true", "submission_id": job_id}
    request(dashboard, "POST", "/api/jobs/", json=body).raise_for_status()


def get_later(
    dashboard: SimulatedDashboard, pool: ThreadPoolExecutor, path: str
) -> Future[requests.Response]:
    """A request in another thread that the dashboard has read."""
    future = pool.submit(get, dashboard, path)
    wait_for_request(dashboard, path)
    return future


def connect(dashboard: SimulatedDashboard) -> socket.socket:
    """A bare connection."""
    host, port = dashboard.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), TIMEOUT)


def get_and_leave(dashboard: SimulatedDashboard, path: str) -> None:
    """A request whose client gives up once the dashboard has read it."""
    with connect(dashboard) as client:
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        wait_for_request(dashboard, path)


def wait_for_request(dashboard: SimulatedDashboard, path: str) -> None:
    """Wait until the dashboard has read a request for the path."""
    pause = threading.Event()
    for _ in range(int(TIMEOUT * 1000)):
        if path in [request.path for request in dashboard.requests]:
            return
        pause.wait(0.001)
    raise AssertionError(f"no request for {path} came")


def join_connections() -> None:
    """Wait for the threads of all connections to end by themselves."""
    for thread in threading.enumerate():
        if thread.name == "simulator-connection":
            thread.join(TIMEOUT)
            assert not thread.is_alive()


def open_files() -> int:
    """How many files, sockets and pipes this process has."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())
