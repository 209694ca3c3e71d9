"""What a contestant is, and what those without this library share."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import requests

from jobinfo_cache import Settings

__all__ = ["Answer", "Contestant", "Dashboards", "Job", "Work"]


class Job(NamedTuple):
    """One job: the number of its dashboard, and its id."""

    dashboard: int
    job_id: str


@dataclass(frozen=True)
class Work:
    """What all contestants are given: where the dashboards are, and the settings."""

    urls: list[str]
    settings: Settings


class Contestant(Protocol):
    """A way to know the states of jobs. `readers` threads of a controller call `read`."""

    readers: int

    def start(self) -> None:
        """Start what runs in the background."""

    def read(self, job: Job) -> None:
        """What a controller does when it reconciles the job; may block for the network."""

    def asked_at(self, job: Job) -> float | None:
        """When, on the monotonic clock, the newest answer that a reader can have was asked for.

        None: there is none yet. Never blocks.
        """

    def close(self) -> None:
        """End what runs in the background; threads that hang may be left behind."""


class Answer(NamedTuple):
    """A job's state, and when it was asked for."""

    asked_at: float
    status: str

    @property
    def is_terminal(self) -> bool:
        return self.status in ("STOPPED", "SUCCEEDED", "FAILED")


class Dashboards:
    """The usual way with `requests`, at its better end: a session is kept for each dashboard."""

    def __init__(self, work: Work) -> None:
        self._urls = [f"{url}/api/jobs/" for url in work.urls]
        self._timeout = work.settings.request_timeout
        self._sessions = [requests.Session() for _ in work.urls]

    def ask(self, job: Job) -> Answer:
        """Blocks for the answer; raises `requests.RequestException`."""
        asked_at = time.monotonic()
        url = self._urls[job.dashboard] + job.job_id
        reply = self._sessions[job.dashboard].get(url, timeout=self._timeout)
        reply.raise_for_status()
        return Answer(asked_at, reply.json()["status"])
