"""The jobs of a simulated dashboard: what their records say, by script and by clock."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from jobinfo_cache.testing import texts

__all__ = ["Script", "SimulatedJob", "ghost", "in_list_order"]

AGENT_ADDRESS = "http://127.0.0.1:52365"
NODE_ID = "340ee9304368274218abd21e4dd2388d05dabd3d7667427ed57ba463"
DRIVER_PID = "25762"
_TERMINAL = frozenset({"STOPPED", "SUCCEEDED", "FAILED"})
_COMMAND_ERROR = "JOB_ENTRYPOINT_COMMAND_ERROR"


@dataclass(frozen=True)
class Script:
    """What a job does by itself: `pending` seconds, then `running` seconds, then `outcome`.

    `inf` is for ever. `message`, `error_type` and `exit_code` are those of a failed job; None
    is what Ray says of a command that ended with exit code 1. `driver_job_id` is the job's other
    id, there once it runs. Raises `ValueError` for a duration below 0 or nan.
    """

    pending: float = 0.2
    running: float = 0.5
    outcome: str = "SUCCEEDED"
    message: str | None = None
    exit_code: int | None = None
    error_type: str | None = None
    driver_job_id: str | None = None

    def __post_init__(self) -> None:
        for name in ("pending", "running"):
            seconds = getattr(self, name)
            if math.isnan(seconds) or seconds < 0:
                raise ValueError(f"{name} is {seconds!r}; it must be a number of seconds from 0")


@dataclass
class SimulatedJob:
    """One record. Not safe by itself: its dashboard holds a lock."""

    job_id: str
    type: str
    entrypoint: str
    script: Script
    #: The moment of submission, on the monotonic scale and on the calendar.
    born: float
    born_at: datetime
    metadata: Mapping[str, str] | None = None
    runtime_env: Mapping[str, Any] | None = None
    needs_resources: bool = False
    #: The statuses and the moments they begin, in order.
    timeline: list[tuple[float, str]] = field(default_factory=list)
    overrides: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.timeline:
            runs = self.born + self.script.pending
            ends = runs + self.script.running
            self.timeline = [
                (self.born, "PENDING"),
                (runs, "RUNNING"),
                (ends, self.script.outcome),
            ]

    def status(self, now: float) -> str:
        """The status at that moment."""
        return [status for moment, status in self.timeline if moment <= now][-1]

    def is_terminal(self, now: float) -> bool:
        return self.status(now) in _TERMINAL

    def answers_to(self, driver_job_id: str, now: float) -> bool:
        """Whether that is its other id, and it has it already."""
        wanted = self.script.driver_job_id == driver_job_id  # first: it is the cheap part
        return wanted and self._driver_job_id(self.status(now)) is not None

    def stop(self, now: float, delay: float) -> bool:
        """Stop it `delay` seconds from now, unless it ends before; False if it has ended."""
        if self.is_terminal(now):
            return False
        moment = now + delay
        if self.status(now) == "PENDING" and math.isinf(self.script.pending):
            return True  # Ray accepts this too, and a job that waits for resources waits on
        if not self.is_terminal(moment):
            self.timeline = [entry for entry in self.timeline if entry[0] <= moment]
            self.timeline.append((moment, "STOPPED"))
        return True

    def set_status(self, now: float, status: str, overrides: Mapping[str, Any]) -> None:
        """From now on it has this status, whatever its script says."""
        self.timeline = [entry for entry in self.timeline if entry[0] <= now]
        self.timeline.append((now, status))
        self.overrides = dict(overrides)

    def to_json(self, now: float) -> dict[str, Any]:
        """The record as the dashboard shows it at that moment."""
        status = self.status(now)
        shape = self._driver_fields if self.type == "DRIVER" else self._submission_fields
        record = {
            "type": self.type,
            "job_id": None,
            "submission_id": None,
            "driver_info": None,
            "status": status,
            "entrypoint": self.entrypoint,
            "message": None,
            "error_type": None,
            "start_time": self._milliseconds(self.born),
            "end_time": self._end_time(now, status),
            "metadata": self.metadata,
            "runtime_env": self.runtime_env,
            "driver_agent_http_address": None,
            "driver_node_id": None,
            "driver_exit_code": None,
        }
        return record | shape(now, status) | self.overrides

    def logs(self, now: float) -> str:
        """What it has printed."""
        if not self._has_run(now, self.status(now)):
            return ""
        return texts.logs(self.job_id, self.entrypoint, self.born_at)

    def _driver_fields(self, now: float, status: str) -> dict[str, Any]:
        return {
            "job_id": self.job_id,
            "driver_info": _driver_info(self.job_id),
            "end_time": self._end_time(now, status) or 0,
            "runtime_env": {},
        }

    def _submission_fields(self, now: float, status: str) -> dict[str, Any]:
        driver = self._driver_job_id(status)
        has_run = self._has_run(now, status)
        return {
            "job_id": driver,
            "submission_id": self.job_id,
            "driver_info": _driver_info(driver) if driver else None,
            "message": self._message(now, status),
            "error_type": self._error_type() if status == "FAILED" else None,
            "driver_agent_http_address": AGENT_ADDRESS if has_run else None,
            "driver_node_id": NODE_ID if has_run else None,
            "driver_exit_code": self._exit_code(status),
        }

    def _message(self, now: float, status: str) -> str | None:
        if status == "PENDING":
            return texts.pending(self.needs_resources, bool(self.runtime_env))
        if status != "FAILED":
            return texts.MESSAGES.get(status)
        if self.script.message is not None:
            return self.script.message
        return texts.failed(self._exit_code(status), self.logs(now))

    def _error_type(self) -> str:
        return self.script.error_type or _COMMAND_ERROR

    def _exit_code(self, status: str) -> int | None:
        if status == "SUCCEEDED":
            return 0
        if status != "FAILED":
            return None
        if self.script.exit_code is not None:
            return self.script.exit_code
        return 1 if self._error_type() == _COMMAND_ERROR else None

    def _has_run(self, now: float, status: str) -> bool:
        """Whether a supervisor was started for it, as far as the record shows."""
        if status == "FAILED":
            return self._error_type().startswith("JOB_ENTRYPOINT")
        if status == "STOPPED":
            past = [entry[1] for entry in self.timeline if entry[0] <= now]
            return past[-2:-1] != ["PENDING"]
        return status != "PENDING"

    def _driver_job_id(self, status: str) -> str | None:
        return self.script.driver_job_id if status != "PENDING" else None

    def _end_time(self, now: float, status: str) -> int | None:
        if status not in _TERMINAL:
            return None
        return self._milliseconds(max(entry[0] for entry in self.timeline if entry[0] <= now))

    def _milliseconds(self, moment: float) -> int:
        return int((self.born_at + timedelta(seconds=moment - self.born)).timestamp() * 1000)


def ghost(job_id: str, now: float, now_at: datetime) -> SimulatedJob:
    """What Ray writes when the record of a job that has just ended was deleted too early."""
    record = SimulatedJob(
        job_id,
        "SUBMISSION",
        "Entrypoint not found.",
        Script(message=texts.ghost(job_id), error_type="JOB_SUPERVISOR_ACTOR_DIED"),
        born=now,
        born_at=now_at,
        timeline=[(now, "FAILED")],
    )
    record.overrides = {"start_time": None}
    return record


def in_list_order(jobs: list[SimulatedJob]) -> list[SimulatedJob]:
    """In an order that is nobody's, as in Ray's list, but the same each time; drivers last."""

    def key(job: SimulatedJob) -> tuple[bool, int]:
        return job.type == "DRIVER", zlib.crc32(job.job_id.encode(errors="surrogatepass"))

    return sorted(jobs, key=key)


def _driver_info(driver: str) -> dict[str, str]:
    return {"id": driver, "node_ip_address": "127.0.0.1", "pid": DRIVER_PID}
