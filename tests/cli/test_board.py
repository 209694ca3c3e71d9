"""What the table of watched jobs holds: the order of its rows, and what they say."""

from __future__ import annotations

from typing import Any

import pytest

from jobinfo_cache import DashboardUnavailable
from jobinfo_cache.commands.board import Board, Page, span
from tests.cli.snapshots import NOW, make_snapshot
from tests.support import not_found, unavailable

URL = "http://127.0.0.1:8265"


def _board(*job_ids: str) -> Board:
    return Board(URL, job_ids)


def _ids(page: Page) -> list[str]:
    return [row.job_id for row in page.rows]


def test_what_needs_a_look_comes_first() -> None:
    """First what did not succeed, then what fails, runs, waits, and has succeeded."""
    board = _board("succeeded", "new", "pending", "running", "failing", "stopped", "failed", "gone")
    for name in ("succeeded", "pending", "running", "stopped", "failed"):
        board.see(make_snapshot(name, name.upper()), now=1.0)
    board.see(make_snapshot("failing", error=unavailable(), failures=2), now=1.0)
    board.see(make_snapshot("gone", error=not_found("gone"), failures=1), now=1.0)
    page = board.page(rows=8, now=2.0)
    assert _ids(page)[:3] == ["stopped", "failed", "gone"]
    assert _ids(page)[3:] == ["failing", "running", "pending", "new", "succeeded"]
    assert page.ended == 4


def test_newest_change_comes_first_among_equals() -> None:
    """Of two jobs that run the one that changed last is above; a look without news moves none."""
    board = _board("a", "b", "c")
    for now, name in enumerate(("a", "c", "b")):
        board.see(make_snapshot(name, "RUNNING"), now=float(now))
    board.see(make_snapshot("a", "RUNNING"), now=9.0)
    assert _ids(board.page(rows=3, now=9.0)) == ["b", "c", "a"]


def test_jobs_without_a_row_are_counted() -> None:
    """What does not fit is counted by status, and so are all."""
    board = _board("a", "b", "c", "d")
    for name, status in (("a", "RUNNING"), ("b", "SUCCEEDED"), ("c", "SUCCEEDED")):
        board.see(make_snapshot(name, status), now=0.0)
    page = board.page(rows=1, now=0.0)
    assert _ids(page) == ["a"]
    assert page.hidden == {"-": 1, "SUCCEEDED": 2}
    assert page.statuses == {"RUNNING": 1, "-": 1, "SUCCEEDED": 2}


def test_row_of_a_live_job() -> None:
    """Age and duration go on between two looks."""
    board = _board("a")
    board.see(make_snapshot("a", age=2.0, start_time=NOW - 60_000, message="at\n work"), now=10.0)
    (row,) = board.page(rows=1, now=13.0).rows
    assert (row.age, row.duration, row.message) == ("5s", "1m05s", "at work")
    assert (row.failures, row.is_failing) == ("", False)


def test_row_of_a_job_that_has_ended() -> None:
    """A job that has ended has the duration that the dashboard says, and no age."""
    board = _board("a")
    times: dict[str, Any] = {"start_time": NOW - 9_000, "end_time": NOW - 2_000}
    done = make_snapshot("a", "SUCCEEDED", retry_after=None, message="done", **times)
    board.see(done, now=0.0)
    (row,) = board.page(rows=1, now=100.0).rows
    assert (row.age, row.duration, row.message) == ("", "7s", "done")


def test_row_of_a_job_that_vanished() -> None:
    """A job that the dashboard does not know any more has ended, and its row says why."""
    board = _board("a")
    board.see(make_snapshot("a", error=not_found(), failures=1), now=0.0)
    page = board.page(rows=1, now=0.0)
    assert (page.rows[0].status, page.rows[0].message) == ("NOT FOUND", "not_found: no such job")
    assert (page.ended, page.trouble, page.health) == (1, "", "all jobs have ended")


def test_dashboard_that_is_away() -> None:
    """What all live jobs fail of is said once, with since when, and until when."""
    board = _board("a", "b", "c")
    board.see(make_snapshot("c", "SUCCEEDED", retry_after=None), now=0.0)
    for now in (10.0, 14.0):
        for name in ("a", "b"):
            error = unavailable()
            board.see(
                make_snapshot(name, error=error, failures=3, retry_after=8.0, message="busy"), now
            )
    page = board.page(rows=3, now=16.0)
    assert page.health == "away for 6s, asked again in 6s"
    assert page.trouble == "refused"
    assert [(row.message, row.failures) for row in page.rows[:2]] == [("busy", "3")] * 2


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (f"GET {URL}/api/jobs/a: 503 Service Unavailable", "503 Service Unavailable"),
        ("out of order", "out of order"),
        (f"GET {URL}/api/jobs/a: ", f"GET {URL}/api/jobs/a: "),
    ],
    ids=["usual", "no url", "no reason"],
)
def test_reason_of_the_trouble(message: str, shown: str) -> None:
    """The trouble is told without what was asked, if there is anything else to tell."""
    board = _board("a")
    error = DashboardUnavailable(message, url=f"{URL}/api/jobs/a")
    board.see(make_snapshot("a", error=error, failures=1), now=0.0)
    assert board.page(rows=1, now=0.0).trouble == shown


def test_dashboard_that_came_back() -> None:
    """When a job is answered about again there is no trouble, and the count begins anew."""
    board = _board("a")
    board.see(make_snapshot("a", error=unavailable(), failures=1), now=0.0)
    board.see(make_snapshot("a", age=1.0), now=5.0)
    assert board.page(rows=1, now=6.0).health == "well, answered 2s ago"
    board.see(make_snapshot("a", error=unavailable(), failures=1), now=7.0)
    assert board.page(rows=1, now=8.0).health == "away for 1s, asked again in 2s"


def test_trouble_with_some_jobs() -> None:
    """When only some jobs fail each says of what."""
    board = _board("a", "b")
    board.see(make_snapshot("a"), now=0.0)
    board.see(make_snapshot("b", error=unavailable(), failures=1, message="busy"), now=0.0)
    page = board.page(rows=2, now=0.0)
    assert page.health == "in trouble with 1 of 2 live jobs"
    assert page.rows[0].message == "unavailable: refused"


def test_before_the_first_answer() -> None:
    """Before any answer the table says so."""
    board = _board("a")
    page = board.page(rows=1, now=0.0)
    assert page.health == "not asked yet"
    (row,) = page.rows
    assert (row.status, row.duration, row.age, row.failures, row.message) == ("-", "", "", "", "")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""),
        (-3.0, "0s"),
        (0.9, "0s"),
        (59.9, "59s"),
        (60.0, "1m00s"),
        (3_599.0, "59m59s"),
        (3_600.0, "1h00m"),
        (86_399.0, "23h59m"),
        (90_000.0, "1d01h"),
        (86_400_000.0, "1000d00h"),
    ],
)
def test_spans(seconds: float | None, text: str) -> None:
    """A duration is shown in its two greatest units; a negative one is a clock's fault."""
    assert span(seconds) == text
