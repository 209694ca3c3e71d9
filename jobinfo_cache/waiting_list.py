"""The jobs that were refused a place in the store, in the order in which they get one."""

from __future__ import annotations

import random
from bisect import bisect_left, insort
from collections import OrderedDict

from jobinfo_cache.model import Cluster

__all__ = ["Job", "WaitingList"]

Job = tuple[Cluster, str]


class WaitingList:
    """Jobs that wait for a place, the one that has waited longest first; `size` at most.

    Every call is made under the store's lock. Of more jobs than fit it keeps a fair sample: each
    draws a lot when it is refused, and the highest lots stay out. So, whatever the moments at
    which jobs are read, each of them gets in, and gets its turn, sooner or later.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._jobs: OrderedDict[Job, tuple[float, float]] = OrderedDict()  # lot, newest read
        # The same jobs by their lots. An interrupted call leaves one too many here, never too few.
        self._lots: list[tuple[float, Job]] = []

    def __len__(self) -> int:
        return len(self._jobs)

    def join(self, job: Job, now: float) -> None:
        """Note that a job was refused; one that waits already keeps its turn and its lot."""
        lot = self._jobs[job][0] if job in self._jobs else self._draw(job)
        if lot is not None:
            self._jobs[job] = lot, now

    def pop(self) -> tuple[Job, float]:
        """The job whose turn has come, and when it was read last. Raises KeyError if none waits."""
        job, (lot, read_at) = self._jobs.popitem(last=False)
        del self._lots[bisect_left(self._lots, (lot, job))]
        return job, read_at

    def leave(self, job: Job) -> None:
        """Take the job out, if it is there."""
        if job in self._jobs:
            lot, _ = self._jobs.pop(job)
            del self._lots[bisect_left(self._lots, (lot, job))]

    def leave_all(self, cluster: Cluster) -> None:
        """Take all jobs of the cluster out."""
        for job in [job for job in self._jobs if job[0] == cluster]:
            self.leave(job)

    def clear(self) -> None:
        self._jobs.clear()
        self._lots.clear()

    def _draw(self, job: Job) -> float | None:
        """A lot for a job that is new here; None if it is too high."""
        lot = random.random()
        if len(self) >= self._size:
            highest, loser = self._lots[-1]
            if lot >= highest:
                return None
            self._jobs.pop(loser, None)
            self._lots.pop()
        insort(self._lots, (lot, job))
        return lot
