"""All the job records of a simulated dashboard, behind one lock."""

from __future__ import annotations

import random
import string
import threading
from collections.abc import Mapping
from typing import Any

from jobinfo_cache.clock import Clock
from jobinfo_cache.testing import texts
from jobinfo_cache.testing.jobs import Script, SimulatedJob, ghost, in_list_order

__all__ = ["JobTable", "UnknownJobError", "UsedIdError"]

_ID_LETTERS = string.ascii_letters + string.digits


class UnknownJobError(KeyError):
    """There is no job with that id."""


class UsedIdError(ValueError):
    """There is a job with that id already."""


class JobTable:
    """The records by id, and the scripts of jobs to come. Safe from any thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        # Guarded by _lock:
        self._jobs: dict[str, SimulatedJob] = {}
        self._scripts: dict[str | None, Script] = {None: Script()}

    def set_script(self, job_id: str | None, script: Script) -> None:
        """For later submissions under that id; None: for all that have none of their own."""
        with self._lock:
            self._scripts[job_id] = script

    def submit(self, fields: Mapping[str, Any]) -> str:
        """Make the record of a submission; returns its id, raises `UsedIdError`."""
        job_id = fields.get("submission_id") or fields.get("job_id") or _generated_id()
        resources = any(fields[name] for name in fields if name.startswith("entrypoint_"))
        with self._lock:
            script = self._scripts.get(job_id, self._scripts[None])
            self._add_locked(
                SimulatedJob(
                    job_id,
                    "SUBMISSION",
                    fields["entrypoint"],
                    _environment_script(job_id, fields.get("runtime_env")) or script,
                    born=self._clock.monotonic(),
                    born_at=self._clock.now(),
                    metadata=fields.get("metadata"),
                    runtime_env=fields.get("runtime_env"),
                    needs_resources=resources,
                )
            )
        return job_id

    def add(self, job: SimulatedJob) -> None:
        """Put a record there; raises `UsedIdError`."""
        with self._lock:
            self._add_locked(job)

    def snapshot(self, job_id: str) -> dict[str, Any]:
        """The record now, by either id; raises `UnknownJobError`."""
        with self._lock:
            return self._find_locked(job_id).to_json(self._clock.monotonic())

    def list(self) -> list[dict[str, Any]]:
        """All records now."""
        with self._lock:
            now = self._clock.monotonic()
            return [job.to_json(now) for job in in_list_order([*self._jobs.values()])]

    def logs(self, job_id: str) -> str:
        with self._lock:
            return self._find_locked(job_id).logs(self._clock.monotonic())

    def stop(self, job_id: str, delay: float) -> bool:
        """Stop the job `delay` seconds from now; False if it has ended."""
        with self._lock:
            return self._find_locked(job_id).stop(self._clock.monotonic(), delay)

    def set_status(self, job_id: str, status: str, fields: Mapping[str, Any]) -> None:
        with self._lock:
            self._find_locked(job_id).set_status(self._clock.monotonic(), status, fields)

    def remove(self, job_id: str) -> None:
        """Drop the record, whatever its state."""
        with self._lock:
            del self._jobs[self._find_locked(job_id).job_id]

    def is_driver(self, job_id: str) -> bool:
        """Whether it is a driver job; raises `UnknownJobError`."""
        with self._lock:
            return self._find_locked(job_id).type == "DRIVER"

    def delete(self, job_id: str) -> tuple[str, str | None]:
        """Drop the record if the job has ended; returns its submission id and its live status."""
        with self._lock:
            job = self._find_locked(job_id)
            now = self._clock.monotonic()
            if not job.is_terminal(now):
                return job.job_id, job.status(now)
            del self._jobs[job.job_id]
            return job.job_id, None

    def resurrect(self, job_id: str) -> None:
        """Put Ray's ghost of a deleted record there."""
        with self._lock:
            self._jobs[job_id] = ghost(job_id, self._clock.monotonic(), self._clock.now())

    def clear(self) -> None:
        """Drop all records."""
        with self._lock:
            self._jobs.clear()

    def _add_locked(self, job: SimulatedJob) -> None:
        if job.job_id in self._jobs:
            raise UsedIdError(job.job_id)
        self._jobs[job.job_id] = job

    def _find_locked(self, job_id: str) -> SimulatedJob:
        job = self._jobs.get(job_id)
        if job is not None:
            return job
        now = self._clock.monotonic()
        for job in self._jobs.values():
            if job.answers_to(job_id, now):
                return job
        raise UnknownJobError(job_id)


def _generated_id() -> str:
    return "raysubmit_" + "".join(random.choices(_ID_LETTERS, k=16))


def _environment_script(job_id: str, runtime_env: Mapping[str, Any] | None) -> Script | None:
    """What becomes of a job whose environment variables are not texts: it fails at once."""
    variables = (runtime_env or {}).get("env_vars") or {}
    values = variables.values() if isinstance(variables, dict) else [variables]
    for value in values:
        if not isinstance(value, str) or value is variables:
            return Script(
                pending=0.0,
                running=0.0,
                outcome="FAILED",
                message=texts.bad_environment(job_id, value),
                error_type="JOB_SUPERVISOR_ACTOR_START_FAILURE",
            )
    return None
