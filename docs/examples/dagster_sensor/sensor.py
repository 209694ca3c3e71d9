"""A Dagster sensor that starts a run when a Ray job has succeeded; a tick never waits."""

from __future__ import annotations

from collections.abc import Iterator

import dagster

from jobinfo_cache import Cluster, JobInfoCache

#: One for the code server's process, which outlives the ticks; its threads start at the first read.
cache = JobInfoCache()


@dagster.op
def publish() -> None:
    """What follows the Ray job."""


@dagster.job
def after_training() -> None:
    publish()


def make_sensor(url: str, cluster: Cluster, job_id: str) -> dagster.SensorDefinition:
    """A sensor for one Ray job."""

    @dagster.sensor(job=after_training, minimum_interval_seconds=5)
    def training_ended() -> Iterator[dagster.RunRequest | dagster.SkipReason]:
        info = cache.client(url, cluster).lookup(job_id).info
        if info is None:
            yield dagster.SkipReason(f"{job_id}: not known yet")
        elif info.status == "SUCCEEDED":
            yield dagster.RunRequest(run_key=f"{cluster.uid}/{job_id}")
        else:
            yield dagster.SkipReason(f"{job_id} is {info.status}")

    return training_ended
