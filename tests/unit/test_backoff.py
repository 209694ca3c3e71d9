"""Tests of delays after failures, and of jitter."""

from __future__ import annotations

import random

import pytest

from jobinfo_cache.backoff import backoff, jittered


@pytest.mark.parametrize(
    ("failures", "delay"), [(1, 3.0), (2, 6.0), (3, 12.0), (4, 24.0), (5, 48.0), (6, 60.0)]
)
def test_doubles_up_to_the_cap(failures: int, delay: float) -> None:
    """The delay after n failures in a row is min(cap, base × 2ⁿ⁻¹)."""
    assert backoff(failures, base=3.0, cap=60.0) == delay


def test_cap_is_kept_for_ever() -> None:
    """No number of failures overflows."""
    assert backoff(10**9, base=0.001, cap=60.0) == 60.0


@pytest.mark.parametrize(("drawn", "delay"), [(0.0, 10.0), (0.5, 7.5), (1.0, 5.0)])
def test_jitter_takes_a_share_off(
    monkeypatch: pytest.MonkeyPatch, drawn: float, delay: float
) -> None:
    """A delay is shortened by a random part of the jitter, and never lengthened."""
    monkeypatch.setattr(random, "random", lambda: drawn)

    assert jittered(10.0, 0.5) == delay


def test_no_jitter() -> None:
    """With 0 the delay is as it was."""
    assert jittered(10.0, 0.0) == 10.0
