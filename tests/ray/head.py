"""A real Ray head of its own, for tests and for one command.

As a program it starts a head, runs a command with `{url}` replaced by the head's address, and
stops the head: `python -m tests.ray.head -- COMMAND …`. Exits with the command's code.
Ray is looked for in the directory that the environment variable RAY_BIN names.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import requests

READY_LIMIT = 90.0  # seconds; a cold start takes 13, a warm one 8
SUBMIT_LIMIT = 30.0
JOB_LIMIT = 60.0
STOP_LIMIT = 20.0

_MARK = "JOBINFO_CACHE_RAY_HEAD"
# A head takes a block of ports: the first few for its services, the rest for its workers. Below
# lies Ray's default range for workers (to 19999), above the system's for outgoing connections.
_BLOCKS = range(20000, 32000, 500)
_SERVICES = (
    "--dashboard-port",
    "--port",
    "--ray-client-server-port",
    "--dashboard-agent-listen-port",
    "--dashboard-agent-grpc-port",
    "--runtime-env-agent-port",
    "--metrics-export-port",
    "--node-manager-port",
    "--object-manager-port",
)


class RayHead:
    """A Ray head on loopback ports of its own; several run side by side. A context manager.

    With `token` the head asks for it in every request.
    """

    def __init__(self, ray_bin: Path, *, token: str | None = None) -> None:
        self._bin = ray_bin
        self._token = token
        self._claim = _claim_block()
        self._ports = _ports_after(self._claim)
        self._process: subprocess.Popen[bytes] | None = None
        self._place: Path | None = None
        self.url = f"http://127.0.0.1:{self._ports['--dashboard-port']}"

    def start(self) -> RayHead:
        """Start it, and wait until it has run a first job (15 s as a rule, 180 s at most).

        Raises `RuntimeError` with the end of Ray's own words when it does not come up.
        """
        self._place = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))  # longer paths break Ray
        with (self._place / "head.log").open("wb") as log:
            self._process = subprocess.Popen(
                [str(self._bin / "ray"), "start", *self._arguments()],
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self._wait(self._is_listing, READY_LIMIT, "list jobs")
            # The list answers seconds before jobs are taken, and the first one is slow.
            self._wait(self._has_submitted, SUBMIT_LIMIT, "take a job")
            self._wait(self._has_run, JOB_LIMIT, "run a job")
        except BaseException:
            self.kill()
            raise
        return self

    def kill(self) -> None:
        """End it at once, as a crash does, jobs included."""
        if self._process is not None:
            self._sweep()

    def restart(self) -> None:
        """Kill it and start it again at the same address. The new head knows no job."""
        self.kill()
        self.start()

    def close(self) -> None:
        """Stop it (2 s as a rule), and give its ports back."""
        if self._process is not None:
            os.kill(self._process.pid, signal.SIGTERM)
            wait_until(self._has_ended, STOP_LIMIT)
            self._sweep()
        self._claim.close()

    def processes(self) -> list[int]:
        """The ids of its processes that are alive, those of its jobs too."""
        if self._process is None:
            return []
        # Neither is enough: workers and jobs leave the group, renamed processes lose the mark.
        return _living(self._process.pid, f"{_MARK}={self._place}".encode())

    def request(self, method: str, path: str, **arguments: Any) -> requests.Response:
        """Ask the dashboard, with the token if there is one."""
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        with requests.Session() as session:
            session.trust_env = False
            return session.request(
                method, self.url + path, headers=headers, timeout=SUBMIT_LIMIT, **arguments
            )

    def __enter__(self) -> RayHead:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _arguments(self) -> list[str]:
        first_worker = max(self._ports.values()) + 1
        options = {
            **self._ports,
            "--node-ip-address": "127.0.0.1",
            "--dashboard-host": "127.0.0.1",
            "--include-dashboard": "true",
            "--min-worker-port": first_worker,
            "--max-worker-port": self._claim.getsockname()[1] + _BLOCKS.step - 1,
            "--num-cpus": 2,
            "--object-store-memory": 100_000_000,
            "--temp-dir": self._place,
        }
        flags = ["--head", "--block", "--disable-usage-stats"]
        return flags + [f"{name}={value}" for name, value in options.items()]

    def _environment(self) -> dict[str, str]:
        inherited = {name: text for name, text in os.environ.items() if name[:4] != "RAY_"}
        token = {"RAY_AUTH_TOKEN": self._token} if self._token else {}
        return {
            **inherited,
            **token,
            "RAY_AUTH_MODE": "token" if self._token else "disabled",
            # Without this Ray takes the address of a network interface instead of loopback.
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
            "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0",
            "RAY_USAGE_STATS_ENABLED": "0",
            "PATH": f"{self._bin}{os.pathsep}{os.environ['PATH']}",
            _MARK: str(self._place),
        }

    def _wait(self, is_done: Callable[[], bool], limit: float, purpose: str) -> None:
        in_time = wait_until(lambda: self._has_ended() or is_done(), limit)
        if self._has_ended():
            raise RuntimeError(f"the Ray head ended before it could {purpose}: {self._log()}")
        if not in_time:
            raise RuntimeError(f"the Ray head did not {purpose} in {limit} s: {self._log()}")

    def _has_ended(self) -> bool:
        assert self._process is not None
        # Not reaped by looking: until then no other process or group can get its id.
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._process.pid, options) is not None

    def _is_listing(self) -> bool:
        try:
            return self.request("GET", "/api/jobs/").status_code == 200
        except requests.RequestException:
            return False

    def _has_submitted(self) -> bool:
        job = {"entrypoint": "true", "submission_id": "warm-up"}
        answer = self.request("POST", "/api/jobs/", json=job)
        # A try that was answered too late may have left the job behind.
        return answer.ok or "already exists" in answer.text

    def _has_run(self) -> bool:
        answer = self.request("GET", "/api/jobs/warm-up")
        return answer.ok and answer.json()["status"] == "SUCCEEDED"

    def _log(self) -> str:
        assert self._place is not None
        return (self._place / "head.log").read_text(errors="replace")[-2000:]

    def _sweep(self) -> None:
        """End all of it: when the head is gone, its agents and its jobs are not."""
        assert self._process is not None
        assert self._place is not None
        killed: set[int] = set()
        os.killpg(self._process.pid, signal.SIGKILL)
        wait_until(lambda: self._is_swept(killed), STOP_LIMIT)
        self._process.wait()
        shutil.rmtree(self._place, ignore_errors=True)
        self._process = None

    def _is_swept(self, killed: set[int]) -> bool:
        left = self.processes()
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        # A process that is dying has lost its mark already, and is remembered for that.
        killed.update(left)
        return not left and not any(map(is_running, killed))


def wait_until(is_done: Callable[[], bool], limit: float) -> bool:
    """Wait until `is_done()`, asking ten times a second, for `limit` seconds at most."""
    pause = threading.Event()
    deadline = time.monotonic() + limit
    while not (done := is_done()) and time.monotonic() < deadline:
        pause.wait(0.1)
    return done


def _claim_block() -> socket.socket:
    """Bind the first port of a free block: no other head takes the block while it is bound."""
    for first in random.sample(_BLOCKS, len(_BLOCKS)):
        claim = socket.socket()
        try:
            claim.bind(("127.0.0.1", first))
            for port in _ports_after(claim).values():
                with socket.socket() as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(("127.0.0.1", port))
        except OSError:
            claim.close()
        else:
            return claim
    raise RuntimeError(f"no block of ports is free from {_BLOCKS.start} to {_BLOCKS.stop}")


def _ports_after(claim: socket.socket) -> dict[str, int]:
    first = claim.getsockname()[1]
    return {option: first + number for number, option in enumerate(_SERVICES, 1)}


def _living(group: int, mark: bytes) -> list[int]:
    """The ids of the processes of that group, or with that entry in their environment."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            of_group = (place / "stat").read_text().rpartition(")")[2].split()[2]
            marked = mark in (place / "environ").read_bytes().split(b"\0")
        except OSError:
            continue  # ended meanwhile, or another user's
        pid = int(place.name)
        if (marked or int(of_group) == group) and is_running(pid):
            found.append(pid)
    return found


def is_running(pid: int) -> bool:
    """Whether a process has that id; one that has ended and was not reaped yet is none."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def ray_bin() -> Path:
    """The directory that RAY_BIN names; raises `RuntimeError` if there is no Ray in it."""
    directory = os.environ.get("RAY_BIN", "")
    if not directory or not (Path(directory) / "ray").is_file():
        raise RuntimeError(
            f"RAY_BIN is {directory!r}; it must name the directory of a `ray` (see `make test-ray`)"
        )
    return Path(directory).absolute()


def main(arguments: list[str]) -> int:
    """Run the command after `--` beside a head; returns its exit code."""
    if arguments[:1] != ["--"] or len(arguments) < 2:
        raise SystemExit("usage: python -m tests.ray.head -- COMMAND …   ({url}: the dashboard)")
    # A terminated program must stop its head too.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    with RayHead(ray_bin()) as head:
        command = [argument.replace("{url}", head.url) for argument in arguments[1:]]
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
