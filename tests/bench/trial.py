"""One contestant at one work, in a process of its own.

As a program it reads a `Trial` as JSON from its arguments, runs it, and prints what it has
measured as one line of JSON.
"""

from __future__ import annotations

import json
import os
import random
import resource
import sys
import threading
import time
from collections import deque
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

from jobinfo_cache import Settings
from tests.bench.contestants import CONTESTANTS, Contestant, Job, Library, Work

__all__ = ["Trial", "jobs_of"]

TICK = 0.01  # seconds between two looks for first answers
SAMPLE_EVERY = 5  # ticks
SAMPLES = 40  # jobs looked at in each
RECOVERY_LIMIT = 70.0  # seconds; the longest backoff, and a little


@dataclass(frozen=True)
class Trial:
    """What a contestant is to do, and for how many seconds after the warm-up."""

    contestant: str
    urls: list[str]
    jobs: int
    well: int  # dashboards, the first ones
    seconds: float
    control: int = 0  # the fleet's port, for `heals`
    interval: float = 3.0
    timeout: float = 2.0
    workers: int = 8
    batching: bool = True
    core: int | None = None  # to be kept on
    heals: bool = False  # end the fleet's faults at the end, and time the recovery
    warm_up: float = 6.0  # seconds from the first read to the begin of the figures

    @property
    def settings(self) -> Settings:
        return Settings(
            workers=self.workers,
            poll_interval=self.interval,
            request_timeout=self.timeout,
            cache_size=max(10_000, self.jobs),
            batching=self.batching,
        )


def jobs_of(count: int, dashboards: int) -> list[Job]:
    """All jobs: the n-th is on the n-th dashboard, and so on in turns."""
    return [Job(number % dashboards, f"job-{number:06}") for number in range(count)]


