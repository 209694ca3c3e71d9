"""Lessons 2.10, 2.11, 6.11, 6.18: readers get nothing, or one changes what others read."""

from __future__ import annotations

import pytest

from jobinfo_cache import DashboardUnavailable, JobInfo
from jobinfo_cache.testing import FakeClock
from tests.cases.support import case


def test_a_readers_change_is_its_own(clock: FakeClock) -> None:
    """Mappings are fresh copies, at every depth, and fields cannot be assigned."""
    with case(clock) as it:
        it.dashboard.add_job(
            "a", status="RUNNING", metadata={"k": "v"}, runtime_env={"env_vars": {"k": "v"}}
        )
        info = it.follow()
        assert isinstance(info, JobInfo)
        assert info.metadata is not None
        assert info.runtime_env is not None
        info.metadata["k"] = "changed"
        info.runtime_env["env_vars"]["k"] = "changed"
        info.raw["status"] = "FAILED"
        with pytest.raises(AttributeError):
            info.status = "FAILED"  # type: ignore[assignment]

        again = it.read()
        assert isinstance(again, JobInfo)
        assert (again.metadata, again.status) == ({"k": "v"}, "RUNNING")
        assert again.runtime_env == {"env_vars": {"k": "v"}}


def test_each_reader_gets_an_error_of_its_own(clock: FakeClock) -> None:
    """What one reader does to it, no other one sees."""
    with case(clock) as it:
        it.dashboard.fault("503")
        it.follow()
        first, second = it.client.lookup("a").error, it.client.lookup("a").error

        assert isinstance(first, DashboardUnavailable)
        assert isinstance(second, DashboardUnavailable)
        assert first is not second
        assert first.__traceback__ is None
