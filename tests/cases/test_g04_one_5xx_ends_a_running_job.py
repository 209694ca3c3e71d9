"""G04: one transient failure of the completion poll is taken for the end of the job."""

from __future__ import annotations

import pytest

from jobinfo_cache import DashboardUnavailable
from jobinfo_cache.testing import FakeClock
from tests.cases.support import case


@pytest.mark.parametrize("fault", ["429", "500", "502", "503", "504", "reset"])
def test_running_stays_readable_and_the_end_is_seen(clock: FakeClock, fault: str) -> None:
    """Through the fault RUNNING is shown with the error; one interval after it SUCCEEDED is."""
    with case(clock) as it:
        it.dashboard.add_job("a", status="RUNNING")
        it.follow()
        it.dashboard.fault(fault)
        it.intervals(1)
        shown, error = it.client.lookup("a"), it.read()
        it.dashboard.set_status("a", "SUCCEEDED")
        it.dashboard.fault(None)
        it.intervals(1)

        assert shown.info is not None
        assert shown.info.status == "RUNNING"
        assert isinstance(error, DashboardUnavailable)
        assert error.last_info == shown.info
        assert it.status() == "SUCCEEDED"
        told = {str(change.new and change.new.status) for change in it.changes}
        assert told == {"RUNNING", "SUCCEEDED"}