class Controller:
    """Threads that read each job an interval after it was read."""

    def __init__(self, contestant: Contestant, jobs: list[Job], interval: float) -> None:
        self._contestant = contestant
        self._interval = interval
        self._due: deque[tuple[float, Job]] = deque((0.0, job) for job in jobs)
        self._closing = threading.Event()
        self._blocked: list[tuple[int, float]] = []  # reads, and the time they took, a thread
        self._threads = [
            threading.Thread(target=self._run, daemon=True) for _ in range(contestant.readers)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def close(self) -> float:
        """End the threads; returns the mean seconds of a read."""
        self._closing.set()
        for thread in self._threads:
            thread.join()
        reads = sum(count for count, _ in self._blocked)
        return sum(took for _, took in self._blocked) / max(reads, 1)

    def _run(self) -> None:
        reads, blocked = 0, 0.0
        while not self._closing.is_set():
            try:
                due, job = self._due.popleft()
            except IndexError:  # the other threads have all of them
                self._closing.wait(TICK)
                continue
            early = due - time.monotonic()
            if early > 0.001 and self._closing.wait(early):
                break
            began = time.monotonic()
            self._contestant.read(job)
            ended = time.monotonic()
            reads, blocked = reads + 1, blocked + ended - began
            self._due.append((ended + self._interval, job))
        self._blocked.append((reads, blocked))


@dataclass
class Watch:
    """Looks at what readers can have, and at the process, from the main thread."""

    contestant: Contestant
    jobs: list[Job]  # those of the dashboards that are well
    first_answers: float | None = None  # seconds until all had one
    ages: list[float] = field(default_factory=list)
    unknown: int = 0  # of the samples
    threads: int = 0
    busy: list[int] = field(default_factory=list)  # workers of the library
    _answered: int = 0

    def run(self, began: float, until: float, *, samples: bool) -> None:
        """Look on until that moment."""
        ticks = 0
        while (now := time.monotonic()) < until:
            self._look_for_first_answers(now - began)
            if samples and ticks % SAMPLE_EVERY == 0:
                self._sample()
            ticks += 1
            time.sleep(TICK)

    def never(self) -> int:
        """How many jobs have no answer yet."""
        return sum(self.contestant.asked_at(job) is None for job in self.jobs)

    def _look_for_first_answers(self, passed: float) -> None:
        while self._answered < len(self.jobs):
            if self.contestant.asked_at(self.jobs[self._answered]) is None:
                return
            self._answered += 1
        if self.first_answers is None:
            self.first_answers = passed

    def _sample(self) -> None:
        self.threads = max(self.threads, threading.active_count() - 2)
        if isinstance(self.contestant, Library):
            self.busy.append(self.contestant.cache._engine.pool.stats().busy)
        for job in random.choices(self.jobs, k=SAMPLES):
            asked_at = self.contestant.asked_at(job)
            if asked_at is None:
                self.unknown += 1
            else:
                self.ages.append(time.monotonic() - asked_at)


def run(trial: Trial) -> dict[str, Any]:
    """Run the trial; returns its figures, in seconds and MB."""
    contestant = CONTESTANTS[trial.contestant](Work(trial.urls, trial.settings))
    jobs = jobs_of(trial.jobs, len(trial.urls))
    controller = Controller(contestant, jobs, trial.interval)
    watch = Watch(contestant, [job for job in jobs if job.dashboard < trial.well])
    contestant.start()
    began = time.monotonic()
    controller.start()
    watch.run(began, began + trial.warm_up, samples=False)
    cpu, since = cpu_seconds(), time.monotonic()
    watch.run(began, since + trial.seconds, samples=True)
    used, lasted = cpu_seconds() - cpu, time.monotonic() - since
    figures = {
        "first_answers": watch.first_answers,
        "never": watch.never(),
        **ages_of(watch),
        "cpu": used / lasted,
        "rss_mb": peak_rss_mb(),
        "threads": watch.threads,
        "busy": sum(watch.busy) / max(len(watch.busy), 1),
        "window": lasted,
    }
    if trial.heals and isinstance(contestant, Library):
        figures["recovery"] = recover(trial, contestant, jobs)
    figures["blocked_a_pass"] = controller.close() * trial.jobs
    if isinstance(contestant, Library):
        figures["ended_at"] = {job.job_id: at for job, at in contestant.ended_at.items()}
    contestant.close()
    return figures


def ages_of(watch: Watch) -> dict[str, Any]:
    ages = sorted(watch.ages)
    looks = len(ages) + watch.unknown
    return {
        "age_p50": ages[len(ages) // 2] if ages else None,
        "age_p99": ages[int(len(ages) * 0.99)] if ages else None,
        "age_max": ages[-1] if ages else None,
        "unknown": watch.unknown / max(looks, 1),
    }


def recover(trial: Trial, library: Library, jobs: list[Job]) -> dict[str, float]:
    """End the faults; the longest recovery of a dashboard, and that as a share of its bound."""
    first_jobs = [job for job in jobs[: len(trial.urls)] if job.dashboard >= trial.well]
    delays = {job: retry_after(library, job) for job in first_jobs}
    url = f"http://127.0.0.1:{trial.control}/heal"
    with build_opener(ProxyHandler({})).open(url, timeout=30) as answer:
        healed = json.load(answer)
    took: dict[Job, float] = {}
    while len(took) < len(first_jobs) and time.monotonic() < healed + RECOVERY_LIMIT:
        for job in first_jobs:
            if job not in took and (library.asked_at(job) or 0.0) > healed:
                took[job] = time.monotonic() - healed
        time.sleep(TICK)
    shares = [took.get(job, RECOVERY_LIMIT) / (trial.interval + delays[job]) for job in first_jobs]
    return {"longest": max(took.values(), default=RECOVERY_LIMIT), "share": max(shares)}


def retry_after(library: Library, job: Job) -> float:
    """Seconds until the job's dashboard is asked again; near 0 while a request hangs there."""
    snapshot = library.clients[job.dashboard].peek(job.job_id)
    return 0.0 if snapshot is None else snapshot.retry_after or 0.0


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def peak_rss_mb() -> float:
    """Not from getrusage, whose peak a child takes over from its parent."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


def main() -> None:
    trial = Trial(**json.loads(sys.argv[1]))
    if trial.core is not None:
        os.sched_setaffinity(0, {trial.core})
    sys.stdout.write(json.dumps(run(trial)) + "\n")
    sys.stdout.flush()
    os._exit(0)  # threads of some contestants hang


def command(trial: Trial) -> list[str]:
    """What to run for the trial."""
    return [sys.executable, "-m", "tests.bench.trial", json.dumps(asdict(trial))]


if __name__ == "__main__":
    main()
