"""A fleet of dashboards in a process of its own, fast enough not to be what is measured.

As a program it reads a `FleetPlan` as JSON from its arguments, prints the ports as one line of
JSON, and serves until its standard input ends. `Fleet` starts and asks it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit
from urllib.request import ProxyHandler, build_opener

__all__ = ["Fleet", "FleetPlan"]


@dataclass(frozen=True)
class FleetPlan:
    """How many dashboards, how many jobs in all, which are ill, and how long answers take.

    Latencies are log-normal around `latency` seconds, and `record_latency` more for each record
    of a list. `ill` dashboards, the last ones, do what `fault` says: hang or refuse. No two lists
    of a `restless` fleet are the same: another message of a job in each of them.
    """

    dashboards: int
    jobs: int
    fault: str = ""
    ill: int = 0
    latency: float = 0.001
    record_latency: float = 0.0
    restless: bool = False

    @property
    def job_ids(self) -> list[list[str]]:
        """The ids of each dashboard's jobs."""
        ids = [f"job-{number:06}" for number in range(self.jobs)]
        return [ids[first :: self.dashboards] for first in range(self.dashboards)]

    @property
    def well(self) -> int:
        """How many dashboards, the first ones, are well."""
        return self.dashboards - self.ill


@dataclass
class Counters:
    """What a dashboard has seen."""

    requests: int = 0
    lists: int = 0
    connections: int = 0
    in_flight: int = 0
    most_in_flight: int = 0
    tenths: dict[int, int] = field(default_factory=dict)  # requests by tenth of a second


class Dashboard:
    """One dashboard: its records, ready to send, and its fault."""

    def __init__(self, job_ids: list[str], plan: FleetPlan) -> None:
        self.plan = plan
        self.counters = Counters()
        self.fault = ""
        self.ended_at: dict[str, float] = {}
        self.hanging: list[Callable[[], None]] = []  # what answers the requests that hang
        self._records = {job_id: record(job_id, "RUNNING") for job_id in job_ids}
        self._list: bytes | None = None
        self._server: asyncio.Server | None = None
        self.port = 0

    async def open(self, fault: str) -> None:
        """Listen, or bind only when the fault is to refuse."""
        loop = asyncio.get_running_loop()
        self.fault = fault
        self._server = await loop.create_server(
            lambda: Connection(self),
            "127.0.0.1",
            self.port,
            backlog=512,
            start_serving=False,
        )
        self.port = self._server.sockets[0].getsockname()[1]
        if fault != "refuse":
            await self._server.start_serving()

    async def heal(self) -> None:
        """End the fault; what hangs is answered."""
        self.fault = ""
        for answer in self.hanging:
            answer()
        self.hanging.clear()
        if self._server is not None:
            await self._server.start_serving()

    def end(self, job_id: str) -> None:
        """The job succeeds now."""
        self._records[job_id] = record(job_id, "SUCCEEDED")
        self._list = None
        self.ended_at[job_id] = time.monotonic()

    def answer(self, path: bytes) -> tuple[bytes, float]:
        """The body for a path, and the seconds that it takes."""
        self.counters.requests += 1
        tenth = int(time.monotonic() * 10)
        self.counters.tenths[tenth] = self.counters.tenths.get(tenth, 0) + 1
        latency = random.lognormvariate(0.0, 0.5) * self.plan.latency
        job_id = path.rpartition(b"/")[2].decode()
        if job_id in self._records:
            return self._records[job_id], latency
        self.counters.lists += 1
        if self.plan.restless:
            restless = next(iter(self._records))
            self._records[restless] = record(restless, "RUNNING", f"Step {self.counters.lists}")
            self._list = None
        if self._list is None:
            self._list = b"[" + b",".join(self._records.values()) + b"]"
        return self._list, latency + self.plan.record_latency * len(self._records)


