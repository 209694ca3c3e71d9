"""A page of watched jobs, drawn with rich (extra `rich`)."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Group
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from jobinfo_cache.commands.board import Page, Row

__all__ = ["LINES_AROUND", "draw"]

LINES_AROUND = 6  # beside the rows, with one for what stands under the page

_STYLES = {
    "RUNNING": "cyan",
    "SUCCEEDED": "green",
    "FAILED": "bold red",
    "NOT FOUND": "bold red",
    "STOPPED": "yellow",
}
_BAR = 20  # columns
_SPACE = (0, 2, 0, 0)


def draw(page: Page, width: int) -> Group:
    """The page for a terminal of that many columns; each row is one line."""
    # All that came from elsewhere is in a `Text`: it is never read as markup.
    return Group(_head(page), _trouble(page), _progress(page), _table(page, width), *_foot(page))


def _head(page: Page) -> Text:
    style = "bold yellow" if page.trouble else "green"
    return _line((page.url, "bold"), "  ", (page.health, style))


def _trouble(page: Page) -> Text:
    return _line((page.trouble, "yellow"))


def _progress(page: Page) -> Table:
    jobs = sum(page.statuses.values())
    grid = Table.grid(expand=True, padding=_SPACE)
    grid.add_column(width=_BAR)
    grid.add_column(ratio=1)
    text = _line(f"{page.ended} of {jobs} ended: ", *_parts(page.statuses))
    bar = ProgressBar(jobs, page.ended, _BAR, complete_style="green", finished_style="green")
    grid.add_row(bar, text)
    return grid


def _table(page: Page, width: int) -> Table:
    table = Table(box=None, expand=True, pad_edge=False, padding=_SPACE, header_style="bold")
    table.add_column("JOB", no_wrap=True, max_width=max(12, width * 2 // 5))
    table.add_column("STATUS", no_wrap=True)
    table.add_column("DURATION", no_wrap=True, justify="right")
    table.add_column("AGE", no_wrap=True, justify="right")
    table.add_column("FAILS", no_wrap=True, justify="right")
    table.add_column("MESSAGE", no_wrap=True, ratio=1, min_width=10)
    for row in page.rows:
        table.add_row(*_cells(row))
    return table


def _cells(row: Row) -> list[Text]:
    trouble = "yellow" if row.is_failing else ""
    return [
        Text(row.job_id),
        Text(row.status, _STYLES.get(row.status, "")),
        Text(row.duration),
        Text(row.age, trouble),
        Text(row.failures, trouble),
        Text(row.message, trouble),
    ]


def _foot(page: Page) -> list[Text]:
    hidden = sum(page.hidden.values())
    return [_line((f"{hidden} more: ", "bold"), *_parts(page.hidden))] if hidden else []


def _parts(statuses: Mapping[str, int]) -> list[str | tuple[str, str]]:
    """The numbers of the statuses, each in its colour, with commas between."""
    parts: list[str | tuple[str, str]] = []
    for status, number in statuses.items():
        parts += [(f"{number} {status}", _STYLES.get(status, "")), ", "]
    return parts[:-1]


def _line(*parts: str | tuple[str, str]) -> Text:
    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")
