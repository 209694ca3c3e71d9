"""The harness itself: heads start, stop, restart and stand side by side."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import requests

from tests.ray.head import RayHead, is_running, wait_until

pytestmark = pytest.mark.ray


def test_two_heads_stand_side_by_side(ray_head: RayHead, token_head: RayHead) -> None:
    """Two heads run at once, at their own addresses and in their own sessions."""
    answers = [head.request("GET", "/api/version") for head in (ray_head, token_head)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert len({answer.json()["session_name"] for answer in answers}) == 2


@pytest.mark.parametrize(
    ("headers", "status"),
    [({}, 401), ({"Authorization": "Bearer wrong"}, 403), ({"Authorization": "Bearer {}"}, 200)],
)
def test_a_head_asks_for_its_token(
    token_head: RayHead, token: str, headers: dict[str, str], status: int
) -> None:
    """A head with a token answers 401 without one, 403 to another one, and 200 to its own."""
    headers = {name: value.format(token) for name, value in headers.items()}
    answer = requests.get(f"{token_head.url}/api/jobs/", headers=headers, timeout=30)
    assert answer.status_code == status


def test_a_restart_loses_all_jobs_and_a_close_leaves_no_process(ray_bin: Path) -> None:
    """A restarted head knows no job of before; with a job running, `close` ends all processes."""
    with RayHead(ray_bin) as head:
        submit_endless(head, "before")
        head.restart()
        assert head.request("GET", "/api/jobs/before").status_code == 404
        submit_endless(head, "after")
        before = head.processes()
    assert len(before) > 10
    assert not [pid for pid in before if is_running(pid)]
    with pytest.raises(requests.ConnectionError):
        requests.get(head.url, timeout=30)


def test_a_command_runs_beside_a_head() -> None:
    """The program puts the address into the command, and ends with the command's exit code."""
    code = "import sys, urllib.request as u; sys.exit(u.urlopen(sys.argv[1]).status - 193)"
    command = [sys.executable, "-c", code, "{url}/api/jobs/"]
    done = subprocess.run([sys.executable, "-m", "tests.ray.head", "--", *command], check=False)
    assert done.returncode == 7


def submit_endless(head: RayHead, job_id: str) -> None:
    """Submit a job that does not end, and wait until it runs."""
    job = {"entrypoint": "sleep 1000", "submission_id": job_id}
    assert head.request("POST", "/api/jobs/", json=job).status_code == 200
    path = f"/api/jobs/{job_id}"
    assert wait_until(lambda: bool(head.request("GET", path).json()["status"] == "RUNNING"), 60)
