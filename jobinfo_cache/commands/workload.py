"""The jobs of a smoke run, and what must become of each."""

from __future__ import annotations

import itertools
import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from jobinfo_cache import Cluster, DashboardClient
from jobinfo_cache.job import JobInfo
from jobinfo_cache.testing import SimulatedDashboard

__all__ = ["REAL", "SIMULATED", "Job", "JobKey", "Kind", "custom_kinds", "make_jobs"]

_FOREVER = "sleep 600"
_ENVIRONMENT = {"env_vars": {"SMOKE_GREETING": "hello"}}
_METADATA = {"made-by": "jobinfo-cache smoke"}


class JobKey(NamedTuple):
    """What names a job everywhere."""

    cluster: Cluster
    job_id: str


@dataclass(frozen=True)
class Kind:
    """A sort of job: what is submitted, and what must be said of it when it has ended.

    With `stop` it is stopped when it is seen to run. `script` is what a simulated dashboard does
    with it. Of `metadata` and `exit_code` None is not checked.
    """

    name: str
    entrypoint: str
    status: str = "SUCCEEDED"
    exit_code: int | None = None
    stop: bool = False
    runtime_env: Mapping[str, Any] | None = None
    metadata: Mapping[str, str] | None = None
    script: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Job:
    """One job of a smoke run."""

    key: JobKey
    kind: Kind

    def submit(self, dashboard: DashboardClient) -> None:
        """Submit it; blocks for the answer."""
        dashboard.submit_job(
            self.kind.entrypoint,
            submission_id=self.key.job_id,
            runtime_env=self.kind.runtime_env,
            metadata=self.kind.metadata,
        )

    def script(self, dashboard: SimulatedDashboard) -> None:
        """Tell a simulated dashboard what is to become of it."""
        dashboard.script(self.key.job_id, **self.kind.script)

    def complaint(self, info: JobInfo) -> str | None:
        """What is wrong with the end that it came to, or None."""
        kind = self.kind
        if info.status != kind.status:
            return f"ended {info.status}, not {kind.status}"
        if kind.exit_code is not None and info.driver_exit_code != kind.exit_code:
            return f"has exit code {info.driver_exit_code}, not {kind.exit_code}"
        if kind.metadata is not None and info.metadata != kind.metadata:
            return "came back with other metadata"
        return None


REAL = (
    Kind("succeeds", "echo hello", exit_code=0),
    Kind("fails", "exit 3", "FAILED", exit_code=3),
    Kind("has-no-command", "jobinfo-cache-has-no-such-command", "FAILED", exit_code=127),
    Kind("is-stopped", _FOREVER, "STOPPED", stop=True),
    Kind("has-environment", 'test "$SMOKE_GREETING" = hello', runtime_env=_ENVIRONMENT),
    Kind("has-metadata", "true", metadata=_METADATA),
    Kind("takes-time", "sleep 3"),
    Kind("prints-and-fails", "seq 1 2000; exit 1", "FAILED", exit_code=1),
)

SIMULATED = (
    Kind("succeeds", "true", script={"pending": 0.2, "running": 0.6}),
    Kind(
        "fails",
        "exit 3",
        "FAILED",
        exit_code=3,
        script={"pending": 0.1, "running": 0.4, "outcome": "FAILED", "exit_code": 3},
    ),
    Kind("is-stopped", _FOREVER, "STOPPED", stop=True, script={"running": math.inf}),
    Kind("is-quick", "true", script={"pending": 0.0, "running": 0.05}),
    Kind(
        "has-metadata",
        "true",
        runtime_env=_ENVIRONMENT,
        metadata=_METADATA,
        script={"pending": 0.8, "running": 1.2},
    ),
    Kind(
        "never-runs",
        "true",
        "FAILED",
        script={
            "pending": 1.0,
            "running": 0.0,
            "outcome": "FAILED",
            "error_type": "RUNTIME_ENV_SETUP_FAILURE",
            "message": "Failed to set up runtime environment.",
        },
    ),
    Kind("has-driver", "python job.py", script={"running": 1.0, "driver_job_id": "01000000"}),
)


def custom_kinds(entrypoint: str) -> tuple[Kind, ...]:
    """Jobs that all run the user's own command, which must succeed."""
    return (Kind("custom", entrypoint),)


def make_jobs(kinds: Sequence[Kind], clusters: Sequence[Cluster], number: int) -> list[Job]:
    """That many jobs, of each kind in turn, on each cluster in turn; their ids are new."""
    run = secrets.token_hex(3)
    pairs = zip(itertools.cycle(kinds), range(number))
    return [
        Job(JobKey(clusters[n % len(clusters)], f"smoke-{run}-{n:02d}-{kind.name}"), kind)
        for kind, n in pairs
    ]
