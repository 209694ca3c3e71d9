"""A bare environment, and settings and jobs that take no time."""

from __future__ import annotations

import os

import pytest

from jobinfo_cache.commands import smoke
from jobinfo_cache.commands.workload import Kind


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("JOBINFO_CACHE_", "RAY_AUTH_")):
            monkeypatch.delenv(name)


@pytest.fixture
def quick_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated jobs that all succeed soon."""
    quick = Kind("quick", "true", script={"pending": 0.0, "running": 0.1})
    monkeypatch.setattr(smoke, "SIMULATED", (quick,))


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Poll ten times a second."""
    monkeypatch.setenv("JOBINFO_CACHE_POLL_INTERVAL", "0.1")
