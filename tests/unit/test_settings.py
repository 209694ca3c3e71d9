"""Tests of the settings: defaults, checks, and the environment."""

from __future__ import annotations

import dataclasses
import math
import os
from typing import Any

import pytest

from jobinfo_cache import JobInfoCache, Settings

DEFAULTS = {
    "workers": 8,
    "poll_interval": 3.0,
    "cache_size": 10_000,
    "expiry": 600.0,
    "cleanup_interval": None,
    "max_age": 60.0,
    "max_backoff": 60.0,
    "jitter": 0.1,
    "batching": True,
    "request_timeout": 2.0,
    "close_timeout": 5.0,
    "async_job_info_query": True,
}
DURATIONS = [
    "poll_interval",
    "expiry",
    "cleanup_interval",
    "max_age",
    "max_backoff",
    "request_timeout",
    "close_timeout",
]
COUNTS = ["workers", "cache_size"]
SWITCHES = ["batching", "async_job_info_query"]
YEAR = 365 * 86_400.0


def make(field: str, value: Any) -> Settings:
    return Settings(**{field: value})


def test_defaults() -> None:
    """The defaults are those of the documentation, in its order."""
    assert dataclasses.asdict(Settings()) == DEFAULTS
    assert [*dataclasses.asdict(Settings())] == [*DEFAULTS]


