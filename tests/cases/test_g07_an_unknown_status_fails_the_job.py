"""G07: a newer server uses one more status, and the old client fails."""

from __future__ import annotations

import pytest

from jobinfo_cache import BadResponse, JobInfo
from jobinfo_cache.testing import FakeClock
from tests.cases.support import case


@pytest.mark.parametrize("status", ["SUSPENDED", "running"])
def test_an_unknown_text_is_kept_and_polled_on(clock: FakeClock, status: str) -> None:
    """It is shown as it is, is not terminal, and the true end is reached."""
    with case(clock) as it:
        it.dashboard.add_job("a", status="RUNNING")
        it.follow()
        it.dashboard.set_status("a", status, brand_new_field={"x": 1})
        it.intervals(1)
        odd = it.read()
        it.dashboard.set_status("a", "SUCCEEDED")
        it.intervals(1)

        assert isinstance(odd, JobInfo)
        assert (str(odd.status), odd.status.is_terminal) == (status, False)
        assert it.status() == "SUCCEEDED"


def test_an_empty_status_is_a_bad_response_and_polled_on(clock: FakeClock) -> None:
    """RUNNING stays readable meanwhile."""
    with case(clock) as it:
        it.dashboard.add_job("a", status="RUNNING")
        it.follow()
        it.dashboard.set_status("a", "")
        it.intervals(1)
        error = it.read()
        it.dashboard.set_status("a", "SUCCEEDED")
        it.intervals(1)

        assert isinstance(error, BadResponse)
        assert error.last_info is not None
        assert it.status() == "SUCCEEDED"
