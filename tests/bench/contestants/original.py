"""The design of the original change, told anew: job by job through one queue."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

import requests
from lru import LRU

from tests.bench.contestants.port import Answer, Dashboards, Job, Work

__all__ = ["OriginalDesign"]


class OriginalDesign:
    """A placeholder and a task at the first read; the task polls once and asks to be run again.

    One queue of tasks feeds the workers in order; a timer of its own brings each task back. An
    error ends a job's loop; a read takes the error away, and the next read begins anew.
    """

    readers = 1

    def __init__(self, work: Work) -> None:
        self._dashboards = Dashboards(work)
        self._interval = work.settings.poll_interval
        self._workers = work.settings.workers
        self._tasks: queue.Queue[Callable[[], bool]] = queue.Queue()
        self._lock = threading.RLock()
        # Guarded by _lock. None is a placeholder:
        self._lru: LRU[str, Answer | Exception | None] = LRU(work.settings.cache_size)
        self._closed = False

    def start(self) -> None:
        for _ in range(self._workers):
            threading.Thread(target=self._run, daemon=True).start()

    def read(self, job: Job) -> None:
        key = cache_key(job)
        with self._lock:
            if key in self._lru:
                if isinstance(self._lru[key], Exception):
                    del self._lru[key]
                return
            self._lru[key] = None
        self._tasks.put(lambda: self._poll(job, key))

    def asked_at(self, job: Job) -> float | None:
        with self._lock:
            found = self._lru.get(cache_key(job))
        return found.asked_at if isinstance(found, Answer) else None

    def close(self) -> None:
        self._closed = True

    def _run(self) -> None:
        while not self._closed:
            task = self._tasks.get()
            if task():
                self._requeue(task)

    def _requeue(self, task: Callable[[], bool]) -> None:
        timer = threading.Timer(self._interval, self._tasks.put, (task,))
        timer.daemon = True
        try:
            timer.start()
        except RuntimeError:  # the system has no more threads: this job is lost
            return

    def _poll(self, job: Job, key: str) -> bool:
        """Ask once and store the outcome; True if the task is to be run again."""
        with self._lock:
            if key not in self._lru:
                return False
        found: Answer | Exception
        try:
            found = self._dashboards.ask(job)
        except requests.RequestException as error:
            found = error
        with self._lock:
            if key not in self._lru:
                return False
            self._lru[key] = found
        return isinstance(found, Answer) and not found.is_terminal


def cache_key(job: Job) -> str:
    """Namespace, cluster and job in one text, as the original has it."""
    return f"namespace/cluster-{job.dashboard}/{job.job_id}"
