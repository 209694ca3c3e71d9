"""The truth about the jobs of one cluster, and a dashboard client whose transport asks it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from jobinfo_cache import DashboardClient, DashboardUnavailable
from jobinfo_cache.answers import Answer
from jobinfo_cache.testing import FakeClock

TERMINAL = ("SUCCEEDED", "FAILED", "STOPPED")
GHOST = {
    "type": "SUBMISSION",
    "status": "FAILED",
    "error_type": "JOB_SUPERVISOR_ACTOR_DIED",
    "entrypoint": "Entrypoint not found.",
    "start_time": None,
    "metadata": None,
}
DRIVER_ID = "01000000"  # the other id of job "a", once it runs


@dataclass(eq=False)
class Request:
    """One request: when it was sent, and what came of it. `reply` answers or raises."""

    number: int
    method: str
    path: str
    sent_at: datetime
    sent: float  # on the monotonic clock
    serve: Callable[[], None]
    reply: Callable[[], Answer] | None = None

    @property
    def is_list(self) -> bool:
        return self.path == "/api/jobs/"

    @property
    def job_id(self) -> str | None:
        """The job that a single GET is about."""
        _, jobs, rest = self.path.partition("/api/jobs/")
        return unquote(rest) if jobs and rest and self.method == "GET" else None


@dataclass
class Job:
    """The truth about a job now. `version` is new at each change, in the whole test."""

    submission_id: str
    status: str
    version: int

    @property
    def driver_id(self) -> str | None:
        has_driver = self.submission_id == "a" and self.status != "PENDING"
        return DRIVER_ID if has_driver else None


@dataclass
class World:
    """One head: its jobs, its token, its session, and what is wrong with it."""

    clock: FakeClock
    numbers: itertools.count[int]  # shared by all worlds of a test: requests and versions
    token: str = "t1"
    session: str = "session_1"
    fault: str | None = None
    garbled: set[str] = field(default_factory=set)  # jobs whose record makes no sense
    jobs: dict[str, Job] = field(default_factory=dict)
    ghosts: set[str] = field(default_factory=set)  # of the deleted records
    requests: dict[int, Request] = field(default_factory=dict)
    history: dict[int, Job] = field(default_factory=dict)  # by version: all that was ever true
    ended: dict[int, int] = field(default_factory=dict)  # version: the number when it was over

    def put(self, job_id: str, status: str) -> None:
        """The job is in this status from now on; a new one if it was not there."""
        self.drop(job_id)
        job = Job(job_id, status, next(self.numbers))
        self.jobs[job_id] = self.history[job.version] = job
        self.ghosts.discard(job_id)

    def drop(self, job_id: str) -> None:
        """The record is gone, if it was there."""
        if job_id in self.jobs:
            self.ended[self.jobs.pop(job_id).version] = next(self.numbers)

    def restart(self) -> None:
        """A new head, that knows no job."""
        for job_id in list(self.jobs):
            self.drop(job_id)
        self.ghosts.clear()
        self.session = f"session_{next(self.numbers)}"

    def find(self, job_id: str) -> Job | None:
        """The job, by either id."""
        if job_id in self.jobs:
            return self.jobs[job_id]
        return next((job for job in self.jobs.values() if job.driver_id == job_id), None)

    def ids(self, job_id: str) -> set[str]:
        """All ids of the job that has this one."""
        job = self.find(job_id)
        return {job_id} | ({job.submission_id, job.driver_id or job_id} if job else set())

    def arrive(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> Request:
        """Note a request; its answer is made by `serve`, later."""

        def serve() -> None:
            if request.reply is None:
                request.reply = self._reply(request, headers, body)

        request = Request(
            next(self.numbers), method, path, self.clock.now(), self.clock.monotonic(), serve
        )
        self.requests[request.number] = request
        return request

    def _reply(
        self, request: Request, headers: Mapping[str, str], body: bytes | None
    ) -> Callable[[], Answer]:
        if self.fault == "reset" or self.fault == "raise":
            error: Exception = RuntimeError(f"#{request.number}")
            if self.fault == "reset":
                error = DashboardUnavailable(
                    "reset", url=f"http://w#{request.number}", fetched_at=request.sent_at
                )
            return lambda: _throw(error)
        status, content, retry_after = self._answer(request, headers, body)
        answer = Answer(
            request.method,
            f"http://w{request.path}#{request.number}",
            request.sent_at,
            status,
            "application/json",
            retry_after,
            content if isinstance(content, bytes) else json.dumps(content).encode(),
        )
        return lambda: answer

    def _answer(
        self, request: Request, headers: Mapping[str, str], body: bytes | None
    ) -> tuple[int, Any, str | None]:
        if headers.get("Authorization") != f"Bearer {self.token}":
            return 401, b"Unauthorized", None
        if self.fault == "503":
            return 503, b"in trouble", "7"
        if self.fault is not None and self.fault.isdigit():
            return int(self.fault), b"in trouble", None
        if request.path == "/api/version":
            return 200, {"session_name": self.session}, None
        if request.is_list:
            return self._jobs(request, body)
        job_id, _, action = request.path.removeprefix("/api/jobs/").partition("/")
        return self._job(request, unquote(job_id), action)

    def _jobs(self, request: Request, body: bytes | None) -> tuple[int, Any, str | None]:
        if request.method == "POST":
            return self._submit(json.loads(body or b"{}")["submission_id"])
        if self.garbled:
            return 500, b"one corrupt record", None
        ghosts = [GHOST | {"submission_id": job_id} for job_id in self.ghosts]
        return 200, [self._record(job, request) for job in self.jobs.values()] + ghosts, None

    def _submit(self, job_id: str) -> tuple[int, Any, str | None]:
        if job_id in self.jobs or job_id in self.ghosts:
            return 500, b"already exists. Please use a different submission_id.", None
        self.put(job_id, "PENDING")
        return 200, {"submission_id": job_id, "job_id": job_id}, None

    def _job(self, request: Request, job_id: str, action: str) -> tuple[int, Any, str | None]:
        job = self.find(job_id)
        if job is None and job_id in self.ghosts and request.method == "GET":
            return 200, GHOST | {"submission_id": job_id}, None
        if job is None:
            return 404, f"Job {job_id} does not exist".encode(), None
        if action == "stop":
            is_live = job.status not in TERMINAL
            if is_live:
                self.put(job.submission_id, "STOPPED")
            return 200, {"stopped": is_live}, None
        if request.method == "DELETE":
            if job.status not in TERMINAL:
                return 500, b"it is in a non-terminal state", None
            self.drop(job.submission_id)
            return 200, {"deleted": True}, None
        if job.submission_id in self.garbled:
            return 200, [], None
        return 200, self._record(job, request), None

    def _record(self, job: Job, request: Request) -> dict[str, Any]:
        return {
            "type": "SUBMISSION",
            "submission_id": job.submission_id,
            "job_id": job.driver_id,
            "status": job.status,
            "entrypoint": "true",
            "start_time": 1,
            "metadata": {"version": job.version, "request": request.number},
        }


def _throw(error: Exception) -> Answer:
    raise error


class WorldTransport:
    """The transport of a client of that world; `hold` may make a request wait."""

    def __init__(self, world: World, hold: Callable[[World, Request], None]) -> None:
        self._world = world
        self._hold = hold
        self._under_way: set[Request] = set()

    def send(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        **_: Any,
    ) -> Answer:
        request = self._world.arrive(method, path, headers, body)
        self._under_way.add(request)
        try:
            self._hold(self._world, request)
            request.serve()
            assert request.reply is not None
            return request.reply()
        finally:
            self._under_way.discard(request)

    def separate(self) -> WorldTransport:
        """The world has no connections to keep apart."""
        return self

    def abort(self) -> None:
        """Cut off what is under way."""
        for request in list(self._under_way):
            error = DashboardUnavailable("aborted", url=f"http://w#{request.number}")
            request.reply = lambda error=error: _throw(error)

    def close(self) -> None:
        """There is no connection."""


def client_of(
    world: World, hold: Callable[[World, Request], None], *, token: str, host: str = "w"
) -> DashboardClient:
    """A real dashboard client, with the world in place of the network."""
    client = DashboardClient(f"http://{host}:8265", token=token, proxies={})
    client._transport = WorldTransport(world, hold)  # type: ignore[assignment]
    return client
