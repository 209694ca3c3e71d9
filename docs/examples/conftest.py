"""A fake API server for each test module."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fake_api import FakeApi

# A shell gives its background jobs a Ctrl-C that is ignored, and so would the programs under test.
signal.signal(signal.SIGINT, signal.default_int_handler)

PATIENCE = 200.0  # seconds; only a failing test uses them up


@pytest.fixture
def api() -> Iterator[FakeApi]:
    """An empty API server."""
    with FakeApi() as api:
        yield api


@pytest.fixture
def eventually() -> Callable[..., None]:
    """Waits until what it is given says True."""

    def wait(is_true: Callable[[], object], pause: float = 0.05) -> None:
        deadline = time.monotonic() + PATIENCE
        never = threading.Event()
        while not is_true():
            assert time.monotonic() < deadline, "it did not come true"
            never.wait(pause)

    return wait
