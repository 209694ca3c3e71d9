"""G19: a program that ends does so within one request's deadline, with its own exit code."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from jobinfo_cache.testing import FaultServer
from tests.cli.programs import environment

DEADLINE = 0.4  # seconds, of one request
LIMIT = 25.0  # seconds; only a failure uses them up
SLACK = 3.0  # seconds, for an interpreter that starts and ends on a busy machine

PROGRAM = """
import sys
from jobinfo_cache import Cluster, DashboardClient, JobInfoCache, Settings

cache = JobInfoCache(Settings(workers=4))
for number in range({clusters}):
    dashboard = DashboardClient({url!r}, timeout={deadline}, proxies={{}})
    client = cache.client(dashboard, Cluster("ns", str(number), "uid"))
    for job in range({jobs}):
        client.lookup(str(job))
print("read", flush=True)
sys.stdin.readline()
{end}
"""

ENDS = {
    "end of script": ("", 0, ""),
    "close": ("assert cache.close()", 0, ""),
    "exit code": ("sys.exit(3)", 3, ""),
    "exit code after close": ("cache.close(); sys.exit(3)", 3, ""),
    "exception": ("raise ValueError('mine')", 1, "ValueError: mine"),
}


@pytest.fixture
def server() -> Iterator[FaultServer]:
    """Reads requests and never answers."""
    with FaultServer() as server:
        server.fault("hang")
        yield server


@pytest.mark.parametrize(
    ("end", "clusters", "jobs"),
    [*((end, 1, 1) for end in ENDS), ("end of script", 10, 100), ("close", 10, 100)],
)
def test_end_with_polls_under_way(server: FaultServer, end: str, clusters: int, jobs: int) -> None:
    """With and without `close`, with one poll and with a thousand: in time, and silently."""
    statement, code, last_line = ENDS[end]
    text = PROGRAM.format(
        url=server.url, deadline=DEADLINE, clusters=clusters, jobs=jobs, end=statement
    )
    with subprocess.Popen(
        [sys.executable, "-c", text],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "read\n"
            # The first tries are short ones; the next request has the whole deadline.
            server.wait_for(clusters + 1, LIMIT)
            began = time.monotonic()
            _, stderr = process.communicate("\n", timeout=LIMIT)
            took = time.monotonic() - began
        finally:
            process.kill()
    assert process.returncode == code
    assert stderr.rstrip().rpartition("\n")[2] == last_line
    assert "Fatal Python error" not in stderr
    assert "thread" not in stderr.lower()
    assert took < DEADLINE + SLACK
