"""A thread pool that refreshes a shared dict: what one writes without a library."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor

import requests

from tests.bench.contestants.port import Answer, Dashboards, Job, Work

__all__ = ["PooledDict"]


class PooledDict:
    """Every interval all known jobs that are not under way go to the pool."""

    readers = 1

    def __init__(self, work: Work) -> None:
        self._dashboards = Dashboards(work)
        self._interval = work.settings.poll_interval
        self._executor = ThreadPoolExecutor(work.settings.workers)
        self._answers: dict[Job, Answer | None] = {}
        self._under_way: dict[Job, Future[None]] = {}
        self._closing = threading.Event()
        self._beat = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._beat.start()

    def read(self, job: Job) -> None:
        if self._answers.setdefault(job, None) is None:
            self._submit(job)

    def asked_at(self, job: Job) -> float | None:
        answer = self._answers.get(job)
        return None if answer is None else answer.asked_at

    def close(self) -> None:
        self._closing.set()
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _run(self) -> None:
        due = time.monotonic()
        while not self._closing.wait(max(due - time.monotonic(), 0.0)):
            due = time.monotonic() + self._interval
            for job, answer in list(self._answers.items()):
                if answer is None or not answer.is_terminal:
                    self._submit(job)

    def _submit(self, job: Job) -> None:
        running = self._under_way.get(job)
        if (running is None or running.done()) and not self._closing.is_set():
            self._under_way[job] = self._executor.submit(self._refresh, job)

    def _refresh(self, job: Job) -> None:
        try:
            self._answers[job] = self._dashboards.ask(job)
        except requests.RequestException:
            return  # the next beat tries again
