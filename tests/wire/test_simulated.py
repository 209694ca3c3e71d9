"""The wire suite on a simulated dashboard."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobinfo_cache.testing import FakeClock, SimulatedDashboard
from tests.wire.suite import TokenSuite, WireSuite
from tests.wire.wires import SimulatedWire


class TestSimulatedWire(WireSuite):
    """A simulated dashboard answers as a real one does."""

    @pytest.fixture(scope="class")
    @classmethod
    def wire(cls) -> Iterator[SimulatedWire]:
        clock = FakeClock()
        with SimulatedDashboard(clock=clock) as dashboard:
            wire = SimulatedWire(dashboard, clock)
            yield wire
            wire.close()


class TestSimulatedToken(TokenSuite):
    """A simulated dashboard asks for a token as a real one does."""

    @pytest.fixture(scope="class")
    @classmethod
    def token(cls) -> str:
        return "secret"

    @pytest.fixture(scope="class")
    @classmethod
    def token_wire(cls, token: str) -> Iterator[SimulatedWire]:
        clock = FakeClock()
        with SimulatedDashboard(token=token, clock=clock) as dashboard:
            wire = SimulatedWire(dashboard, clock)
            yield wire
            wire.close()
