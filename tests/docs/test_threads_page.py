"""The page of threads and locks names what there is."""

from __future__ import annotations

import ast
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import jobinfo_cache
from jobinfo_cache import Cluster, DashboardAuthError, DashboardClient, JobInfoCache, Settings
from jobinfo_cache.testing import SimulatedDashboard, settle
from tests.docs.tables import page, plain, table

SOURCE = Path(jobinfo_cache.__file__).parent
TEXT = page("explanation/threads-and-locks")

#: Not part of a program that follows jobs, or a lock itself.
_ELSEWHERE = ("commands", "testing", "try_lock")


def _modules() -> Iterator[tuple[str, ast.Module]]:
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if parts[0] not in _ELSEWHERE:
            yield ".".join(parts), ast.parse(path.read_text(encoding="utf-8"))


def _locks() -> dict[str, str]:
    """Each attribute of the library that is a lock, and its kind."""
    found = {}
    for module, tree in _modules():
        for owner in ast.walk(tree):
            if not isinstance(owner, ast.ClassDef):
                continue
            for node in ast.walk(owner):
                if isinstance(node, ast.Assign) and (kind := _kind(node.value)):
                    name = ast.unparse(node.targets[0]).removeprefix("self.")
                    found[f"{module}.{owner.name}.{name}"] = kind
    return found


def _kind(value: ast.expr) -> str | None:
    match = re.fullmatch(r"(?:threading\.)?(R?Lock|TryLock|Condition)\(.*\)", ast.unparse(value))
    return match[1] if match else None


def test_every_lock_is_there() -> None:
    """The table has all locks of the library, each with its kind."""
    rows = {plain(row["lock"]): plain(row["kind"]) for row in table(TEXT, "## Locks")}

    assert len(rows) > 5
    assert rows == _locks()


def test_every_thread_is_there() -> None:
    """A cache at work has the threads of the table, and as many daemons of each."""
    rows = {plain(row["thread"]): row["number"] for row in table(TEXT, "## Threads")}
    # A day, so that the timer does not fire meanwhile.
    settings = Settings(workers=2, poll_interval=86_400.0, max_backoff=86_400.0, expiry=90_000.0)
    with SimulatedDashboard() as dashboard, JobInfoCache(settings) as cache:
        dashboard.add_job("x", status="RUNNING")
        cache.client(dashboard.url, Cluster("default", "c")).lookup("x")
        settle(cache)
        threads = [thread for thread in threading.enumerate() if thread.name.startswith("jobinfo-")]

    found = {re.sub(r"\d+$", "N", thread.name): thread.daemon for thread in threads}
    assert found == {name: "daemon" in number for name, number in rows.items()}


def test_a_closed_cache_that_read_nothing_has_no_dispatcher() -> None:
    """Then `close` does itself what the dispatcher would do."""
    cache = JobInfoCache()

    assert cache.close()
    assert [thread for thread in threading.enumerate() if thread.name.startswith("jobinfo-")] == []


def test_whose_thread_runs_user_code() -> None:
    """`on_change` and a token's callable run in a worker, and in the caller of a direct method."""
    rows = table(TEXT, "## Whose thread runs your code")
    said = {row["your code"]: row["runs in"] for row in rows}
    ran: dict[str, str] = {}

    def token() -> str:
        ran["token"] = threading.current_thread().name
        return "abc"

    def on_change(_: object) -> None:
        ran["on_change"] = threading.current_thread().name

    with (
        SimulatedDashboard(token="abc") as dashboard,
        JobInfoCache(on_change=on_change) as cache,
        DashboardClient(dashboard.url, token=token, proxies={}) as plain_client,
    ):
        dashboard.add_job("x", status="RUNNING")
        client = cache.client(plain_client, Cluster("default", "c"))
        client.lookup("x")
        settle(cache)
        assert said["`on_change`"] == "a worker"
        assert {name.rpartition("_")[0] for name in ran.values()} == {"jobinfo-worker"}
        dashboard.set_token("none")
        with pytest.raises(DashboardAuthError):
            client.get_job_log("x")
        assert ran["token"] == threading.current_thread().name
