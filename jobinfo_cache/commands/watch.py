"""`jobinfo-cache watch`: a dashboard's jobs as a live table, or as a line for each change."""

from __future__ import annotations

import argparse
import importlib.util
import logging
import math
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any
from urllib.parse import urlsplit

from jobinfo_cache import (
    CachedDashboardClient,
    Cluster,
    DashboardClient,
    InvalidJobId,
    JobInfoCache,
)
from jobinfo_cache.commands import options
from jobinfo_cache.commands.agenda import Agenda
from jobinfo_cache.commands.board import Board
from jobinfo_cache.commands.exits import Exit
from jobinfo_cache.commands.follower import Follower, View
from jobinfo_cache.commands.lines import Lines
from jobinfo_cache.commands.output import Output, one_line
from jobinfo_cache.commands.terminal import is_colourful, is_terminal

__all__ = ["add_parser", "run"]

_LONG_AGO = datetime(1970, 1, 1, tzinfo=timezone.utc)

_DESCRIPTION = """\
Show jobs until all have ended: as a live table on a terminal (if rich is installed: pip
install 'jobinfo-cache[rich]'), else as a line when a job's status is first seen, when it
changes, when asking starts to fail, and when it works again. With NO_COLOR or TERM=dumb in
the environment, in the background, or with -o json there are lines on a terminal too.

In the table the key q ends it as Ctrl-C does, with exit code 130: 0 always means that every
job has succeeded. The exit code is 1 when one of them did not, and 3 when one vanished.
"""

_HELD_WARNINGS = 20

_EXAMPLES = """\
examples:
  jobinfo-cache watch --url http://127.0.0.1:8265
  jobinfo-cache watch --url http://127.0.0.1:8265 my-job other-job --timeout 600
  jobinfo-cache watch --url http://127.0.0.1:8265 -o json | jq -r '[.job_id, .status] | @tsv'
"""


def add_parser(commands: Any) -> None:
    """Add the command to the parser's commands."""
    parser = commands.add_parser(
        "watch",
        help="show a dashboard's jobs until all have ended",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--url", required=True, help="the dashboard")
    parser.add_argument(
        "jobs",
        nargs="*",
        metavar="JOB",
        help="submission or job ids (default: all jobs that are there at the start)",
    )
    parser.add_argument(
        "--timeout", type=options.seconds, metavar="SECONDS", help="give up then (default: never)"
    )
    options.add_shared(parser)
    parser.set_defaults(run=run, parser=parser)


def run(arguments: argparse.Namespace, output: Output) -> Exit:
    """Watch; blocks until all jobs have ended, or the time is up."""
    deadline = time.monotonic() + (arguments.timeout or math.inf)
    settings = options.environment_settings()
    token = options.token(arguments.token_file)
    dashboard = options.dashboard_client(arguments.url, token, settings.request_timeout)
    agenda: Agenda[str] = Agenda()
    has_table = _has_table(arguments.output)
    with (
        _warnings_held(output) if has_table and is_terminal(sys.stderr) else _warnings_shown(),
        JobInfoCache(settings, on_change=lambda change: agenda.put(change.job_id)) as cache,
    ):
        client = cache.client(dashboard, Cluster("watch", urlsplit(dashboard.url).netloc))
        job_ids = _named(arguments.jobs, dashboard) or _all(client, output)
        with _view(has_table and bool(job_ids), dashboard.url, job_ids, output) as view:
            follower = Follower(job_ids, client, agenda, view)
            code = follower.run(deadline)
        if code is Exit.UNAVAILABLE:
            output.note(f"timed out; {follower.live} jobs have not ended")
        return code


def _has_table(form: str) -> bool:
    """Whether the terminal, the environment and what is installed allow for a table."""
    if form == "json" or not is_colourful(sys.stdout):
        return False
    return importlib.util.find_spec("rich") is not None


@contextmanager
def _view(is_table: bool, url: str, job_ids: Sequence[str], output: Output) -> Iterator[View]:
    """Who shows the jobs; on every way out the terminal is as it was before."""
    if not is_table:
        yield Lines(output)
        return
    from jobinfo_cache.commands.screen import Screen  # needs rich

    screen = Screen(Board(url, job_ids))
    try:
        screen.open()
        yield screen
    finally:
        screen.close()


def _named(job_ids: Sequence[str], dashboard: DashboardClient) -> list[str]:
    """The ids, each once, after the dashboard has said that it knows them all."""
    for job_id in job_ids:
        dashboard.get_job_info(job_id)
    return list(dict.fromkeys(job_ids))


def _all(client: CachedDashboardClient, output: Output) -> list[str]:
    """The ids of all jobs that can be asked about, in the order in which they were submitted."""
    infos = sorted(client.list_jobs(), key=lambda info: info.start_time or _LONG_AGO)
    job_ids = []
    for info in infos:
        job_id = info.submission_id or info.job_id or ""
        try:
            client.peek(job_id)
        except InvalidJobId as error:
            output.note(f"left out: {one_line(str(error))}")
        else:
            job_ids.append(job_id)
    if not job_ids:
        output.note("there are no jobs")
    return job_ids


@contextmanager
def _warnings_shown() -> Iterator[None]:
    """Write the library's warnings on stderr meanwhile."""
    with _logged_by(logging.StreamHandler(sys.stderr)):
        yield


@contextmanager
def _warnings_held(output: Output) -> Iterator[None]:
    """Keep the newest of the library's warnings, and write them at the end: a table is there."""
    held = _Held()
    try:
        with _logged_by(held):
            yield
    finally:
        for text in held.texts:
            output.note(text)


class _Held(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.texts: deque[str] = deque(maxlen=_HELD_WARNINGS)

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(self.format(record))


@contextmanager
def _logged_by(handler: logging.Handler) -> Iterator[None]:
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    logger = logging.getLogger("jobinfo_cache")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
