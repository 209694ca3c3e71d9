"""The simulated dashboard in the foreground."""

from __future__ import annotations

import json
import signal

import pytest

from jobinfo_cache import DashboardAuthError, DashboardClient, DashboardUnavailable
from jobinfo_cache.commands.exits import Exit
from tests.cli.programs import end_of, line_of, program


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, Exit.INTERRUPTED), (signal.SIGTERM, Exit.TERMINATED)]
)
def test_serves_jobs_until_a_signal(number: signal.Signals, code: Exit) -> None:
    """It says where it listens, has its jobs from the start, and ends by a signal, quietly."""
    with program("simulate", "--port", "0", "--jobs", "5") as process:
        words = line_of(process).split()
        assert words[:2] == ["listening", "on"]
        with DashboardClient(words[2]) as client:
            jobs = {info.submission_id for info in client.list_jobs()}
        process.send_signal(number)
        assert end_of(process) == (code, "", "")
    assert jobs == {f"job-{n}" for n in range(1, 6)}


def test_json_form_and_fault() -> None:
    """In JSON form the URL is a field; with a fault requests fail as it says."""
    with program("simulate", "--port", "0", "--fault", "500", "-o", "json") as process:
        url = json.loads(line_of(process))["url"]
        with DashboardClient(url) as client, pytest.raises(DashboardUnavailable, match="500"):
            client.get_version()


def test_refusing_from_the_start() -> None:
    """A dashboard that refuses says where it does so."""
    with program("simulate", "--port", "0", "--fault", "refuse") as process:
        url = line_of(process).split()[-1]
        with DashboardClient(url) as client, pytest.raises(DashboardUnavailable):
            client.get_version()


def test_token() -> None:
    """With a token in its environment it asks for that."""
    with program("simulate", "--port", "0", RAY_AUTH_TOKEN="right") as process:
        url = line_of(process).split()[-1]
        with DashboardClient(url, token="right") as client:
            client.get_version()
        with DashboardClient(url) as client, pytest.raises(DashboardAuthError):
            client.get_version()