def test_is_frozen() -> None:
    """Settings are values: equal, hashable, and never changed."""
    settings = Settings(workers=3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.workers = 4  # type: ignore[misc]

    assert settings == Settings(workers=3)
    assert len({settings, Settings(workers=3), Settings()}) == 2


class TestChecks:
    """Impossible values are a ValueError that names field, value, and what would be right."""

    @pytest.mark.parametrize("field", DURATIONS)
    @pytest.mark.parametrize(
        "value", [math.nan, math.inf, -math.inf, -1.0, YEAR + 1, "3", True, [1.0]], ids=repr
    )
    def test_duration(self, field: str, value: Any) -> None:
        """No duration is nan, infinite, negative, beyond a year, or no number."""
        with pytest.raises(ValueError, match=f"^{field} is ") as raised:
            make(field, value)

        assert repr(value) in str(raised.value)
        assert "must be" in str(raised.value)

    @pytest.mark.parametrize("field", [name for name in DURATIONS if name != "close_timeout"])
    def test_zero_duration(self, field: str) -> None:
        """Zero is no duration either, but for `close_timeout`."""
        with pytest.raises(ValueError, match=f"^{field} is 0"):
            make(field, 0.0)

    def test_zero_where_it_is_meant(self) -> None:
        """`jitter` and `close_timeout` may be 0."""
        settings = Settings(jitter=0, close_timeout=0)
        assert (settings.jitter, settings.close_timeout) == (0, 0)

    @pytest.mark.parametrize("field", ["max_age", "cleanup_interval"])
    def test_none(self, field: str) -> None:
        """These two may be None."""
        assert getattr(make(field, None), field) is None

    @pytest.mark.parametrize(
        "field", [name for name in DEFAULTS if name not in ("max_age", "cleanup_interval")]
    )
    def test_none_elsewhere(self, field: str) -> None:
        """No other field may be None."""
        with pytest.raises(ValueError, match=f"^{field} is None"):
            make(field, None)

    @pytest.mark.parametrize("field", COUNTS)
    @pytest.mark.parametrize("value", [0, -1, 1.0, math.nan, True, "8"], ids=repr)
    def test_count(self, field: str, value: Any) -> None:
        """A count is a whole number of at least 1."""
        with pytest.raises(ValueError, match=f"^{field} is ") as raised:
            make(field, value)

        assert "whole number" in str(raised.value)

    @pytest.mark.parametrize("field", SWITCHES)
    @pytest.mark.parametrize("value", [0, 1, "yes"], ids=repr)
    def test_switch(self, field: str, value: Any) -> None:
        """A switch is True or False."""
        with pytest.raises(ValueError, match=f"^{field} is .* True or False"):
            make(field, value)

    @pytest.mark.parametrize("value", [-0.1, 0.51, 1e9, math.nan, math.inf, True, "0"], ids=repr)
    def test_jitter(self, value: Any) -> None:
        """Jitter is a share from 0 to a half."""
        with pytest.raises(ValueError, match=r"^jitter is .* must be a number from 0 to 0\.5$"):
            Settings(jitter=value)

    @pytest.mark.parametrize("value", [0.0, 0.5])
    def test_bounds_of_jitter(self, value: float) -> None:
        """Both bounds are taken."""
        assert Settings(jitter=value).jitter == value

    @pytest.mark.parametrize("expiry", [3.0, 2.9])
    def test_expiry_above_poll_interval(self, expiry: float) -> None:
        """An entry must live longer than one interval."""
        with pytest.raises(ValueError, match=r"^expiry is .*poll_interval"):
            Settings(poll_interval=3.0, expiry=expiry)

    def test_max_backoff_from_poll_interval(self) -> None:
        """The cap of the backoff is no shorter than the interval; as long will do."""
        with pytest.raises(ValueError, match=r"^max_backoff is .*poll_interval"):
            Settings(poll_interval=3.0, max_backoff=2.9)
        assert Settings(poll_interval=3.0, max_backoff=3.0).max_backoff == 3.0

    def test_cache_size_that_no_cache_can_have(self) -> None:
        """A size is refused by the settings, or a cache can be made with it."""
        try:
            settings = Settings(cache_size=2**63)
        except ValueError as error:
            assert str(error).startswith("cache_size is ")  # noqa: PT017 - both are right
        else:
            assert JobInfoCache(settings).stats().entries == 0

    @pytest.mark.parametrize(
        ("fields", "interval"),
        [
            ({}, 30.0),
            ({"poll_interval": 5.0}, 50.0),
            ({"cleanup_interval": 1.0}, 1.0),
            ({"poll_interval": YEAR / 2, "expiry": YEAR, "max_backoff": YEAR}, YEAR),
        ],
        ids=["default", "interval", "given", "capped"],
    )
    def test_cleanup_interval(self, fields: dict[str, float], interval: float) -> None:
        """Without a `cleanup_interval` it is ten times the poll interval, up to a year."""
        settings = Settings(**fields)  # type: ignore[arg-type]
        assert settings.sweep_interval == interval


class TestEnvironment:
    """Settings from variables."""

    def test_nothing_set(self) -> None:
        """Without variables the defaults hold; blank ones count as absent."""
        assert Settings.from_env({}) == Settings()
        assert Settings.from_env({"JOBINFO_CACHE_WORKERS": "  "}) == Settings()

    def test_all_set(self) -> None:
        """Each field has a variable of its name."""
        texts = {
            "WORKERS": " 3 ",
            "POLL_INTERVAL": "5",
            "CACHE_SIZE": "7",
            "EXPIRY": "1e2",
            "CLEANUP_INTERVAL": "9.5",
            "MAX_AGE": "none",
            "MAX_BACKOFF": "11",
            "JITTER": "0.25",
            "BATCHING": "off",
            "REQUEST_TIMEOUT": "13",
            "CLOSE_TIMEOUT": "0",
            "ASYNC_JOB_INFO_QUERY": "False",
        }
        environ = {f"JOBINFO_CACHE_{name}": text for name, text in texts.items()}

        assert [*texts] == [name.upper() for name in DEFAULTS]
        assert Settings.from_env(environ) == Settings(
            workers=3,
            poll_interval=5.0,
            cache_size=7,
            expiry=100.0,
            cleanup_interval=9.5,
            max_age=None,
            max_backoff=11.0,
            jitter=0.25,
            batching=False,
            request_timeout=13.0,
            close_timeout=0.0,
            async_job_info_query=False,
        )

    def test_default_is_that_of_the_process(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without an argument the process' own variables are read, when it is called."""
        for name in [name for name in os.environ if name.startswith("JOBINFO_CACHE_")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("JOBINFO_CACHE_WORKERS", "3")

        assert Settings.from_env().workers == 3
        assert Settings().workers == 8

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            *[(text, True) for text in ("true", "YES", "on", "1")],
            *[(text, False) for text in ("false", "No", "OFF", "0")],
        ],
    )
    def test_switches(self, text: str, value: bool) -> None:
        """Switches are words or digits, in any case."""
        assert Settings.from_env({"JOBINFO_CACHE_BATCHING": text}).batching is value

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("WORKERS", "many"),
            ("WORKERS", "1.5"),
            ("WORKERS", "0"),
            ("CACHE_SIZE", "1e3"),
            ("POLL_INTERVAL", "3s"),
            ("POLL_INTERVAL", "nan"),
            ("POLL_INTERVAL", "none"),
            ("EXPIRY", "inf"),
            ("EXPIRY", "1"),
            ("JITTER", "0.9"),
            ("MAX_AGE", "-1"),
            ("BATCHING", "maybe"),
        ],
    )
    def test_impossible_text(self, name: str, text: str) -> None:
        """What is wrong is said with the variable's name and its value."""
        with pytest.raises(ValueError, match="must be") as raised:
            Settings.from_env({f"JOBINFO_CACHE_{name}": text})

        assert f"JOBINFO_CACHE_{name}" in str(raised.value)
        assert text.rstrip("s") in str(raised.value)
