"""Many threads, many failures: connections are bounded, never mixed up, and nothing is left."""

from __future__ import annotations

import contextlib
import logging
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jobinfo_cache import Cluster, DashboardClient, JobInfoCache, Settings
from jobinfo_cache.errors import DashboardError, DashboardUnavailable, TryAgain
from jobinfo_cache.testing import FakeClock, FaultServer, settle
from jobinfo_cache.testing.peer import Peer
from tests.http.certificate import CERTIFICATE, PATIENCE
from tests.http.kinds import KINDS

WORKERS = 32
FAULTS = (
    "refuse",
    "stall-handshake",
    "reset-before-headers",
    "reset-after-headers",
    "truncate",
    "drip-headers",
    "drip-body",
    "hang",
    "html",
    "login-redirect",
    "503",
    "long-length",
    "short-length",
    "close",
)


def open_files() -> int:
    """How many files and sockets this process has."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def live(server: FaultServer) -> int:
    """How many connections the server has at this moment."""
    return len(server._listener._connections)


def comes_true(condition: Callable[[], bool]) -> bool:
    """Wait until it holds: the other side of a connection is told of its end a moment later."""
    pause = threading.Event()
    return any(condition() or pause.wait(0.01) for _ in range(int(PATIENCE / 0.01)))


def echoes_logs(peer: Peer) -> None:
    """Answers with the path that was asked for; what ends in "slow" comes too late."""
    while received := peer.request():
        path = received.line.split()[1]
        if path.endswith("slow/logs"):
            peer.server.over.hold(peer.sock)  # until the client leaves
        peer.answer(f'{{"logs": "{path}"}}'.encode())


@pytest.mark.parametrize("tls", [None, CERTIFICATE], ids=["http", "https"])
def test_no_answer_goes_to_another_request(tls: Path | None) -> None:
    """32 threads on one client, every second request too slow: each gets its own answer or none."""

    def ask(number: int) -> None:
        for step in range(6):
            job_id = f"{number}-{step}"
            assert client.get_job_log(job_id) == f"/api/jobs/{job_id}/logs"
            with pytest.raises(DashboardUnavailable, match="no complete answer"):
                impatient.get_job_log(f"{job_id}-slow")

    with (
        FaultServer(echoes_logs, tls=tls) as server,
        DashboardClient(
            server.url, timeout=PATIENCE, verify=str(CERTIFICATE), proxies={}
        ) as client,
        ThreadPoolExecutor(WORKERS) as pool,
    ):
        impatient = client.with_timeout(0.05)
        for done in [pool.submit(ask, number) for number in range(WORKERS)]:
            done.result(PATIENCE)
        assert comes_true(lambda: live(server) <= 1), "one connection is kept"


def test_a_late_answer_is_nobodys() -> None:
    """What comes after the deadline goes down with its connection."""
    with (
        FaultServer(echoes_logs) as server,
        DashboardClient(server.url, timeout=PATIENCE, proxies={}) as client,
    ):
        client.get_job_log("a")
        server.fault("hang", times=1)
        with pytest.raises(DashboardUnavailable):
            client.with_timeout(0.05).get_job_log("late")
        server.fault(None)
        assert client.get_job_log("b") == "/api/jobs/b/logs"
        assert client.get_job_log("c") == "/api/jobs/c/logs"
        assert server.connections == 2


def test_sockets_of_a_storm_are_bounded(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    """With 32 workers and callers beside them: no more than one each, and then one a cluster."""
    caplog.set_level(logging.WARNING, "urllib3")
    settings = Settings(workers=WORKERS, jitter=0.0, max_backoff=3.0)
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(FaultServer()) for _ in range(40)]
        cache = stack.enter_context(JobInfoCache(settings, clock=clock))
        clients = [
            cache.client(
                DashboardClient(server.url, timeout=PATIENCE, proxies={}),
                Cluster("ns", str(number), "uid"),
            )
            for number, server in enumerate(servers)
        ]
        for server in servers[::2]:
            server.fault("reset-before-headers")

        def read(number: int) -> None:
            for client in clients[number % 2 :: 2]:
                with contextlib.suppress(DashboardError, TryAgain):
                    client.get_job_info("x")
                with contextlib.suppress(DashboardError):
                    client.list_jobs()

        most = 0
        with ThreadPoolExecutor(WORKERS) as callers:
            for _ in range(2):
                asked = [callers.submit(read, number) for number in range(WORKERS)]
                clock.advance(3.0)
                for done in asked:
                    done.result(PATIENCE)
                most = max(most, sum(map(live, servers)))
                settle(cache)
        assert most <= WORKERS + WORKERS + len(servers)
        assert comes_true(lambda: all(live(server) <= 1 for server in servers))
        assert len(cache._engine.connections._used) == len(servers)
        cache.close()
        assert comes_true(lambda: not any(map(live, servers))), "close leaves none"
    assert [record for record in caplog.records if record.name.startswith("urllib3")] == []


@pytest.mark.parametrize("tls", [None, CERTIFICATE], ids=["http", "https"])
def test_nothing_is_left_of_many_bad_requests(
    tls: Path | None, caplog: pytest.LogCaptureFixture
) -> None:
    """Every fault for every kind of request from many threads: files and threads are as before."""
    caplog.set_level(logging.WARNING)
    dice = random.Random(5)

    def ask(kind: str) -> None:
        with contextlib.suppress(DashboardError):
            KINDS[kind](client)

    with FaultServer(tls=tls) as server:
        before = (open_files(), threading.active_count())
        with (
            DashboardClient(
                server.url, timeout=0.05, verify=str(CERTIFICATE), proxies={}
            ) as client,
            ThreadPoolExecutor(8) as pool,
        ):
            for fault in FAULTS:
                server.fault(fault)
                for done in [pool.submit(ask, dice.choice([*KINDS])) for _ in range(16)]:
                    done.result(PATIENCE)
        server.fault(None)
        assert comes_true(lambda: (open_files(), threading.active_count()) == before)
    assert caplog.records == []


def test_no_cookie_and_no_token_of_one_cluster_goes_to_another() -> None:
    """Two dashboards of one cache share neither connections nor credentials."""

    def sets_cookie(peer: Peer) -> None:
        while peer.request():
            peer.answer(b"[]", "200 OK", "Set-Cookie: session=of-one; Path=/; Domain=127.0.0.1")

    with FaultServer(sets_cookie) as one, FaultServer(sets_cookie) as two, JobInfoCache() as cache:
        clients = [
            cache.client(
                DashboardClient(server.url, token=token, proxies={}), Cluster("ns", token, "uid")
            )
            for server, token in ((one, "token-of-one"), (two, "token-of-two"))
        ]
        for _ in range(3):
            for client in clients:
                client.list_jobs()
        for server, token in ((one, "token-of-one"), (two, "token-of-two")):
            assert server.connections == 1
            for received in server.requests:
                assert "cookie" not in received.headers
                assert received.headers["authorization"] == f"Bearer {token}"
