"""Every public object says what it is, whether it blocks, and since when it is there."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import jobinfo_cache
from jobinfo_cache import (
    CachedDashboardClient,
    DashboardClient,
    JobInfoCache,
    WorkerPool,
    kubernetes,
    rayjob,
    statuspage,
    testing,
)
from jobinfo_cache.clock import Clock
from jobinfo_cache.pool import PoolStats
from jobinfo_cache.testing.gate import Gate
from jobinfo_cache.testing.peer import answering, forwarding

#: Public too: what public objects take and return.
COMPANIONS: list[Any] = [Clock, Gate, PoolStats, answering, forwarding]

#: Objects that do something, and are shared by threads.
SERVICES: list[type] = [
    CachedDashboardClient,
    DashboardClient,
    JobInfoCache,
    WorkerPool,
    kubernetes.DashboardClientProvider,
    statuspage.StatusPage,
    testing.FakeClock,
    testing.FaultServer,
    testing.SimulatedDashboard,
    Gate,
]


def _modules() -> Iterator[ModuleType]:
    yield from (jobinfo_cache, kubernetes, rayjob, statuspage, testing)
    with contextlib.suppress(ImportError):  # what it needs is not installed
        yield importlib.import_module("jobinfo_cache.metrics")


def _public() -> dict[str, Any]:
    """Classes, functions and methods by name; properties are as old as their class."""
    found: dict[str, Any] = {}
    exported = [getattr(module, name) for module in _modules() for name in module.__all__]
    for each in [*exported, *COMPANIONS]:
        if inspect.isclass(each) or inspect.isfunction(each):
            found[f"{each.__module__}.{each.__qualname__}"] = each
        if inspect.isclass(each):
            found.update(_methods(each))
    return found


def _methods(owner: type) -> Iterator[tuple[str, Any]]:
    for name, member in vars(owner).items():
        function = getattr(member, "__func__", member)
        # `renew` is for the child of a fork, and not for users.
        if not name.startswith("_") and name != "renew" and inspect.isfunction(function):
            yield f"{owner.__module__}.{function.__qualname__}", function


def _properties() -> dict[str, property]:
    return {
        f"{owner.__qualname__}.{name}": member
        for owner in _public().values()
        if inspect.isclass(owner)
        for name, member in vars(owner).items()
        if isinstance(member, property) and not name.startswith("_")
    }


PUBLIC = _public()


@pytest.mark.parametrize("name", PUBLIC)
def test_says_since_when(name: str) -> None:
    """A docstring says something, and ends with the version that brought the object."""
    text = inspect.cleandoc(PUBLIC[name].__doc__ or "")
    words, _, last = text.rpartition("\n\n")

    assert re.fullmatch(r"\.\. versionadded:: \d+\.\d+\.\d+", last), text
    assert words


def test_finds_methods() -> None:
    """The walk reaches classes, methods and functions."""
    assert "jobinfo_cache.client.CachedDashboardClient.get_job_info" in PUBLIC
    assert "jobinfo_cache.settings.Settings.from_env" in PUBLIC
    assert "jobinfo_cache.rayjob.decide" in PUBLIC


@pytest.mark.parametrize("name", _properties())
def test_every_property_is_explained(name: str) -> None:
    """A public property has a docstring."""
    assert _properties()[name].__doc__


@pytest.mark.parametrize("owner", SERVICES, ids=lambda owner: owner.__name__)
def test_says_who_may_call_and_what_blocks(owner: type) -> None:
    """What threads share says that they may, and which of its methods block."""
    text = " ".join((owner.__doc__ or "").split()).lower()

    assert "any thread" in text
    assert re.search(r"block|wait", text)
