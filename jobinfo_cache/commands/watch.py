"""`jobinfo-cache watch`: one line for each change of a dashboard's jobs."""

from __future__ import annotations

import argparse
import logging
import math
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any
from urllib.parse import urlsplit

from jobinfo_cache import (
    CachedDashboardClient,
    Cluster,
    DashboardAuthError,
    DashboardClient,
    InvalidJobId,
    JobInfo,
    JobInfoCache,
    JobNotFound,
    JobSnapshot,
)
from jobinfo_cache.commands import options
from jobinfo_cache.commands.agenda import Agenda
from jobinfo_cache.commands.exits import Exit
from jobinfo_cache.commands.output import Output, one_line

__all__ = ["add_parser", "run"]

_LONG_AGO = datetime(1970, 1, 1, tzinfo=timezone.utc)

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
        help="print each change of a dashboard's jobs until all have ended",
        description="Print a line when a job's status is first seen, when it changes, when asking "
        "starts to fail, and when it works again, until all jobs have ended. "
        "The exit code is 1 when one of them did not succeed.",
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
    with (
        _log_on_stderr(),
        JobInfoCache(settings, on_change=lambda change: agenda.put(change.job_id)) as cache,
    ):
        client = cache.client(dashboard, Cluster("watch", urlsplit(dashboard.url).netloc))
        job_ids = _named(arguments.jobs, dashboard) or _all(client, output)
        return _Watcher(job_ids, client, agenda, output).run(deadline)


class _Watcher:
    """Reads the jobs and says what has changed, for one thread."""

    def __init__(
        self,
        job_ids: Sequence[str],
        client: CachedDashboardClient,
        agenda: Agenda[str],
        output: Output,
    ) -> None:
        self._client = client
        self._agenda = agenda
        self._output = output
        self._live = dict.fromkeys(job_ids)
        self._said: dict[str, tuple[str | None, str | None]] = {}
        self._exit = Exit.OK

    def run(self, deadline: float) -> Exit:
        """Until all have ended, the time is up, or nobody reads the output any more."""
        for job_id in self._live:
            self._agenda.put(job_id)
        while self._live and not self._output.is_cut:
            due = self._agenda.take(deadline)
            if due is None:
                self._output.note(f"timed out; {len(self._live)} jobs have not ended")
                return Exit.UNAVAILABLE
            if due in self._live:
                self._look(due)
        return self._exit

    def _look(self, job_id: str) -> None:
        snapshot = self._client.lookup(job_id)
        if isinstance(snapshot.error, DashboardAuthError):
            raise snapshot.error
        self._say(snapshot)
        if isinstance(snapshot.error, JobNotFound):
            self._end(job_id, Exit.NOT_FOUND)
        elif snapshot.retry_after is not None:
            self._agenda.add_after(job_id, snapshot.retry_after)
        elif snapshot.info is not None:
            self._end(job_id, Exit.OK if snapshot.info.status == "SUCCEEDED" else Exit.FAILED)

    def _end(self, job_id: str, how: Exit) -> None:
        del self._live[job_id]
        self._exit = max(self._exit, how)

    def _say(self, snapshot: JobSnapshot) -> None:
        """One line, if there is anything new."""
        status = None if snapshot.info is None else str(snapshot.info.status)
        error = None if snapshot.error is None else snapshot.error.kind
        before = self._said.get(snapshot.job_id, (None, None))
        if (status, error) == before:
            return
        self._said[snapshot.job_id] = status, error
        self._output.data(_text(snapshot, before[0]), _fields(snapshot, before[0]))


def _text(snapshot: JobSnapshot, old: str | None) -> str:
    seen_at = _seen_at(snapshot)
    parts = [] if seen_at is None else [f"{seen_at:%Y-%m-%dT%H:%M:%SZ}"]
    parts.append(one_line(snapshot.job_id))
    status = None if snapshot.info is None else str(snapshot.info.status)
    if status is not None:
        parts.append(status if old in (None, status) else f"{old} -> {status}")
    if snapshot.error is not None:
        parts.append(f"({one_line(str(snapshot.error))})")
    return "  ".join(parts)


def _fields(snapshot: JobSnapshot, old: str | None) -> dict[str, Any]:
    error, seen_at = snapshot.error, _seen_at(snapshot)
    return {
        "time": None if seen_at is None else seen_at.isoformat(),
        "job_id": snapshot.job_id,
        "old": old,
        "status": None if snapshot.info is None else str(snapshot.info.status),
        "error": None if error is None else {"kind": error.kind, "message": str(error)},
        "job": None if snapshot.info is None else _harmless(snapshot.info),
    }


def _seen_at(snapshot: JobSnapshot) -> datetime | None:
    """When the request was sent whose outcome this is."""
    return snapshot.fetched_at if snapshot.error is None else snapshot.error.fetched_at


def _harmless(info: JobInfo) -> dict[str, Any]:
    """All about the job but its runtime environment, which holds secrets."""
    fields = info.to_dict()
    del fields["runtime_env"]
    return fields


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
def _log_on_stderr() -> Iterator[None]:
    """Show the library's warnings meanwhile."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    logger = logging.getLogger("jobinfo_cache")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
