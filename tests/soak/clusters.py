"""The clusters of a soak: their clients, their tokens, and what happened to their heads."""

from __future__ import annotations

import itertools
from pathlib import Path

from jobinfo_cache import Cluster, DashboardClient, JobInfoCache
from jobinfo_cache.client import CachedDashboardClient
from tests.soak.fleet import CERTIFICATE, Fleet

SECRET = "s3cret-of-the-soak"
_TIMEOUT = 0.5
_MOST_BYTES = 1_048_576


class Site:
    """One cluster. `heads` counts the starts of its head. Its token is a file or a callable."""

    def __init__(self, fleet: Fleet, number: int, cache: JobInfoCache, directory: Path) -> None:
        self.number = number
        self.heads = 0
        self._fleet = fleet
        self._file = directory / f"token-{number}"
        self._file.touch(mode=0o600)
        self._numbers = itertools.count()
        self.take_token(self.change_token())
        self.cluster = Cluster("soak", f"cluster-{number}", "uid" if number % 3 else "")
        self.client: CachedDashboardClient = cache.client(
            DashboardClient(
                fleet.urls[number],
                token=self._file if number % 4 < 2 else self._file.read_text,
                timeout=_TIMEOUT,
                verify=str(CERTIFICATE),
                proxies={},
                max_response_bytes=_MOST_BYTES,
            ),
            self.cluster,
        )

    def change_token(self) -> str:
        """The dashboard wants another token from now on."""
        token = f"{SECRET}-{self.number}-{next(self._numbers)}"
        self._fleet.order(self.number, "set_token", token)
        return token

    def take_token(self, token: str) -> None:
        """The client's source gives that token from now on."""
        self._file.write_text(f"{token}\n")

    def restart(self) -> None:
        """A new head, which knows no job."""
        self.heads += 1
        self._fleet.order(self.number, "restart")

    def truth(self, job_id: str) -> str | None:
        """The job's status as the dashboard itself knows it, or None."""
        status: str | None = self._fleet.order(self.number, "truth", job_id)
        return status

    def remove(self, job_id: str) -> None:
        """The record of the job vanishes, if there is one."""
        self._fleet.order(self.number, "remove", job_id)
