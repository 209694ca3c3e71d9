"""Starting, restarting and closing, and what is told of it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from jobinfo_cache.testing import FakeClock, SimulatedDashboard
from tests.unit.simulator.acts import (
    TIMEOUT,
    connect,
    get,
    get_later,
    open_files,
    request,
    submit,
)


def test_restart(dashboard: SimulatedDashboard, session: requests.Session) -> None:
    """A new head at the same address has another session and no jobs."""
    dashboard.add_job("a")
    session.get(dashboard.url + "/api/jobs/a", timeout=TIMEOUT)
    url, old = dashboard.url, dashboard.session_name
    dashboard.restart()

    assert dashboard.url == url
    assert dashboard.session_name != old
    assert get(dashboard, "/api/version").json()["session_name"] == dashboard.session_name
    assert get(dashboard, "/api/jobs/a").status_code == 404


def test_restart_drops_what_is_on_its_way(
    dashboard: SimulatedDashboard, pool: ThreadPoolExecutor
) -> None:
    """A request that the old head had taken is never answered."""
    with dashboard.gate() as gate:
        waiting = pool.submit(get, dashboard, "/api/version")
        gate.wait_for(1)
        dashboard.restart()
        assert isinstance(waiting.exception(TIMEOUT), requests.ConnectionError)


def test_token_can_change(dashboard: SimulatedDashboard) -> None:
    """A token can be asked for, changed and dropped while the dashboard runs."""
    bearer = {"Authorization": "Bearer one"}
    codes = []
    for token in ("one", "two", None):
        dashboard.set_token(token)
        codes.append(get(dashboard, "/api/version", headers=bearer).status_code)

    assert codes == [200, 403, 200]


def test_log_of_requests(dashboard: SimulatedDashboard, clock: FakeClock) -> None:
    """The log has each request as it was sent, without its secrets."""
    headers = {"Authorization": "Bearer secret", "Cookie": "k=secret", "X-Mine": "yes"}
    clock.advance(5.0)
    get(dashboard, "/api/jobs/a%2Fb?c=d", headers=headers)

    [request] = dashboard.requests
    assert (request.method, request.path) == ("GET", "/api/jobs/a%2Fb?c=d")
    assert (request.status, request.at) == (404, 1005.0)
    assert request.headers["X-Mine"] == "yes"
    assert request.headers["Authorization"] == ""
    assert "secret" not in str(request)


def test_serve_can_be_installed(dashboard: SimulatedDashboard) -> None:
    """With Ray Serve its path shows no applications, and takes some."""
    path = "/api/serve/applications/"
    assert not dashboard.serve
    dashboard.serve = True
    assert get(dashboard, path).json()["applications"] == {}
    assert request(dashboard, "PUT", path, json={"applications": []}).status_code == 200


def test_job_path_with_a_slash(dashboard: SimulatedDashboard) -> None:
    """An id with a slash is found when quoted, and is another path when not."""
    submit(dashboard, "a/b")
    assert get(dashboard, "/api/jobs/a%2Fb").json()["submission_id"] == "a/b"
    assert get(dashboard, "/api/jobs/a/b").text == "404: Not Found"


def test_list_order_is_not_that_of_submission(dashboard: SimulatedDashboard) -> None:
    """The list is in an order that nobody can rely on, but the same each time."""
    for number in range(20):
        dashboard.add_job(f"job-{number:02}")
    first, again = (
        [job["submission_id"] for job in get(dashboard, "/api/jobs/").json()] for _ in range(2)
    )

    assert first == again
    assert sorted(first) == [f"job-{number:02}" for number in range(20)] != first


def test_start_and_close_are_idempotent(clock: FakeClock) -> None:
    """Starting twice is starting once, and a closed dashboard can start again."""
    dashboard = SimulatedDashboard(clock=clock)
    dashboard.close()
    url = dashboard.start().url
    assert dashboard.start().url == url
    dashboard.close()
    dashboard.close()
    with pytest.raises(requests.ConnectionError):
        get(dashboard, "/")
    with dashboard:
        assert dashboard.url == url
        assert get(dashboard, "/").status_code == 200


def test_port_that_is_taken(dashboard: SimulatedDashboard) -> None:
    """A port that is taken is an error at the start, and leaves nothing behind."""
    port = int(dashboard.url.rpartition(":")[2])
    before = open_files()
    with pytest.raises(OSError, match="in use"):
        SimulatedDashboard(port=port).start()
    assert open_files() == before


def test_many_connections_at_once(dashboard: SimulatedDashboard) -> None:
    """Three hundred requests can wait at the same time, each on its own connection."""
    with ThreadPoolExecutor(300) as pool, dashboard.gate() as gate:
        waiting = [pool.submit(get, dashboard, "/api/version") for _ in range(300)]
        assert gate.wait_for(300, timeout=TIMEOUT) == 300
        gate.release()
        codes = [future.result(TIMEOUT).status_code for future in waiting]

    assert codes == [200] * 300


def test_close_leaves_nothing(clock: FakeClock, pool: ThreadPoolExecutor) -> None:
    """After close no thread, socket or pipe is left, whatever was going on."""
    files = open_files()
    dashboard = SimulatedDashboard(clock=clock).start()
    unused = dashboard.gate("/nobody/comes/here")
    dashboard.fault("hang", path="/api/jobs/hangs")
    gate = dashboard.gate("/api/version")
    waiting = [pool.submit(get, dashboard, "/api/version") for _ in range(2)]
    waiting += [get_later(dashboard, pool, "/api/jobs/hangs")]
    gate.wait_for(2)
    dashboard.close()

    for future in waiting:
        assert isinstance(future.exception(TIMEOUT), requests.ConnectionError)
    assert unused.is_released
    assert [thread for thread in threading.enumerate() if thread.name.startswith("simulator")] == []
    assert open_files() == files


def test_it_is_quiet(dashboard: SimulatedDashboard, capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing is printed, whatever is asked."""
    get(dashboard, "/api/jobs/")
    dashboard.fault("reset")
    with pytest.raises(requests.ConnectionError):
        get(dashboard, "/")
    assert capfd.readouterr() == ("", "")


def test_head_without_sense(dashboard: SimulatedDashboard) -> None:
    """What is no HTTP is refused, and the connection ends."""
    with connect(dashboard) as client, client.makefile("rb") as answers:
        client.sendall(b"one two three four\r\n\r\n")
        assert b" 400 " in answers.readline()
        answers.read()
