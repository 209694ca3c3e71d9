"""No cache: the controller asks the dashboard itself, and waits."""

from __future__ import annotations

import contextlib

import requests

from tests.bench.contestants.port import Answer, Dashboards, Job, Work

__all__ = ["BlockingThreads", "SynchronousLoop"]


class BlockingThreads:
    """As many controller threads as the others have controller threads and workers together."""

    def __init__(self, work: Work) -> None:
        self.readers = 1 + work.settings.workers
        self._dashboards = Dashboards(work)
        self._answers: dict[Job, Answer] = {}

    def start(self) -> None:
        """Nothing runs in the background."""

    def read(self, job: Job) -> None:
        with contextlib.suppress(requests.RequestException):  # it is read again in any case
            self._answers[job] = self._dashboards.ask(job)

    def asked_at(self, job: Job) -> float | None:
        answer = self._answers.get(job)
        return None if answer is None else answer.asked_at

    def close(self) -> None:
        """Nothing runs in the background."""


class SynchronousLoop(BlockingThreads):
    """One thread that asks about one job after the other."""

    def __init__(self, work: Work) -> None:
        super().__init__(work)
        self.readers = 1
