"""What users test their own controllers with: a dashboard, a bad network and a fake clock."""

from jobinfo_cache.testing.clock import FakeClock
from jobinfo_cache.testing.faultserver import FaultServer
from jobinfo_cache.testing.settle import settle
from jobinfo_cache.testing.simulator import SimulatedDashboard

__all__ = ["FakeClock", "FaultServer", "SimulatedDashboard", "settle"]
