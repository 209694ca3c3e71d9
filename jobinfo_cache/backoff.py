"""How long to wait: exponential backoff, and jitter. All durations are seconds."""

from __future__ import annotations

import random

__all__ = ["backoff", "jittered"]

_MOST_DOUBLINGS = 60  # far beyond any cap, and no overflow


def backoff(failures: int, *, base: float, cap: float) -> float:
    """The delay after that many failures in a row: base, 2 × base, 4 × base, … up to `cap`."""
    return min(cap, base * 2.0 ** min(failures - 1, _MOST_DOUBLINGS))


def jittered(delay: float, jitter: float) -> float:
    """`delay` shortened by a random share of at most `jitter`, so that crowds disperse."""
    return delay * (1.0 - jitter * random.random())
