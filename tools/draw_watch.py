"""Draw the table of `jobinfo-cache watch` for the documentation: `make pictures`.

Usage: python -m tools.draw_watch DIRECTORY

The jobs are made up and their times fixed, so that a picture changes only with the table.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from jobinfo_cache import Cluster, DashboardUnavailable, JobInfo, JobSnapshot
from jobinfo_cache.commands.board import Board
from jobinfo_cache.commands.drawing import draw

_URL = "http://127.0.0.1:8265"
_WIDTH = 100
_ROWS = 9
_SEEN_AT = datetime(2026, 1, 1, tzinfo=timezone.utc)
_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
_EXIT_3 = "Job entrypoint command failed with exit code 3, last available logs: ValueError: no rows"


class _Made(NamedTuple):
    """A made-up job: how many seconds ago it started, and how many it ran (None: it still does)."""

    name: str
    status: str
    started: float
    ran: float | None = None
    message: str = ""

    def snapshot(self) -> JobSnapshot:
        start = _SEEN_AT - timedelta(seconds=self.started)
        times = {"start_time": _milliseconds(start)}
        if self.ran is not None:
            times["end_time"] = _milliseconds(start + timedelta(seconds=self.ran))
        info = JobInfo(
            {"status": self.status, "message": self.message, **times}, fetched_at=_SEEN_AT
        )
        return JobSnapshot(
            job_id=self.name,
            cluster=Cluster("watch", "127.0.0.1:8265"),
            info=info,
            error=None,
            fresh=True,
            fetched_at=_SEEN_AT,
            age=1.0,
            failures=0,
            failing_since=None,
            retry_after=None if info.status.is_terminal else 3.0,
        )


def _jobs() -> Iterator[_Made]:
    for number in range(7):
        yield _Made(f"train-{number:02d}", "SUCCEEDED", 7_300 - 60 * number, 2_400 + 77 * number)
    for number in range(7, 12):
        running = "Job is currently running."
        yield _Made(f"train-{number:02d}", "RUNNING", 1_950 - 131 * number, message=running)
    yield _Made("import-customers", "FAILED", 3_000, 41, _EXIT_3)
    yield _Made("import-orders", "STOPPED", 2_900, 1_264, "Job was intentionally stopped.")
    for number in range(12, 15):
        yield _Made(f"train-{number:02d}", "PENDING", 20)


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _well() -> Board:
    """A dashboard that answers."""
    jobs = list(_jobs())
    board = Board(_URL, [job.name for job in jobs])
    for job in jobs:
        board.see(job.snapshot(), now=0.0)
    return board


def _away() -> Board:
    """The same a while later: the dashboard refuses connections."""
    board = _well()
    refused = DashboardUnavailable(f"GET {_URL}: Connection refused", url=_URL)
    for job in _jobs():
        seen = job.snapshot()
        if seen.retry_after is not None:
            failing = replace(seen, error=refused, failures=3, age=9.0, retry_after=12.0)
            board.see(failing, now=0.0)
    return board


def _save(board: Board, now: float, path: Path) -> None:
    console = Console(
        file=io.StringIO(), record=True, width=_WIDTH, force_terminal=True, color_system="standard"
    )
    console.print(draw(board.page(_ROWS, now), _WIDTH))
    title = f"jobinfo-cache watch --url {_URL}"
    # Without the fonts that rich would have a browser fetch: a picture loads nothing.
    svg = _FONT.sub("", console.export_svg(title=title))
    path.write_text("\n".join(map(str.rstrip, svg.splitlines())) + "\n", encoding="utf-8")


def main(directory: Path) -> None:
    """Write the pictures into the directory."""
    _save(_well(), 0.0, directory / "watch-well.svg")
    _save(_away(), 9.0, directory / "watch-away.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
