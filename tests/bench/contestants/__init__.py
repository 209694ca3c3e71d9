"""The contestants, by their letters."""

from __future__ import annotations

from collections.abc import Callable

from tests.bench.contestants.blocking import BlockingThreads, SynchronousLoop
from tests.bench.contestants.library import Library
from tests.bench.contestants.original import OriginalDesign
from tests.bench.contestants.pooled import PooledDict
from tests.bench.contestants.port import Contestant, Job, Work

__all__ = ["CONTESTANTS", "NAMES", "Contestant", "Job", "Library", "Work"]

CONTESTANTS: dict[str, Callable[[Work], Contestant]] = {
    "a": SynchronousLoop,
    "b": BlockingThreads,
    "c": PooledDict,
    "d": OriginalDesign,
    "e": Library,
}

NAMES = {
    "a": "synchronous loop",
    "b": "blocking threads",
    "c": "pool and dict",
    "d": "original design",
    "e": "this library",
}
