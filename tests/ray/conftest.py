"""Real Ray heads, shared by the tests: starting one takes ten seconds."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ray import head


@pytest.fixture(scope="session")
def ray_bin() -> Path:
    """The directory of the `ray` program."""
    return head.ray_bin()


@pytest.fixture(scope="session")
def ray_head(ray_bin: Path) -> Iterator[head.RayHead]:
    """A head that asks for no token. Tests leave it running, and use job ids of their own."""
    with head.RayHead(ray_bin) as ray_head:
        yield ray_head


@pytest.fixture(scope="session")
def token() -> str:
    """The token of `token_head`."""
    return secrets.token_hex(16)


@pytest.fixture(scope="session")
def token_head(ray_bin: Path, token: str) -> Iterator[head.RayHead]:
    """A head that asks for `token`, beside `ray_head`."""
    with head.RayHead(ray_bin, token=token) as token_head:
        yield token_head
