"""The options that commands share, and what they mean."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from jobinfo_cache import DashboardClient, Settings, __version__
from jobinfo_cache.commands.exits import UsageError

__all__ = [
    "add_shared",
    "count",
    "count_from_none",
    "dashboard_client",
    "delay",
    "environment_settings",
    "seconds",
    "simulated_token",
    "token",
]


def add_shared(parser: argparse.ArgumentParser) -> None:
    """The options of every command."""
    parser.add_argument("--version", action="version", version=f"jobinfo-cache {__version__}")
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
    value = delay(text)
    if not value:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return value


def delay(text: str) -> float:
    """A duration from 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return value


def count(text: str) -> int:
    """A whole number of at least 1."""
    value = count_from_none(text)
    if not value:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least 1")
    return value


def count_from_none(text: str) -> int:
    """A whole number from 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number")
    return int(text)


def token(token_file: Path | None, environ: Mapping[str, str] = os.environ) -> str | Path | None:
    """The token, or the file to read it from, as the dashboard client takes it.

    A file is handed on, so that a new token in it is found; a pipe can be read only once, and is
    read here. Raises `UsageError` for one that cannot be read or is empty.
    """
    if token_file is not None:
        return _checked_file(token_file, "--token-file")
    if text := environ.get("RAY_AUTH_TOKEN", "").strip():
        return text
    if path := environ.get("RAY_AUTH_TOKEN_PATH", "").strip():
        return _checked_file(Path(path), "RAY_AUTH_TOKEN_PATH")
    return None


def simulated_token(token: str | Path | None) -> str | None:
    """The token that a simulated dashboard is to ask for."""
    return token.read_text(errors="replace").strip() if isinstance(token, Path) else token


def dashboard_client(url: str, token: str | Path | None, timeout: float) -> DashboardClient:
    """A plain client of the dashboard that the user named; raises `UsageError`."""
    try:
        return DashboardClient(url, token=token, timeout=timeout)
    except ValueError as error:
        raise UsageError(str(error)) from error


def environment_settings(poll_interval: float | None = None) -> Settings:
    """Settings from the environment; raises `UsageError`.

    `poll_interval` (seconds) is used if the environment names none.
    """
    try:
        settings = Settings.from_env()
        if poll_interval is None or os.environ.get("JOBINFO_CACHE_POLL_INTERVAL", "").strip():
            return settings
        return replace(settings, poll_interval=poll_interval)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _checked_file(path: Path, source: str) -> str | Path:
    try:
        content = path.read_text(errors="replace").strip()
    except OSError as error:
        raise UsageError(f"{source}: cannot read {str(path)!r}: {error.strerror}") from error
    if not content:
        raise UsageError(f"{source}: {str(path)!r} is empty; it must hold the token")
    return path if path.is_file() else content
