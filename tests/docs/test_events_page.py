"""The page of events has every log record of the source, and every case of `on_change`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import pytest

import jobinfo_cache
from jobinfo_cache import (
    Cluster,
    DashboardAuthError,
    DashboardClient,
    DashboardError,
    DashboardUnavailable,
    JobInfo,
    JobNotFound,
)
from jobinfo_cache.entry import NOTHING, ClusterState, Entry, Record
from tests.docs.pages import run_page
from tests.docs.tables import DOCS, codes, page, plain, table

SOURCE = Path(jobinfo_cache.__file__).parent
TEXT = page("reference/events")
LOG = table(TEXT, "## The log")
CHANGES = table(TEXT, "## `on_change`")
NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)
FAILURES: dict[str, DashboardError] = {
    "unavailable": DashboardUnavailable("refused"),
    "auth": DashboardAuthError("401"),
    "not_found": JobNotFound("404", job_id="x"),
}

_LEVELS = ("debug", "info", "warning", "error", "exception", "critical")
Event = tuple[str, str, str, tuple[str, ...]]


def _events_of(path: Path) -> Iterator[Event]:
    """Logger (below the package's), level, message and fields of each log call in a module."""
    logger = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in _LEVELS
            and re.fullmatch(r"_?log(ger)?", ast.unparse(node.func.value), re.IGNORECASE)
        ):
            fields = tuple(sorted(str(keyword.arg) for keyword in node.keywords))
            yield logger, node.func.attr.upper(), _message(node.args[0]), fields


def _message(node: ast.expr) -> str:
    """The text of a log call, with … for what is put in."""
    if isinstance(node, ast.JoinedStr):
        return "".join(
            "…" if isinstance(part, ast.FormattedValue) else _message(part) for part in node.values
        )
    assert isinstance(node, ast.Constant)
    return str(node.value)


def test_every_record_of_the_source_is_there() -> None:
    """The table has all log calls of the library, and no other, with their fields."""
    found = {event for path in SOURCE.rglob("*.py") for event in _events_of(path)}
    told = {
        (plain(row["logger"]), row["level"], row["message"], tuple(sorted(codes(row["fields"]))))
        for row in LOG
    }

    assert len(found) > 12
    assert told == found


@pytest.mark.parametrize("row", CHANGES, ids=lambda row: f"{row['known']}-{row['poll brings']}")
def test_on_change(row: dict[str, str]) -> None:
    """What a poll brings is told, or not, as the table says."""
    state = ClusterState(Cluster("default", "c"), DashboardClient("http://127.0.0.1:1"))
    entry = Entry(state, "x", 0.0)
    record = NOTHING
    for number, outcome in enumerate(row["known"].split(", then ")):
        record = record if outcome == "nothing" else _after(record, outcome, number)
    change = record.change_to(_after(record, row["poll brings"], 9), entry)

    if row["told"] == "no":
        assert change is None
        return
    assert change is not None
    told = (_status(change.old), _status(change.new), change.error and change.error.kind)
    assert told == tuple(_none(row[f"`{name}`"]) for name in ("old", "new", "error"))


def test_example() -> None:
    """The example of the page runs, and prints nothing."""
    assert run_page(DOCS / "reference" / "events.md") == 1


def _after(record: Record, outcome: str, sent_at: float) -> Record:
    if outcome in FAILURES:
        return record.after_failure(FAILURES[outcome], sent_at)
    return record.after_answer(JobInfo({"status": outcome}, fetched_at=NOW), sent_at)


def _status(info: JobInfo | None) -> str | None:
    return None if info is None else str(info.status)


def _none(cell: str) -> str | None:
    return None if cell == "`None`" else cell
