"""A name look-up cannot be cut short, so it must hold up nobody but the one who needs it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from jobinfo_cache import Cluster, DashboardClient, JobInfoCache, Settings
from jobinfo_cache.errors import DashboardUnavailable, TryAgain
from jobinfo_cache.testing import FakeClock, FaultServer
from tests.http.certificate import PATIENCE

HOST = "slow.invalid"


class Resolver:
    """Looks up `HOST` for as long as the test says, in vain; other names as usual."""

    def __init__(self) -> None:
        self.asked, self.answer = threading.Event(), threading.Event()
        self._real = socket.getaddrinfo

    def __call__(self, host: Any, *arguments: Any, **named: Any) -> Any:
        if host != HOST:
            return self._real(host, *arguments, **named)
        self.asked.set()
        self.answer.wait(PATIENCE)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Resolver]:
    resolver = Resolver()
    monkeypatch.setattr(socket, "getaddrinfo", resolver)
    yield resolver
    resolver.answer.set()


def test_readers_and_other_clusters_do_not_wait_for_a_name(
    resolver: Resolver, clock: FakeClock
) -> None:
    """Reads go on, and another dashboard is polled, while a worker waits for the name server."""
    answered = threading.Event()
    settings = Settings(jitter=0.0, workers=4)
    with (
        FaultServer() as server,
        JobInfoCache(settings, on_change=lambda _: answered.set(), clock=clock) as cache,
    ):
        slow = cache.client(
            DashboardClient(f"http://{HOST}", proxies={}), Cluster("ns", "slow", "uid")
        )
        well = cache.client(DashboardClient(server.url, proxies={}), Cluster("ns", "well", "uid"))
        for _ in range(100):
            with pytest.raises(TryAgain):
                slow.get_job_info("x")
        assert resolver.asked.wait(PATIENCE)
        with pytest.raises(TryAgain):
            slow.get_job_info("x")
        with pytest.raises(TryAgain):
            well.get_job_info("x")
        assert answered.wait(PATIENCE)
        assert well.get_job_info("x").status == "RUNNING"
        assert not cache.close(0.01), "the look-up is still going on, and close says so"
        resolver.answer.set()
        assert cache.close(PATIENCE)


def test_a_name_that_is_not_found_is_unavailable(resolver: Resolver) -> None:
    """With the reason, and the host in the URL."""
    resolver.answer.set()
    with (
        DashboardClient(f"http://{HOST}:8265", proxies={}) as client,
        pytest.raises(DashboardUnavailable, match=r"slow\.invalid.*name resolution"),
    ):
        client.get_job_info("x")
