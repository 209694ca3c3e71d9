"""An environment in which nothing is set that the command line reads."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("JOBINFO_CACHE_", "RAY_AUTH_")):
            monkeypatch.delenv(name)
