"""G13: a token that was rotated must be taken up without a restart, and without a storm."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from jobinfo_cache import Cluster, DashboardAuthError, DashboardClient, JobInfoCache, Settings
from jobinfo_cache.testing import FakeClock, SimulatedDashboard, settle

T1, T2 = "the-first-token-0123456789", "the-second-token-0123456789"
ROUNDS = 30


class Source:
    """A token in a file, or behind a callable."""

    def __init__(self, kind: str, directory: Path) -> None:
        self._file = directory / "token"
        self._file.touch(mode=0o600)
        self.set(T1)
        self.token: Path | Callable[[], str] = (
            self._file if kind == "file" else lambda: self._file.read_text()
        )

    def set(self, token: str) -> None:
        self._file.write_text(f"{token}\n")


@pytest.mark.parametrize("kind", ["file", "callable"])
def test_rotation(
    kind: str, clock: FakeClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The dashboard changes first, the source much later: a few refusals, then all is well."""
    caplog.set_level(logging.DEBUG)
    source = Source(kind, tmp_path)
    with (
        SimulatedDashboard(token=T1, clock=clock) as dashboard,
        JobInfoCache(Settings(jitter=0.0), clock=clock) as cache,
    ):
        dashboard.add_job("a", status="RUNNING")
        client = cache.client(
            DashboardClient(dashboard.url, token=source.token, timeout=10.0, proxies={}),
            Cluster("ns", "one", "uid"),
        )
        client.lookup("a")
        settle(cache)
        assert client.get_job_info("a").status == "RUNNING"

        dashboard.set_token(T2)
        before = len(dashboard.requests)
        for _ in range(ROUNDS):
            clock.advance(3.0)
            settle(cache)
            client.peek("a")
        refused = dashboard.requests[before:]
        assert {request.status for request in refused} == {403}
        # 90 s at 3, 3, 6, 12, 24, 48 s: no poll is sent twice, and none comes sooner.
        assert len(refused) <= 6
        with pytest.raises(DashboardAuthError) as caught:
            client.get_job_info("a", max_age=3600.0)
        assert caught.value.last_info is not None
        assert caught.value.last_info.status == "RUNNING"

        source.set(T2)
        clock.advance(60.0)
        settle(cache)
        assert client.get_job_info("a").status == "RUNNING"
        clock.advance(3.0)
        settle(cache)
        statuses = [request.status for request in dashboard.requests[before + len(refused) :]]
        assert statuses == [403, 200, 200]
    for token in (T1, T2):
        assert token not in caplog.text + str(caught.value) + repr(client)


@pytest.mark.parametrize("kind", ["file", "callable"])
def test_rotation_that_the_source_knows_of_first(
    kind: str, clock: FakeClock, tmp_path: Path
) -> None:
    """When the new token is there already, no reader sees a failure: one 403, and 200 at once."""
    source = Source(kind, tmp_path)
    with (
        SimulatedDashboard(token=T1, clock=clock) as dashboard,
        JobInfoCache(Settings(jitter=0.0), clock=clock) as cache,
    ):
        dashboard.add_job("a", status="RUNNING")
        client = cache.client(
            DashboardClient(dashboard.url, token=source.token, timeout=10.0, proxies={}),
            Cluster("ns", "one", "uid"),
        )
        client.lookup("a")
        settle(cache)
        source.set(T2)
        dashboard.set_token(T2)
        clock.advance(3.0)
        settle(cache)
        snapshot = client.lookup("a")
        assert (snapshot.failures, snapshot.error) == (0, None)
        assert [request.status for request in dashboard.requests] == [200, 403, 200]
