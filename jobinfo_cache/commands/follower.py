"""Following jobs to their ends, whoever shows what is seen of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from jobinfo_cache import CachedDashboardClient, DashboardAuthError, JobNotFound, JobSnapshot
from jobinfo_cache.commands.agenda import Agenda
from jobinfo_cache.commands.exits import Exit

__all__ = ["Follower", "View"]


class View(Protocol):
    """Who shows what is seen: a line for each change, or a table that is drawn again and again."""

    @property
    def is_cut(self) -> bool:
        """True once nobody can see it any more."""

    @property
    def next_tick(self) -> float:
        """The moment (monotonic) at which `tick` wants to be called; `inf` for never."""

    def see(self, snapshot: JobSnapshot) -> None:
        """Take what a job looks like now."""

    def tick(self) -> None:
        """Do what is due, such as drawing; called often, also before `next_tick`."""


class Follower:
    """Reads the jobs until all have ended, for one thread. `live` is how many have not."""

    def __init__(
        self,
        job_ids: Sequence[str],
        client: CachedDashboardClient,
        agenda: Agenda[str],
        view: View,
    ) -> None:
        self._client = client
        self._agenda = agenda
        self._view = view
        self._live = dict.fromkeys(job_ids)
        self._exit = Exit.OK

    @property
    def live(self) -> int:
        return len(self._live)

    def run(self, deadline: float) -> Exit:
        """Blocks until all have ended, the view is cut, or it is `deadline` (monotonic).

        The exit code tells the worst end there was, or `UNAVAILABLE` when the time is up. Raises
        `DashboardAuthError`, and what the view raises.
        """
        for job_id in self._live:
            self._agenda.put(job_id)
        while self._live and not self._view.is_cut:
            due = self._agenda.take(min(self._view.next_tick, deadline))
            if due in self._live:
                self._look(due)
            elif time.monotonic() >= deadline:
                return Exit.UNAVAILABLE
            self._view.tick()
        return self._exit

    def _look(self, job_id: str) -> None:
        snapshot = self._client.lookup(job_id)
        if isinstance(snapshot.error, DashboardAuthError):
            raise snapshot.error
        self._view.see(snapshot)
        if isinstance(snapshot.error, JobNotFound):
            self._end(job_id, Exit.NOT_FOUND)
        elif snapshot.retry_after is not None:
            self._agenda.add_after(job_id, snapshot.retry_after)
        elif snapshot.info is not None:
            self._end(job_id, Exit.OK if snapshot.info.status == "SUCCEEDED" else Exit.FAILED)

    def _end(self, job_id: str, how: Exit) -> None:
        del self._live[job_id]
        self._exit = max(self._exit, how)
