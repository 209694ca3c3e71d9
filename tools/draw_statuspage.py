"""Draw the status page for the documentation: `make pictures`.

Usage: python -m tools.draw_statuspage DIRECTORY

The dashboards are made up and the clock stands still, so that a picture changes only with the
page. Needs Chromium (tools/get-apps).
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

from jobinfo_cache import (
    Cluster,
    DashboardClient,
    DashboardUnavailable,
    JobInfo,
    JobInfoCache,
    Settings,
)
from jobinfo_cache.statuspage import serve
from jobinfo_cache.testing import FakeClock, settle
from tests.apps.browser import Browser

# Name, status, how many seconds ago it started, and how many it ran (None: it still does).
_Job = tuple[str, str, int, "int | None"]
_TRAINING: list[_Job] = [
    ("train-resnet-014", "FAILED", 2_750, 1_204),
    ("train-resnet-015", "RUNNING", 1_950, None),
    ("train-resnet-016", "RUNNING", 1_260, None),
    ("train-resnet-017", "PENDING", 25, None),
    ("import-customers", "STOPPED", 3_000, 641),
    ("train-resnet-012", "SUCCEEDED", 7_300, 2_400),
    ("train-resnet-013", "SUCCEEDED", 7_240, 2_477),
]
_SERVING: list[_Job] = [
    ("nightly-embeddings", "RUNNING", 5_400, None),
    ("reindex", "RUNNING", 340, None),
]
_FAULT = "GET http://search-head-svc.serving.svc:8265/api/jobs/: Connection refused"


class _Dashboard(DashboardClient):
    """Answers about made-up jobs, without a network, until it is away."""

    def __init__(self, url: str, jobs: list[_Job], clock: FakeClock) -> None:
        super().__init__(url)
        self.is_away = False
        self._clock = clock
        self._infos = {job[0]: self._made(*job[1:]) for job in jobs}

    def get_job_info(self, job_id: str) -> JobInfo:
        if self.is_away:
            raise DashboardUnavailable(_FAULT, fetched_at=self._clock.now())
        return JobInfo(self._infos[job_id], fetched_at=self._clock.now())

    def _made(self, status: str, started: int, ran: int | None) -> dict[str, object]:
        start = self._clock.now() - timedelta(seconds=started)
        made: dict[str, object] = {"status": status, "start_time": start.timestamp() * 1000}
        if ran is not None:
            made["end_time"] = (start + timedelta(seconds=ran)).timestamp() * 1000
        if status == "FAILED":
            made |= {"error_type": "JOB_ENTRYPOINT_COMMAND_ERROR", "driver_exit_code": 137}
        return made


def _filled(cache: JobInfoCache, clock: FakeClock) -> None:
    """Have one dashboard that is well, and one that went away 48 s ago."""
    well = _Dashboard("http://train-head-svc.ml.svc:8265", _TRAINING, clock)
    away = _Dashboard("http://search-head-svc.serving.svc:8265", _SERVING, clock)
    training = cache.client(well, Cluster("ml", "train", "5f0c2a1e"))
    serving = cache.client(away, Cluster("serving", "search", "c3a9d0b4"))
    for client, jobs in ((training, _TRAINING), (serving, _SERVING)):
        for name, *_ in jobs:
            client.lookup(name)
            settle(cache)
    away.is_away = True
    for _ in range(50):
        clock.advance(1.0)
        settle(cache)
    for name, *_ in _TRAINING * 300:
        training.get_job_info(name)


def _draw(directory: Path) -> None:
    program = shutil.which("chromium")
    if program is None:
        sys.exit("chromium is not installed: tools/get-apps installs it")
    random.seed(1)  # the cache draws its delays
    clock = FakeClock()
    settings = Settings(batching=False, jitter=0.0)
    with (
        JobInfoCache(settings, clock=clock) as cache,
        serve(cache) as page,
        tempfile.TemporaryDirectory() as profile,
        Browser(program, Path(profile)) as browser,
    ):
        _filled(cache, clock)
        browser.size(1280, 1000)
        browser.open(page.url)
        browser.picture(directory / "statuspage.png")
        browser.size(390, 1350)
        browser.dark(True)
        browser.picture(directory / "statuspage-phone.png")


if __name__ == "__main__":
    _draw(Path(sys.argv[1]))
