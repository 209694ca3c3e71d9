"""The page of settings says what the code does."""

from __future__ import annotations

import math
import re
from dataclasses import fields, replace
from typing import Any

import pytest

from jobinfo_cache import Settings
from tests.docs.pages import run_page
from tests.docs.tables import DOCS, codes, page, plain, table

TEXT = page("reference/settings")
ROWS = {codes(row["setting"])[0]: row for row in table(TEXT, "## All settings")}
DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(Settings)}
YEAR = 365 * 86_400.0

_ALLOWED = re.compile(
    r"(?P<above>above )?(?P<low>\w[\w.]*)(?: to (?P<high>[\w.,]+(?: year)?)|, below (?P<under>\w+))"
    r"(?P<none>, or None)?"
)


def test_all_settings_are_there() -> None:
    """The table has the fields of the class, in their order, and a section for each."""
    assert list(ROWS) == list(DEFAULTS)
    assert re.findall(r"^### `(\w+)`$", TEXT, re.MULTILINE) == list(DEFAULTS)


def test_every_default_has_a_reason() -> None:
    """Each section says why its default is what it is."""
    sections = TEXT.split("\n### ")[1:]

    assert [section.split("\n")[0] for section in sections if "\n*Why " not in section] == []


@pytest.mark.parametrize("name", DEFAULTS)
def test_default(name: str) -> None:
    """The table names the default."""
    shown = plain(ROWS[name]["default"]).replace("_", "")

    assert shown == repr(DEFAULTS[name])


@pytest.mark.parametrize("name", DEFAULTS)
def test_variable(name: str) -> None:
    """The variable that the section names sets the field."""
    other: Any = not DEFAULTS[name] if isinstance(DEFAULTS[name], bool) else 7
    if name == "jitter":
        other = 0.25
    changed: dict[str, Any] = {name: other}
    section = TEXT.partition(f"\n### `{name}`\n")[2].partition("\n### ")[0]
    (variable,) = re.findall(r"^In the environment: `(\w+)`\.$", section, re.MULTILINE)

    assert Settings.from_env({variable: str(other)}) == replace(Settings(), **changed)


@pytest.mark.parametrize("name", [name for name in DEFAULTS if type(DEFAULTS[name]) is not bool])
def test_bounds(name: str) -> None:
    """What the table allows is accepted up to its bounds, and refused beyond them."""
    allowed = _ALLOWED.fullmatch(plain(ROWS[name]["allowed"]))
    assert allowed is not None
    step = 1 if ROWS[name]["unit"] in ("threads", "entries") else 0.0
    low, high = _number(allowed["low"]), _number(allowed["high"] or allowed["under"])

    first, before = (_next(low, step), low) if allowed["above"] else (low, _previous(low, step))
    last, after = (_previous(high, step), high) if allowed["under"] else (high, _next(high, step))
    accepted = [_is_accepted(name, value) for value in (before, first, last, after)]
    assert accepted == [False, True, True, False]
    assert _is_accepted(name, None) is bool(allowed["none"])


@pytest.mark.parametrize("name", [name for name in DEFAULTS if type(DEFAULTS[name]) is bool])
def test_switches(name: str) -> None:
    """A switch is a bool, and no number."""
    assert codes(ROWS[name]["allowed"]) == ["True", "False"]
    assert [_is_accepted(name, value) for value in (True, False, 1)] == [True, True, False]


@pytest.mark.parametrize("word", ["none", "true", "yes", "on", "1", "false", "no", "off", "0"])
def test_words_of_variables(word: str) -> None:
    """The words that the page names are understood."""
    assert f"`{word}`" in TEXT
    if word == "none":
        assert Settings.from_env({"JOBINFO_CACHE_MAX_AGE": word}).max_age is None
    else:
        is_on = Settings.from_env({"JOBINFO_CACHE_BATCHING": word}).batching
        assert is_on is (word in ("true", "yes", "on", "1"))


def test_example() -> None:
    """The example of the page runs, and prints nothing."""
    assert run_page(DOCS / "reference" / "settings.md") == 1


def _number(text: str) -> float:
    if text == "a year":
        return YEAR
    if text in DEFAULTS:
        return float(DEFAULTS[text])
    return float(text.replace(",", ""))


def _next(value: float, step: float) -> float:
    return int(value + step) if step else math.nextafter(value, math.inf)


def _previous(value: float, step: float) -> float:
    return int(value - step) if step else math.nextafter(value, -math.inf)


def _is_accepted(name: str, value: object) -> bool:
    if isinstance(DEFAULTS[name], int) and type(value) is float:
        value = int(value)
    others: dict[str, Any] = {"max_backoff": YEAR} if name == "poll_interval" else {}
    try:
        Settings(**{**others, name: value})
    except ValueError:
        return False
    return True
