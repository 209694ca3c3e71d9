"""The wire suite on real Ray heads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.ray.head import RayHead
from tests.wire.suite import TokenSuite, WireSuite
from tests.wire.wires import RayWire

pytestmark = pytest.mark.ray


@pytest.fixture(scope="module")
def wire(ray_head: RayHead) -> Iterator[RayWire]:
    """Raw requests to a head that asks for no token."""
    wire = RayWire(ray_head.url)
    yield wire
    wire.close()


@pytest.fixture(scope="module")
def token_wire(token_head: RayHead) -> Iterator[RayWire]:
    """Raw requests to a head that asks for a token."""
    wire = RayWire(token_head.url)
    yield wire
    wire.close()


class TestRayWire(WireSuite):
    """A real dashboard answers as the suite says."""


class TestRayToken(TokenSuite):
    """A real dashboard asks for a token as the suite says."""
