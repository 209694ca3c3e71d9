"""Tests of the errors: their tree, their fields, their copies."""

from __future__ import annotations

import copy
import pickle

import pytest

from jobinfo_cache import (
    BadResponse,
    CacheClosed,
    DashboardAuthError,
    DashboardError,
    DashboardUnavailable,
    InvalidJobId,
    JobConflict,
    JobInfoCacheError,
    JobNotFound,
    TryAgain,
    WaitTimeout,
)
from tests.support import START, make_info

COMMON = {"url": "http://127.0.0.1:1/api/jobs/a", "status_code": 418, "fetched_at": START}
DASHBOARD_ERRORS = [
    DashboardError("m", **COMMON),  # type: ignore[arg-type]
    JobNotFound("m", job_id="a", **COMMON),
    DashboardUnavailable("m", retry_after=3.0, **COMMON),
    DashboardAuthError("m", **COMMON),  # type: ignore[arg-type]
    JobConflict("m", job_id="a", **COMMON),
    BadResponse("m", **COMMON),  # type: ignore[arg-type]
]
ERRORS = [
    JobInfoCacheError("m"),
    TryAgain("m", reason="stale", retry_after=1.0, last_info=make_info()),
    CacheClosed("m"),
    WaitTimeout("m", last_info=make_info()),
    InvalidJobId("m"),
    *DASHBOARD_ERRORS,
]


def by_name(error: object) -> str:
    return type(error).__name__


@pytest.mark.parametrize("error", ERRORS, ids=by_name)
def test_survives_pickle_and_copy(error: JobInfoCacheError) -> None:
    """An error that was pickled or copied has the same class, message and fields."""
    for twin in (copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        assert type(twin) is type(error)
        assert str(twin) == str(error) == "m"
        assert vars(twin) == vars(error)


@pytest.mark.parametrize("error", DASHBOARD_ERRORS, ids=by_name)
def test_fields_of_dashboard_errors(error: DashboardError) -> None:
    """Every DashboardError says what was asked, what came back, and when."""
    assert (error.url, error.status_code, error.fetched_at) == tuple(COMMON.values())
    assert error.last_info is None


def test_defaults_of_dashboard_errors() -> None:
    """Without an answer there is no status, and no time that a server named."""
    error = DashboardUnavailable("m")

    assert (error.url, error.status_code, error.fetched_at) == ("", None, None)
    assert (error.last_info, error.retry_after) == (None, None)


@pytest.mark.parametrize("error", DASHBOARD_ERRORS, ids=by_name)
def test_fresh_says_the_same(error: DashboardError) -> None:
    """A fresh exception differs in its `last_info` and its traceback only."""
    cause = OSError("low")
    error.__cause__ = cause
    try:
        raise error
    except DashboardError as raised:
        fresh = raised.fresh(make_info())

    assert fresh is not error
    assert type(fresh) is type(error)
    assert vars(fresh) == {**vars(error), "last_info": make_info()}
    assert (str(fresh), fresh.__cause__, fresh.__traceback__) == ("m", cause, None)
    assert error.last_info is None


@pytest.mark.parametrize(
    ("error", "builtin"), [(WaitTimeout("m"), TimeoutError), (InvalidJobId("m"), ValueError)]
)
def test_builtin_kin(error: JobInfoCacheError, builtin: type[Exception]) -> None:
    """Who catches the builtin exception catches the library's as well."""
    assert isinstance(error, builtin)
    assert isinstance(error, JobInfoCacheError)


def test_try_again() -> None:
    """It carries why, when to come back, and what was known."""
    error = TryAgain("m", reason="pending", retry_after=0.5)

    assert (error.reason, error.retry_after, error.last_info) == ("pending", 0.5, None)
