"""The options that commands share, and what they mean."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from jobinfo_cache import DashboardClient, Settings
from jobinfo_cache.commands.exits import UsageError

__all__ = ["add_shared", "count", "dashboard_client", "environment_settings", "seconds", "token"]

_T = TypeVar("_T")


def add_shared(parser: argparse.ArgumentParser) -> None:
    """The options of every command."""
    parser.add_argument(
        "-o",
        "--output",
        choices=("text", "json"),
        default="text",
        help="form of the data on stdout (default: text)",
    )
    parser.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="file with the dashboard's token; goes before RAY_AUTH_TOKEN, "
        "which goes before RAY_AUTH_TOKEN_PATH",
    )


def seconds(text: str) -> float:
    """A duration above 0."""
    value = _number(float, text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return value


def count(text: str) -> int:
    """A whole number of at least 1."""
    value = _number(int, text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least 1")
    return value


def token(token_file: Path | None, environ: Mapping[str, str] = os.environ) -> str | Path | None:
    """The token, or the file that it is read from, as the dashboard client takes it.

    A file is read here once, and not used: it must be there from the start. Raises `UsageError`.
    """
    if token_file is not None:
        return _checked_file(token_file, "--token-file")
    if text := environ.get("RAY_AUTH_TOKEN", "").strip():
        return text
    if path := environ.get("RAY_AUTH_TOKEN_PATH", "").strip():
        return _checked_file(Path(path), "RAY_AUTH_TOKEN_PATH")
    return None


def dashboard_client(url: str, token: str | Path | None, timeout: float) -> DashboardClient:
    """A plain client of the dashboard that the user named; raises `UsageError`."""
    try:
        return DashboardClient(url, token=token, timeout=timeout)
    except ValueError as error:
        raise UsageError(str(error)) from error


def environment_settings(**defaults: str) -> Settings:
    """Settings from the environment, with other defaults; raises `UsageError`."""
    environ = dict(os.environ)
    for name, text in defaults.items():
        variable = f"JOBINFO_CACHE_{name.upper()}"
        if not environ.get(variable, "").strip():
            environ[variable] = text
    try:
        return Settings.from_env(environ)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _number(kind: Callable[[str], _T], text: str) -> _T:
    try:
        return kind(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None


def _checked_file(path: Path, source: str) -> Path:
    try:
        is_empty = not path.read_bytes().strip()
    except OSError as error:
        raise UsageError(f"{source}: cannot read {str(path)!r}: {error.strerror}") from error
    if is_empty:
        raise UsageError(f"{source}: {str(path)!r} is empty; it must hold the token")
    return path
