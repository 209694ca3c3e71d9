"""The Dagster sensor's ticks."""

from __future__ import annotations

import sys
from pathlib import Path

import dagster

sys.path.insert(0, str(Path(__file__).parent))

from sensor import cache, make_sensor

from jobinfo_cache import Cluster
from jobinfo_cache.testing import SimulatedDashboard, settle


def tick(sensor: dagster.SensorDefinition) -> tuple[str | None, list[str | None]]:
    """The reason of a skip, and the keys of the runs."""
    with dagster.instance_for_test() as instance:
        context = dagster.build_sensor_context(instance=instance)
        data = sensor.evaluate_tick(context)
    return data.skip_message, [request.run_key for request in data.run_requests or []]


def test_run_is_requested_when_the_job_has_succeeded() -> None:
    """The first tick knows nothing yet, the next one the status, the last one asks for a run."""
    with SimulatedDashboard() as dashboard, cache:
        dashboard.add_job("train", status="RUNNING")
        cluster = Cluster("default", "one", "u1")
        sensor = make_sensor(dashboard.url, cluster, "train")
        assert tick(sensor) == ("train: not known yet", [])
        settle(cache)
        assert tick(sensor) == ("train is RUNNING", [])
        dashboard.set_status("train", "SUCCEEDED")
        cache.client(dashboard.url, cluster).wait("train", timeout=30)
        assert tick(sensor) == (None, ["u1/train"])
