"""A simulated dashboard on a clock that stands still, and clients for it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from jobinfo_cache.testing import FakeClock, SimulatedDashboard


@pytest.fixture
def dashboard(clock: FakeClock) -> Iterator[SimulatedDashboard]:
    with SimulatedDashboard(clock=clock) as dashboard:
        yield dashboard


@pytest.fixture
def session() -> Iterator[requests.Session]:
    """A client that keeps its connection."""
    with requests.Session() as session:
        session.trust_env = False
        yield session


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """Threads for requests that wait."""
    with ThreadPoolExecutor() as pool:
        yield pool
