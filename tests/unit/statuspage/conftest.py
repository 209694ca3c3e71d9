"""A page about a cache without threads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobinfo_cache.statuspage import StatusPage, serve
from jobinfo_cache.testing import FakeClock
from tests.support import Core


@pytest.fixture
def core(clock: FakeClock) -> Core:
    return Core(clock, "RUNNING", expiry=100.0)


@pytest.fixture
def page(core: Core) -> Iterator[StatusPage]:
    with serve(core.cache) as page:
        yield page
