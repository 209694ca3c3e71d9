"""Watched jobs as lines: one for each change."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

from jobinfo_cache import JobInfo, JobSnapshot
from jobinfo_cache.commands.output import Output, one_line

__all__ = ["Lines"]


class Lines:
    """Writes a line when a job's status or trouble differs from the last time. For one thread."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._said: dict[str, tuple[str | None, str | None]] = {}
        self.next_tick = math.inf

    @property
    def is_cut(self) -> bool:
        return self._output.is_cut

    def tick(self) -> None:
        """Nothing: a line is written at once."""

    def see(self, snapshot: JobSnapshot) -> None:
        """One line, if there is anything new; blocks as stdout does."""
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
        parts.append(one_line(status if old in (None, status) else f"{old} -> {status}"))
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
