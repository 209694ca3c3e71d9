"""The settings of a cache: frozen, and checked when they are made."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

__all__ = ["Settings"]

_YEAR = 365 * 86_400.0
_MOST = 1_000_000_000
_ENV_PREFIX = "JOBINFO_CACHE_"
_BOOLEANS = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}


@dataclass(frozen=True)
class Settings:
    """How a cache works. All durations are seconds.

    Raises `ValueError`, naming field, value and what would be right, when a value or the
    relation of two is impossible.

    .. versionadded:: 0.1.0
    """

    workers: int = 8
    """Polling threads, at least 1."""
    poll_interval: float = 3.0
    """Between two polls of a live job, sending to sending."""
    cache_size: int = 10_000
    """Entries, at least 1."""
    expiry: float = 600.0
    """Life of an entry that nobody reads; above `poll_interval`."""
    cleanup_interval: float | None = None
    """Between two runs of the cleanup thread; None is 10 × `poll_interval`."""
    max_age: float | None = 60.0
    """No older answer about a live job is returned, unless a read asks so; None is no bound."""
    max_backoff: float = 60.0
    """Cap of the delay after failures, and of a server's Retry-After; at least `poll_interval`."""
    jitter: float = 0.1
    """Random share by which each delay is shortened, 0 to 0.5."""
    batching: bool = True
    """Allow one list request instead of many single ones."""
    request_timeout: float = 2.0
    """Total deadline of one request, for dashboard clients made by the library."""
    close_timeout: float = 5.0
    """Default of `JobInfoCache.close`; 0 does not wait."""
    async_job_info_query: bool = True
    """False: the Kubernetes provider hands out plain clients."""

    def __post_init__(self) -> None:
        for field in fields(self):
            check = _check_share if field.name == "jitter" else _CHECKS[str(field.type)]
            check(field.name, getattr(self, field.name))
        if self.expiry <= self.poll_interval:
            raise _wrong("expiry", self.expiry, f"above poll_interval ({self.poll_interval})")
        if self.max_backoff < self.poll_interval:
            right = f"at least poll_interval ({self.poll_interval})"
            raise _wrong("max_backoff", self.max_backoff, right)

    @classmethod
    def from_env(cls, environ: Mapping[str, str] = os.environ) -> Settings:
        """Settings from `JOBINFO_CACHE_…` variables; what is absent or blank keeps its default.

        "none" stands for None, and true/false, yes/no, on/off, 1/0 for the switches. Raises
        `ValueError` naming the variable, its value and what would be right.

        .. versionadded:: 0.1.0
        """
        values = {}
        for field in fields(cls):
            variable = _ENV_PREFIX + field.name.upper()
            text = environ.get(variable, "").strip()
            if text:
                values[field.name] = _parse(str(field.type), variable, text)
        try:
            return cls(**values)
        except ValueError as error:
            named = ", ".join(_ENV_PREFIX + name.upper() for name in values)
            raise ValueError(f"{error} (set by the environment: {named})") from None

    @property
    def sweep_interval(self) -> float:
        """`cleanup_interval`, or what it is when None."""
        return self.cleanup_interval or min(10 * self.poll_interval, _YEAR)


def _wrong(name: str, value: object, right: str) -> ValueError:
    return ValueError(f"{name} is {value!r}; it must be {right}")


def _check_count(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MOST:
        raise _wrong(name, value, f"a whole number from 1 to {_MOST}")


def _check_switch(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise _wrong(name, value, "True or False")


def _check_duration(name: str, value: object) -> None:
    may_be_zero = name == "close_timeout"
    right = f"a number {'from' if may_be_zero else 'above'} 0 to {_YEAR:.0f} (a year)"
    _check_range(name, value, _YEAR, right)
    if value == 0 and not may_be_zero:
        raise _wrong(name, value, right)


def _check_share(name: str, value: object) -> None:
    _check_range(name, value, 0.5, "a number from 0 to 0.5")


def _check_range(name: str, value: object, most: float, right: str) -> None:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value <= most:
        raise _wrong(name, value, right)


def _check_optional_duration(name: str, value: object) -> None:
    if value is not None:
        _check_duration(name, value)


_CHECKS = {
    "int": _check_count,
    "bool": _check_switch,
    "float": _check_duration,
    "float | None": _check_optional_duration,
}


def _parse(type_name: str, variable: str, text: str) -> Any:
    if type_name == "bool":
        if text.lower() not in _BOOLEANS:
            raise _wrong(variable, text, "true or false")
        return _BOOLEANS[text.lower()]
    if type_name == "float | None" and text.lower() == "none":
        return None
    try:
        value = int(text) if type_name == "int" else float(text)
    except ValueError:
        kind = "a whole number" if type_name == "int" else "a number of seconds"
        raise _wrong(variable, text, kind) from None
    if math.isnan(value):
        raise _wrong(variable, text, "a number")
    return value
