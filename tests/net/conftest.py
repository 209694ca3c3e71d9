"""A dashboard behind the middle boxes, and clients that no proxy of the machine stands before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobinfo_cache.testing import SimulatedDashboard


@pytest.fixture
def dashboard() -> Iterator[SimulatedDashboard]:
    """A dashboard with one running job."""
    with SimulatedDashboard() as dashboard:
        dashboard.add_job("x", status="RUNNING")
        yield dashboard
