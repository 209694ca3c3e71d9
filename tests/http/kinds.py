"""The kinds of request that every fault is tried with."""

from __future__ import annotations

from collections.abc import Callable

from jobinfo_cache.dashboard import DashboardClient

KINDS: dict[str, Callable[[DashboardClient], object]] = {
    "single": lambda client: client.get_job_info("x"),
    "list": lambda client: client.list_jobs(),
    "submit": lambda client: client.submit_job("true", metadata={"blob": "x" * 100_000}),
    "stop": lambda client: client.stop_job("x"),
    "logs": lambda client: client.get_job_log("x"),
}
