"""One way to talk to a dashboard for the wire suite, simulated or real."""

from __future__ import annotations

import itertools
import threading
import urllib.parse
from typing import Any, Protocol

import requests

from jobinfo_cache.testing import FakeClock, SimulatedDashboard

TIMEOUT = 60.0  # seconds; a real head under load takes its time

SUCCEEDS = "echo hello"
FAILS = "exit 3"
RUNS = "sleep 300"
CONNECTS = "python -c 'import ray, time; ray.init(); time.sleep(300)'"
# Without that variable the driver does not know that it belongs to a submission.
DRIVES = "env -u RAY_JOB_CONFIG_JSON_ENV_VAR " + CONNECTS
UNSCHEDULABLE = {"entrypoint_num_cpus": 1000}
ENDS = ("STOPPED", "SUCCEEDED", "FAILED")

Job = dict[str, Any]


class Wire(Protocol):
    """A dashboard, and the jobs that a test needs on it."""

    url: str

    def submit(self, entrypoint: str, **fields: Any) -> str:
        """Submit a job; its id is new unless given."""

    def wait_for(self, job_id: str, *statuses: str) -> Job:
        """Wait until the job has one of the statuses; its record."""

    def wait_for_end(self, job_id: str) -> Job:
        """Wait until the job has ended and its record can be deleted for good; its record."""

    def wait_for_driver(self, job_id: str) -> Job:
        """Wait until the submission's driver has connected; its record."""

    def run_driver(self) -> Job:
        """Run a driver that is no submission; its record while it runs."""

    def request(self, method: str, path: str, **arguments: Any) -> requests.Response:
        """One request, without following redirects and without the machine's proxies."""


class HttpWire:
    """What both have in common: raw requests."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.session = requests.Session()
        self.session.trust_env = False
        self._numbers = itertools.count(1)

    def close(self) -> None:
        self.session.close()

    def request(self, method: str, path: str, **arguments: Any) -> requests.Response:
        return self.session.request(
            method, self.url + path, timeout=TIMEOUT, allow_redirects=False, **arguments
        )

    def new_id(self) -> str:
        return f"wire-{next(self._numbers)}"

    def post(self, entrypoint: str, fields: dict[str, Any]) -> str:
        answer = self.request("POST", "/api/jobs/", json={"entrypoint": entrypoint, **fields})
        assert answer.status_code == 200, answer.text
        return str(answer.json()["submission_id"])

    def get(self, job_id: str) -> Job:
        answer = self.request("GET", job_path(job_id))
        assert answer.status_code == 200, answer.text
        job: Job = answer.json()
        return job


class SimulatedWire(HttpWire):
    """A simulated dashboard whose time moves when a test waits."""

    def __init__(self, dashboard: SimulatedDashboard, clock: FakeClock) -> None:
        super().__init__(dashboard.url)
        self._dashboard = dashboard
        self._clock = clock
        dashboard.stop_delay = 0.5

    def submit(self, entrypoint: str, **fields: Any) -> str:
        job_id = fields.setdefault("submission_id", self.new_id())
        self._dashboard.script(job_id, **_script(entrypoint, fields))
        return self.post(entrypoint, fields)

    def wait_for(self, job_id: str, *statuses: str) -> Job:
        for _ in range(100):
            job = self.get(job_id)
            if job["status"] in statuses:
                return job
            self._clock.advance(0.1)
        raise AssertionError(f"{job_id} did not become {statuses}, but {job['status']}")

    def wait_for_end(self, job_id: str) -> Job:
        return self.wait_for(job_id, *ENDS)

    def wait_for_driver(self, job_id: str) -> Job:
        return self.wait_for(job_id, "RUNNING")

    def run_driver(self) -> Job:
        self._dashboard.add_job("03000000", type="DRIVER", entrypoint=CONNECTS, running=300.0)
        return self.get("03000000")


class RayWire(HttpWire):
    """A real dashboard, polled ten times a second."""

    def submit(self, entrypoint: str, **fields: Any) -> str:
        return self.post(entrypoint, {"submission_id": self.new_id(), **fields})

    def wait_for(self, job_id: str, *statuses: str) -> Job:
        pause = threading.Event()
        for _ in range(int(TIMEOUT * 10)):
            job = self.get(job_id)
            if job["status"] in statuses:
                return job
            pause.wait(0.1)
        raise AssertionError(f"{job_id} did not become {statuses}: {job}")

    def wait_for_end(self, job_id: str) -> Job:
        job = self.wait_for(job_id, *ENDS)
        # Ray looks after a job for a second more; a record deleted meanwhile comes back.
        threading.Event().wait(3.0)
        return job

    def wait_for_driver(self, job_id: str) -> Job:
        pause = threading.Event()
        for _ in range(int(TIMEOUT * 10)):
            job = self.get(job_id)
            if job["job_id"]:
                return job
            pause.wait(0.1)
        raise AssertionError(f"the driver of {job_id} did not connect: {job}")

    def run_driver(self) -> Job:
        self.submit(DRIVES)
        pause = threading.Event()
        for _ in range(int(TIMEOUT * 10)):
            jobs: list[Job] = self.request("GET", "/api/jobs/").json()
            drivers = [job for job in jobs if job["type"] == "DRIVER"]
            if drivers:
                return drivers[0]
            pause.wait(0.1)
        raise AssertionError("no driver job came up")


def job_path(job_id: str) -> str:
    """The path of one job, with its id quoted."""
    return "/api/jobs/" + urllib.parse.quote(job_id, safe="")


def _script(entrypoint: str, fields: dict[str, Any]) -> dict[str, Any]:
    """What a real head would make of the job."""
    script: dict[str, Any] = {}
    if "entrypoint_num_cpus" in fields:
        script["pending"] = float("inf")
    if entrypoint in (RUNS, CONNECTS):
        script["running"] = 300.0
    if entrypoint == CONNECTS:
        script["driver_job_id"] = "04000000"
    if entrypoint == FAILS:
        script |= {"outcome": "FAILED", "exit_code": 3}
    return script
