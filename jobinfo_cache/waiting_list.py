"""The jobs that were refused a place in the store, in the order in which they get one."""

from __future__ import annotations

from collections import OrderedDict

from jobinfo_cache.model import Cluster

__all__ = ["Job", "WaitingList"]

Job = tuple[Cluster, str]


class WaitingList:
    """Jobs that wait for a place, the one that has waited longest first; `size` at most.

    Every call is made under the store's lock. A job that finds the list full has no turn; it may
    come again.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._jobs: OrderedDict[Job, float] = OrderedDict()  # when each was read last

    def __len__(self) -> int:
        return len(self._jobs)

    def join(self, job: Job, now: float) -> None:
        """Note that a job is read and has no place; one that waits already keeps its turn."""
        if job in self._jobs or len(self._jobs) < self._size:
            self._jobs[job] = now

    def pop(self) -> tuple[Job, float]:
        """The job whose turn has come, and when it was read last. Raises KeyError if none waits."""
        return self._jobs.popitem(last=False)

    def leave(self, job: Job) -> None:
        """Take the job out, if it is there."""
        self._jobs.pop(job, None)

    def leave_all(self, cluster: Cluster) -> None:
        """Take all jobs of the cluster out."""
        for job in [job for job in self._jobs if job[0] == cluster]:
            del self._jobs[job]

    def drop_unread(self, since: float) -> None:
        """Take all jobs out that were not read after `since`."""
        for job in [job for job, read_at in self._jobs.items() if read_at <= since]:
            del self._jobs[job]

    def clear(self) -> None:
        self._jobs.clear()
