"""The clients behind a real HAProxy."""

from __future__ import annotations

import select
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobinfo_cache import Cluster, DashboardClient, JobInfoCache, Settings
from jobinfo_cache.errors import DashboardUnavailable
from jobinfo_cache.testing import FakeClock, SimulatedDashboard, settle
from tests.http.kinds import KINDS
from tests.net.boxes import Box, free_port, haproxy

pytestmark = pytest.mark.net

TIMEOUT = 20.0  # seconds; only a failure uses them up


@pytest.fixture
def box(tmp_path: Path, dashboard: SimulatedDashboard) -> Iterator[Box]:
    """An HAProxy before the dashboard that gives up soon and closes idle connections."""
    port = free_port()
    sections = f"""
    defaults
        mode http
        retries 0
        timeout connect 5s
        timeout client 20s
        timeout server 300ms
        timeout http-keep-alive 50ms
        compression algo gzip
        compression type application/json
    frontend all
        bind 127.0.0.1:{port}
        default_backend ray
    backend ray
        server head {dashboard.url.removeprefix("http://")}
    """
    with haproxy(tmp_path, sections, port) as box:
        yield box


@pytest.fixture
def client(box: Box) -> Iterator[DashboardClient]:
    with DashboardClient(box.url, timeout=TIMEOUT, proxies={}) as client:
        yield client


def test_everything_passes(client: DashboardClient) -> None:
    """Each kind of request, compressed answers and all."""
    for ask in KINDS.values():
        ask(client)


@pytest.mark.parametrize("kind", KINDS)
def test_no_server(client: DashboardClient, dashboard: SimulatedDashboard, kind: str) -> None:
    """503 with an HTML page is unavailable, until the dashboard is back."""
    dashboard.fault("refuse")
    with pytest.raises(DashboardUnavailable, match="503 Service Unavailable, text/html"):
        KINDS[kind](client)
    dashboard.fault(None)
    KINDS[kind](client)


@pytest.mark.parametrize("kind", KINDS)
def test_silent_server(client: DashboardClient, dashboard: SimulatedDashboard, kind: str) -> None:
    """504 is unavailable, long before the client's own deadline."""
    dashboard.fault("hang")
    with pytest.raises(DashboardUnavailable, match="504 Gateway Time"):
        KINDS[kind](client)
    dashboard.fault(None)


@pytest.mark.parametrize("kind", KINDS)
def test_server_that_breaks_off(
    client: DashboardClient, dashboard: SimulatedDashboard, kind: str
) -> None:
    """502 is unavailable."""
    dashboard.fault("reset")
    with pytest.raises(DashboardUnavailable, match="502 Bad Gateway"):
        KINDS[kind](client)


@pytest.mark.parametrize("kind", KINDS)
def test_connection_closed_while_idle(
    client: DashboardClient, dashboard: SimulatedDashboard, kind: str
) -> None:
    """HAProxy closes idle connections without notice, and no kind of request notices."""
    client.get_version()
    (kept,) = client._transport._kept._idle
    assert select.select([kept.sock], [], [], TIMEOUT)[0], "HAProxy has closed it"
    KINDS[kind](client)
    assert {request.status for request in dashboard.requests} == {200}


def test_the_cache_outlives_it_all(client: DashboardClient, dashboard: SimulatedDashboard) -> None:
    """503, 504 and 502 in turn are one outage, and the job's end is seen after it."""
    clock = FakeClock()
    with JobInfoCache(Settings(jitter=0.0), clock=clock) as cache:
        cached = cache.client(client, Cluster("ns", "one", "uid-1"))
        cached.lookup("x")
        settle(cache)
        assert cached.get_job_info("x").status == "RUNNING"
        for fault, status in (("refuse", 503), ("hang", 504), ("reset", 502)):
            dashboard.fault(fault)
            clock.advance(60.0)
            settle(cache)
            snapshot = cached.lookup("x")
            assert snapshot.error is not None
            assert snapshot.error.status_code == status
        dashboard.fault(None)
        dashboard.set_status("x", "SUCCEEDED")
        clock.advance(60.0)
        settle(cache)
        assert cached.get_job_info("x").status == "SUCCEEDED"
