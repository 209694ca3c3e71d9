"""How the table of watched jobs looks, whatever the texts in it are."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from jobinfo_cache.commands.board import Board
from jobinfo_cache.commands.drawing import LINES_AROUND, draw
from tests.cli.snapshots import NOW, make_snapshot
from tests.support import unavailable

WIDTHS = st.sampled_from([40, 80, 200])
TEXTS = st.text(st.characters(codec="utf-8"), max_size=60)


def _drawn(board: Board, width: int, rows: int, *, in_colour: bool = False) -> str:
    """What is written for the board."""
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=width,
        height=24,
        force_terminal=in_colour,
        color_system="standard" if in_colour else None,
        highlight=False,
    )
    console.print(draw(board.page(rows, now=0.0), width))
    return stream.getvalue()


def _board(number: int) -> Board:
    """A board of jobs that run."""
    board = Board("http://127.0.0.1:8265", [f"job-{n}" for n in range(number)])
    for n in range(number):
        board.see(make_snapshot(f"job-{n}", start_time=NOW), now=0.0)
    return board


@pytest.mark.parametrize("width", [80, 200])
def test_table(width: int) -> None:
    """A line for the dashboard, one for its trouble, one for all jobs, the titles, the rows."""
    lines = [line.rstrip() for line in _drawn(_board(2), width, rows=9).splitlines()]
    assert lines[0] == "http://127.0.0.1:8265  well, answered 0s ago"
    assert lines[1] == ""
    assert lines[2].lstrip() == "0 of 2 ended: 2 RUNNING"
    assert lines[3].split() == ["JOB", "STATUS", "DURATION", "AGE", "FAILS", "MESSAGE"]
    assert [line.split() for line in lines[4:]] == [
        ["job-0", "RUNNING", "0s", "0s"],
        ["job-1", "RUNNING", "0s", "0s"],
    ]


@pytest.mark.parametrize("width", [80, 200])
def test_more_jobs_than_lines(width: int) -> None:
    """With 500 jobs it fills the lines that there are and no more, and counts the rest."""
    lines = _drawn(_board(500), width, rows=24 - LINES_AROUND).splitlines()
    assert len(lines) == 23  # the last one is left for the hint
    assert lines[-1].rstrip() == "482 more: 482 RUNNING"


def test_bar_grows() -> None:
    """The bar is as full as there are jobs that have ended."""
    board = _board(4)
    board.see(make_snapshot("job-0", "SUCCEEDED", retry_after=None), now=0.0)
    bars = {_drawn(board, 80, rows=0, in_colour=True).splitlines()[2]}
    board.see(make_snapshot("job-1", "SUCCEEDED", retry_after=None), now=0.0)
    bars.add(_drawn(board, 80, rows=0, in_colour=True).splitlines()[2])
    assert len(bars) == 2
    assert any("2 of 4 ended" in bar for bar in bars)


def test_texts_are_no_markup_and_no_orders() -> None:
    """What looks like markup is shown as it is; what a terminal would obey is not sent to it."""
    job_id, message = "[red]a[/red]", ":bomb: [link=http://x]b[/link] \x1b[31mc\x1b]0;d\x07"
    board = Board("http://127.0.0.1:8265", [job_id])
    board.see(make_snapshot(job_id, "[blink]ODD", message=message), now=0.0)
    drawn = _drawn(board, 200, rows=1, in_colour=True)
    assert "[red]a[/red]" in drawn
    assert "[blink]ODD" in drawn
    assert ":bomb: [link=http://x]b[/link] ?[31mc?]0;d?" in drawn
    assert "\x1b[31m" not in drawn
    assert "\x07" not in drawn


@given(
    job_id=TEXTS.filter(lambda text: text != "other"),
    status=TEXTS.filter(bool),
    message=TEXTS,
    error=TEXTS,
    width=WIDTHS,
)
def test_any_texts_keep_the_table_in_shape(
    job_id: str, status: str, message: str, error: str, width: int
) -> None:
    """Whatever the texts are, a job is one line, no line is too long, and none holds a control."""
    board = Board("http://127.0.0.1:8265", [job_id, "other"])
    board.see(make_snapshot(job_id, status, message=message), now=0.0)
    board.see(make_snapshot("other", error=type(unavailable())(error), failures=1), now=0.0)
    drawn = _drawn(board, width, rows=2)
    assert drawn.count("\n") == 6
    assert all(cell_len(line) <= width for line in drawn.split("\n"))
    assert drawn.replace("\n", "").isprintable()


def test_longest_ids_leave_room_for_the_rest() -> None:
    """An id of the greatest length is cut, and the status is still there."""
    job_id = "x" * 1024
    board = Board("http://127.0.0.1:8265", [job_id])
    board.see(make_snapshot(job_id, message="a message"), now=0.0)
    row = _drawn(board, 80, rows=1).splitlines()[-1]
    assert "… " in row
    assert "RUNNING" in row
    assert "a message" in row
