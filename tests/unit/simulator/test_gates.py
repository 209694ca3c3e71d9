"""Requests wait where a test wants them."""

from __future__ import annotations

import socket
import struct
from concurrent.futures import ThreadPoolExecutor

import pytest

from jobinfo_cache.testing import SimulatedDashboard
from tests.unit.simulator.acts import (
    TIMEOUT,
    connect,
    get,
    get_and_leave,
    join_connections,
)


def test_answer_after_the_wait(dashboard: SimulatedDashboard, pool: ThreadPoolExecutor) -> None:
    """What waits before its answer is made tells of the time of the release."""
    dashboard.add_job("a", status="RUNNING")
    with dashboard.gate("/api/jobs/a") as gate:
        waiting = pool.submit(get, dashboard, "/api/jobs/a")
        assert gate.wait_for(1) == 1
        assert get(dashboard, "/api/jobs/").status_code == 200
        dashboard.set_status("a", "SUCCEEDED")

    assert waiting.result(TIMEOUT).json()["status"] == "SUCCEEDED"
    assert get(dashboard, "/api/jobs/a").status_code == 200


def test_answer_before_the_wait(dashboard: SimulatedDashboard, pool: ThreadPoolExecutor) -> None:
    """What waits with its answer made is a late reply."""
    dashboard.add_job("a", status="RUNNING")
    gate = dashboard.gate(answer_first=True)
    waiting = pool.submit(get, dashboard, "/api/jobs/a")
    gate.wait_for(1)
    dashboard.set_status("a", "SUCCEEDED")
    gate.release()
    gate.release()

    assert waiting.result(TIMEOUT).json()["status"] == "RUNNING"


def test_request_that_is_not_answered_yet(
    dashboard: SimulatedDashboard, pool: ThreadPoolExecutor
) -> None:
    """A request that waits is in the log without a status."""
    with dashboard.gate() as gate:
        waiting = pool.submit(get, dashboard, "/api/version")
        gate.wait_for(1)
        before = [(request.path, request.status) for request in dashboard.requests]
    waiting.result(TIMEOUT)

    assert before == [("/api/version", None)]
    assert [request.status for request in dashboard.requests] == [200]


def test_fault_behind_a_gate(dashboard: SimulatedDashboard, pool: ThreadPoolExecutor) -> None:
    """A fault that begins while a request waits strikes it at the release."""
    with dashboard.gate() as gate:
        waiting = pool.submit(get, dashboard, "/api/version")
        gate.wait_for(1)
        dashboard.fault("500")

    assert waiting.result(TIMEOUT).status_code == 500


def test_nobody_came(dashboard: SimulatedDashboard) -> None:
    """A test that waits for requests in vain is told so."""
    with dashboard.gate() as gate, pytest.raises(TimeoutError, match="0 requests wait"):
        gate.wait_for(1, timeout=0.0)


def test_client_that_left_does_not_wait(dashboard: SimulatedDashboard) -> None:
    """A client that gives up waits no longer, and gets no answer."""
    gate = dashboard.gate()
    get_and_leave(dashboard, "/api/version")
    join_connections()

    with pytest.raises(TimeoutError):
        gate.wait_for(1, timeout=0.0)
    assert [request.status for request in dashboard.requests] == [None]


def test_client_that_asks_again_stays(dashboard: SimulatedDashboard) -> None:
    """A client that sends its next request while one waits gets both answers, in order."""
    ask = b"GET /api/%s HTTP/1.1\r\nHost: a\r\nConnection: %s\r\n\r\n"
    with connect(dashboard) as client:
        with dashboard.gate("/api/version") as gate:
            client.sendall(ask % (b"version", b"keep-alive"))
            gate.wait_for(1)
            client.sendall(ask % (b"nothing", b"close"))
        with client.makefile("rb") as answers:
            text = answers.read()

    assert text.index(b"ray_version") < text.index(b"404: Not Found")


def test_client_that_resets_does_not_wait(dashboard: SimulatedDashboard) -> None:
    """A client that resets its connection is a client that has left."""
    gate = dashboard.gate()
    with connect(dashboard) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.sendall(b"GET /api/version HTTP/1.1\r\nHost: a\r\n\r\n")
        gate.wait_for(1)
    join_connections()

    with pytest.raises(TimeoutError):
        gate.wait_for(1, timeout=0.0)


def test_released_gate_holds_nobody(dashboard: SimulatedDashboard) -> None:
    """A gate that was released is open for good, also for a request that was on its way to it."""
    gate = dashboard.gate()
    gate.release()

    assert get(dashboard, "/api/version").status_code == 200
    with connect(dashboard) as client:
        assert gate.hold(client)
