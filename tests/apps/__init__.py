"""Tests with programs that stand beside the library: Prometheus, Chromium, tmux."""

from __future__ import annotations

import os
import shutil

import pytest

_SYSTEM_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"


def found(name: str) -> str:
    """The path of a program; skips the test where it is not installed."""
    path = shutil.which(name, path=_SYSTEM_PATH)
    if path is None:
        pytest.skip(f"{name} is not installed: `make test-apps` as root installs it with apt-get")
    return path