class Connection(asyncio.Protocol):
    """One connection of a client; requests come one after the other, without bodies."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._dashboard = dashboard
        self._received = b""
        self._waits = False
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._dashboard.counters.connections += 1

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._leave()

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._received.endswith(b"\r\n\r\n"):
            return
        path = self._received.split(b" ", 2)[1]
        self._received = b""
        counters = self._dashboard.counters
        counters.in_flight += 1
        counters.most_in_flight = max(counters.most_in_flight, counters.in_flight)
        self._waits = True
        body, latency = self._dashboard.answer(path)
        if self._dashboard.fault == "hang":
            self._dashboard.hanging.append(functools.partial(self._send, body))
        else:
            asyncio.get_running_loop().call_later(latency, self._send, body)

    def _send(self, body: bytes) -> None:
        self._leave()
        if self._transport is not None:
            self._transport.write(HEAD % len(body) + body)

    def _leave(self) -> None:
        if self._waits:
            self._waits = False
            self._dashboard.counters.in_flight -= 1


class Control:
    """What the parent asks of the fleet, over HTTP."""

    def __init__(self, dashboards: list[Dashboard]) -> None:
        self._dashboards = dashboards
        self._acts: dict[str, Callable[..., Any]] = {
            "/counters": self._counters,
            "/heal": self._heal,
            "/end": self._end,
        }

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        url = urlsplit((await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1].decode())
        act = self._acts[url.path]
        result = act(**{name: texts[0] for name, texts in parse_qs(url.query).items()})
        if asyncio.iscoroutine(result):
            result = await result
        body = json.dumps(result).encode()
        writer.write(HEAD % len(body) + body)
        await writer.drain()
        writer.close()

    def _counters(self) -> dict[str, Any]:
        return {
            "seen_at": time.monotonic(),
            "cpu": time.process_time(),
            "dashboards": [asdict(dashboard.counters) for dashboard in self._dashboards],
        }

    async def _heal(self) -> float:
        for dashboard in self._dashboards:
            if dashboard.fault:
                await dashboard.heal()
        return time.monotonic()

    def _end(self, dashboard: str, job_id: str) -> float:
        self._dashboards[int(dashboard)].end(job_id)
        return self._dashboards[int(dashboard)].ended_at[job_id]


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"


def record(job_id: str, status: str, message: str = "Job is currently running.") -> bytes:
    """A job's JSON as Ray sends it: 15 fields, about 600 bytes."""
    fields = {
        "type": "SUBMISSION",
        "job_id": None,
        "submission_id": job_id,
        "driver_info": None,
        "status": status,
        "entrypoint": "python /home/ray/samples/train.py --epochs 90 --batch-size 512",
        "message": message,
        "error_type": None,
        "start_time": 1764547200000,
        "end_time": None if status == "RUNNING" else 1764547260000,
        "metadata": {"owner": "team-vision", "rayjob": job_id},
        "runtime_env": {"working_dir": "gcs://_ray_pkg_0123456789abcdef.zip", "pip": ["torch"]},
        "driver_agent_http_address": "http://10.0.12.7:52365",
        "driver_node_id": "c0ffee" * 9,
        "driver_exit_code": None,
    }
    return json.dumps(fields).encode()


async def serve(plan: FleetPlan) -> None:
    """Serve until the standard input ends."""
    dashboards = [Dashboard(job_ids, plan) for job_ids in plan.job_ids]
    for number, dashboard in enumerate(dashboards):
        await dashboard.open(plan.fault if number >= plan.well else "")
    control = await asyncio.start_server(Control(dashboards).serve, "127.0.0.1", 0)
    ports = [dashboard.port for dashboard in dashboards]
    sys.stdout.write(json.dumps([control.sockets[0].getsockname()[1], *ports]) + "\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


class Fleet:
    """The fleet as its parent sees it. A context manager; ends the process on leaving."""

    def __init__(self, plan: FleetPlan, core: int | None = None) -> None:
        command = [sys.executable, "-m", "tests.bench.fleet", json.dumps(asdict(plan))]
        if core is not None:
            command = ["taskset", "-c", str(core), *command]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self._control, *ports = json.loads(self._process.stdout.readline())
        self.urls = [f"http://127.0.0.1:{port}" for port in ports]

    def ask(self, path: str) -> Any:
        """One of `Control`'s acts; blocks for its result."""
        opener = build_opener(ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:{self._control}{path}", timeout=30) as answer:
            return json.load(answer)

    @property
    def control(self) -> int:
        """The port of its `Control`."""
        return cast(int, self._control)

    def __enter__(self) -> Fleet:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(30)


def main() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(FleetPlan(**json.loads(sys.argv[1]))))


if __name__ == "__main__":
    main()
