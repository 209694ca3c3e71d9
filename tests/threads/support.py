"""What the thread tests have in common: a dashboard that answers when told, and child processes.

Real threads meet at gates here; each wait has a limit that only a failure uses up.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

import jobinfo_cache
from jobinfo_cache import Cluster, DashboardClient, DashboardUnavailable, JobInfo
from jobinfo_cache.testing import FakeClock

TIMEOUT = 20.0  # seconds
CLUSTER = Cluster("ns", "one", "u1")


class Held:
    """A request under way. `status` is the truth when it is answered."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        self._answered = threading.Event()
        self._status: str | None = None

    def answer(self, status: str | None) -> None:
        """Let it return with that status; None: the connection is reset."""
        self._status = status
        self._answered.set()

    def result(self, clock: FakeClock) -> JobInfo:
        assert self._answered.wait(TIMEOUT), f"nobody answered for {self.job_id}"
        if self._status is None:
            raise DashboardUnavailable("reset")
        return JobInfo({"status": self._status}, fetched_at=clock.now())


class HeldDashboard:
    """A dashboard client whose requests wait for the test, unless `answers` says otherwise."""

    url = "http://127.0.0.1:1"

    def __init__(self, clock: FakeClock, answers: str | None = None) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self.threads: set[int] = set()  # those that are inside a request
        self.most_at_once = 0
        self._clock = clock
        self._held: queue.SimpleQueue[Held] = queue.SimpleQueue()
        self._under_way: set[Held] = set()
        self.during_stop: Callable[[], object] = lambda: None

    def get_job_info(self, job_id: str) -> JobInfo:
        held = Held(job_id)
        self.asked.append(job_id)
        self.threads.add(threading.get_ident())
        self.most_at_once = max(self.most_at_once, len(self.threads))
        self._under_way.add(held)
        try:
            if self.answers is not None:
                held.answer(self.answers)
            else:
                self._held.put(held)
            return held.result(self._clock)
        finally:
            self._under_way.discard(held)
            self.threads.discard(threading.get_ident())

    def next_request(self) -> Held:
        """Wait for a request to arrive."""
        return self._held.get(timeout=TIMEOUT)

    def stop_job(self, job_id: str) -> bool:
        self.during_stop()
        return True

    def delete_job(self, job_id: str) -> None:
        """It is deleted."""

    def submit_job(self, entrypoint: str, *, submission_id: str, **_: Any) -> str:
        return submission_id

    def abort(self) -> None:
        for held in list(self._under_way):
            held.answer(None)

    def close(self) -> None:
        """There is no connection."""

    @property
    def client(self) -> DashboardClient:
        """Itself, as what the annotations ask for."""
        return cast(DashboardClient, self)


def together(works: Iterable[Callable[[], object]]) -> list[Any]:
    """Call all at once, each in a thread of its own; returns what they return or raise."""
    works = list(works)
    barrier = threading.Barrier(len(works))
    results: list[Any] = [None] * len(works)

    def run(number: int, work: Callable[[], object]) -> None:
        barrier.wait(TIMEOUT)
        try:
            results[number] = work()
        except BaseException as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=each) for each in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
        assert not thread.is_alive(), "a thread hangs"
    return results


def run_child(program: str, *arguments: str, timeout: float = 60.0) -> subprocess.CompletedProcess:  # type: ignore[type-arg]
    """Run a program in a child; its tracebacks come to stderr also when it crashes."""
    root = str(Path(jobinfo_cache.__file__).parents[1])
    tests = str(Path(__file__).parents[2])
    path = os.pathsep.join([root, tests])
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(program), *arguments],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def succeed(program: str, *arguments: str, timeout: float = 60.0) -> str:
    """Run a program that must end with 0 and a silent stderr; returns its stdout."""
    child = run_child(program, *arguments, timeout=timeout)
    assert (child.returncode, child.stderr) == (0, ""), child.stdout + child.stderr
    return str(child.stdout)
