"""The page of errors says what the code does."""

from __future__ import annotations

import pickle
import re
from typing import Any

import pytest

import jobinfo_cache
from jobinfo_cache import (
    CacheClosed,
    CachedDashboardClient,
    Cluster,
    DashboardError,
    InvalidJobId,
    JobInfoCache,
    JobInfoCacheError,
    errors,
)
from tests.docs.tables import codes, page, plain, table

TEXT = page("reference/errors")
FIELDS = {plain(row["error"]): row for row in table(TEXT, "## Fields")}
REQUIRED: dict[str, dict[str, Any]] = {
    "TryAgain": {"reason": "pending", "retry_after": 1.0},
    "JobNotFound": {"job_id": "x"},
    "JobConflict": {"job_id": "x"},
}
NAMES = sorted(errors.__all__)


def _made(name: str) -> JobInfoCacheError:
    error: JobInfoCacheError = getattr(errors, name)("words", **REQUIRED.get(name, {}))
    return error


def test_tree() -> None:
    """The tree has all errors, each under its base, and names their other bases."""
    block = TEXT.partition("## The tree")[2].split("```")[1]
    path: list[type] = []
    drawn = []
    for line in block.splitlines()[1:]:
        match = re.fullmatch(r"([│├└─ ]*)(\w+)(?: \(also an? (\w+)\))?", line)
        assert match is not None, line
        error = getattr(jobinfo_cache, match[2])
        path[len(match[1]) // 4 :] = [error]
        bases = [base.__name__ for base in error.__bases__]
        expected = [path[-2].__name__ if path[:-1] else "Exception", *filter(None, [match[3]])]
        assert bases == expected
        drawn.append(match[2])
    assert sorted(drawn) == NAMES


def test_advice_for_each() -> None:
    """Each error has a row that says what to do."""
    rows = table(TEXT, "## What each one means, and what to do")

    assert sorted(plain(row["error"]) for row in rows) == NAMES
    assert [row for row in rows if "**Do:** " not in row["says, and what to do"]] == []


@pytest.mark.parametrize("name", FIELDS)
def test_fields(name: str) -> None:
    """The table names the kind, and the fields that the class adds to its base's."""
    error = _made(name)
    inherits = isinstance(error, DashboardError) and name != "DashboardError"
    inherited = vars(_made("DashboardError")) if inherits else {}
    own = [field for field in vars(error) if field not in inherited]

    assert sorted(codes(FIELDS[name]["fields of its own"])) == sorted(own)
    assert plain(FIELDS[name]["`kind`"]) == getattr(error, "kind", "")


def test_fields_are_those_of_all() -> None:
    """No error but the base is left out of the table of fields."""
    assert sorted([*FIELDS, "JobInfoCacheError"]) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_can_be_pickled(name: str) -> None:
    """An error comes back with its text and its fields."""
    error = _made(name)
    copy = pickle.loads(pickle.dumps(error))

    assert (type(copy), str(copy), vars(copy)) == (type(error), "words", vars(error))


def test_who_raises_what() -> None:
    """Reads of a closed cache, and of an impossible id, raise what the table says."""
    rows = table(TEXT, "## Who raises what")
    said = {call: codes(row["raises"]) for row in rows for call in codes(row["call"])}
    cache = JobInfoCache()
    client = cache.client("http://127.0.0.1:1", Cluster("default", "c"))
    for call in ("get_job_info", "lookup", "peek", "wait", "forget"):
        assert "InvalidJobId" in said[call]
        with pytest.raises(InvalidJobId):
            _call(client, call, "..")
    cache.close()
    for call in ("get_job_info", "lookup", "peek", "wait", "list_jobs"):
        assert "CacheClosed" in said.get(call, ["CacheClosed"])
        with pytest.raises(CacheClosed):
            _call(client, call, "x")
    assert "CacheClosed" not in said["forget"]
    client.forget("x")
    assert cache.stats().entries == 0


def _call(client: CachedDashboardClient, name: str, job_id: str) -> None:
    if name == "wait":
        client.wait(job_id, timeout=0.0)
    elif name == "list_jobs":
        client.list_jobs()
    else:
        getattr(client, name)(job_id)
