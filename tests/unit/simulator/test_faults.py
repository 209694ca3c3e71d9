"""The dashboard goes wrong when told to."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from jobinfo_cache.testing import FakeClock, SimulatedDashboard
from tests.unit.simulator.acts import (
    TIMEOUT,
    get,
    get_and_leave,
    get_later,
    join_connections,
)


def test_hang(dashboard: SimulatedDashboard, pool: ThreadPoolExecutor, clock: FakeClock) -> None:
    """A request hangs until the fault ends; then it is answered with what is true then."""
    dashboard.add_job("a", status="RUNNING")
    dashboard.fault("hang")
    hanging = get_later(dashboard, pool, "/api/jobs/a")
    dashboard.set_status("a", "SUCCEEDED")
    assert not hanging.done()
    dashboard.fault(None)

    assert hanging.result(TIMEOUT).json()["status"] == "SUCCEEDED"


def test_hang_holds_no_thread_of_a_client_that_left(dashboard: SimulatedDashboard) -> None:
    """The thread of a hanging request ends when its client gives up."""
    dashboard.fault("hang")
    get_and_leave(dashboard, "/api/version")

    join_connections()


def test_refuse(dashboard: SimulatedDashboard, session: requests.Session) -> None:
    """A refusing dashboard drops kept connections and takes none, at the same address."""
    url = dashboard.url
    session.get(url, timeout=TIMEOUT)
    dashboard.fault("refuse")
    for _ in range(2):
        with pytest.raises(requests.ConnectionError):
            session.get(url, timeout=TIMEOUT)
    dashboard.fault(None)

    assert dashboard.url == url
    assert session.get(url, timeout=TIMEOUT).status_code == 200


def test_refuse_from_the_start(clock: FakeClock) -> None:
    """A dashboard can be down when its test begins."""
    dashboard = SimulatedDashboard(clock=clock)
    dashboard.fault("refuse")
    with dashboard:
        with pytest.raises(requests.ConnectionError, match="refused"):
            get(dashboard, "/")
        dashboard.fault("503")
        assert get(dashboard, "/").status_code == 503


def test_reset(dashboard: SimulatedDashboard) -> None:
    """A reset is no answer, on the request's side too."""
    dashboard.fault("reset", times=1)
    with pytest.raises(requests.ConnectionError, match="reset by peer"):
        get(dashboard, "/")

    assert get(dashboard, "/").status_code == 200
    assert [request.status for request in dashboard.requests] == [None, 200]


def test_garbage(dashboard: SimulatedDashboard) -> None:
    """Garbage is somebody's login page, and all is well says its status."""
    dashboard.fault("garbage")
    answer = get(dashboard, "/api/jobs/a")
    assert (answer.status_code, answer.headers["Content-Type"][:9]) == (200, "text/html")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("500", "500 Internal Server Error\n\nServer got itself in trouble"),
        ("503", "503: Service Unavailable"),
        ("429", "429: Too Many Requests"),
        ("599", "599"),
        ("204", ""),
    ],
)
def test_status(dashboard: SimulatedDashboard, kind: str, text: str) -> None:
    """A status is answered in the words of the real server."""
    dashboard.fault(kind)
    answer = get(dashboard, "/api/jobs/")
    assert (answer.status_code, answer.text) == (int(kind), text)


def test_retry_after(dashboard: SimulatedDashboard) -> None:
    """A status can name the time to come back, in whatever words."""
    dashboard.fault("429", retry_after="soon")
    answer = get(dashboard, "/api/jobs/")
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "soon")


@pytest.mark.parametrize("kind", [None, "refuse", "hang", "garbage", "slow:1"])
def test_retry_after_without_status(dashboard: SimulatedDashboard, kind: str | None) -> None:
    """What is no status has no Retry-After."""
    with pytest.raises(ValueError, match="retry_after goes with a status only"):
        dashboard.fault(kind, retry_after="3")


def test_slow(dashboard: SimulatedDashboard, session: requests.Session) -> None:
    """A slow answer does not come in a shorter time, and comes in a longer one."""
    dashboard.fault("slow:0.3", times=2)
    with pytest.raises(requests.ReadTimeout):
        session.get(dashboard.url, timeout=0.05)
    assert session.get(dashboard.url, timeout=TIMEOUT).elapsed.total_seconds() >= 0.3


def test_latency(clock: FakeClock) -> None:
    """With a latency each answer takes its time."""
    with SimulatedDashboard(clock=clock, latency=0.1) as dashboard:
        assert get(dashboard, "/").elapsed.total_seconds() >= 0.1


def test_narrowed(dashboard: SimulatedDashboard, session: requests.Session) -> None:
    """A fault can be for some paths, one method and a number of requests."""
    dashboard.add_job("a")
    dashboard.fault("500", path="/api/jobs/a", method="GET", times=2)
    url = dashboard.url + "/api/jobs/"
    codes = [session.get(url + path, timeout=TIMEOUT).status_code for path in ("", *"aaa")]
    stopped = session.post(url + "a/stop", timeout=TIMEOUT)

    assert codes == [200, 500, 500, 200]
    assert stopped.status_code == 200


def test_latest_fault_counts(dashboard: SimulatedDashboard) -> None:
    """Of two faults for a request the later one counts, and each can be ended alone."""
    dashboard.fault("500")
    dashboard.fault("503", path="/api/version")
    both = [get(dashboard, path).status_code for path in ("/", "/api/version")]
    dashboard.fault(None, path="/api/version")

    assert both == [500, 503]
    assert get(dashboard, "/api/version").status_code == 500
    dashboard.fault(None)
    assert get(dashboard, "/api/version").status_code == 200


def test_wide_fault_replaces_all(dashboard: SimulatedDashboard) -> None:
    """A fault for all requests takes the place of every other one."""
    dashboard.fault("503", path="/api/version")
    dashboard.fault("500")
    assert get(dashboard, "/api/version").status_code == 500
    dashboard.fault(None, path="/api/version")
    assert get(dashboard, "/api/version").status_code == 500


@pytest.mark.parametrize("kind", ["", "down", "slow", "slow:", "slow:-1", "slow:nan", "99", "600"])
def test_unknown_kind(dashboard: SimulatedDashboard, kind: str) -> None:
    """A kind that does not exist is refused, with those that do."""
    with pytest.raises(ValueError, match="it must be hang, refuse"):
        dashboard.fault(kind)


def test_impossible_arguments(dashboard: SimulatedDashboard) -> None:
    """A fault is for one request at least, and no single request can be refused."""
    with pytest.raises(ValueError, match="times is 0"):
        dashboard.fault("500", times=0)
    with pytest.raises(ValueError, match="refuse is for all"):
        dashboard.fault("refuse", path="/api")


def test_latency_holds_no_thread_of_a_client_that_left(clock: FakeClock) -> None:
    """The thread of a request that takes long ends when its client gives up."""
    with SimulatedDashboard(clock=clock, latency=3600.0) as dashboard:
        get_and_leave(dashboard, "/api/version")
        join_connections()
