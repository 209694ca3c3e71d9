"""The page for people, as HTML. All that comes from outside is escaped here, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from html import escape
from typing import TypeVar
from urllib.parse import urlencode

from jobinfo_cache._version import __version__
from jobinfo_cache.statuspage.overview import (
    NO_ANSWER,
    ClusterRow,
    JobRow,
    Overview,
    pause,
    slices,
)

__all__ = ["render"]

_MORE = (1_000, 10_000)  # jobs that a link offers to show
_CLASSES = {"SUCCEEDED": "good", "FAILED": "bad", "RUNNING": "busy", "PENDING": "busy"}
_NOTHING = '<span class="nothing">–</span>'

_Row = TypeVar("_Row")

_TOP = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="page.css">
<script src="page.js" defer></script>
<noscript><meta http-equiv="refresh" content="5"></noscript>
</head>
<body>
<header>
<h1>jobinfo-cache <small>{version}</small></h1>
<form role="search">
<label for="q">Search</label>
<input type="search" id="q" name="q" value="{query}" maxlength="200" autocomplete="off"
 spellcheck="false" placeholder="job, cluster, status or error">
<input type="hidden" name="limit" value="{limit}">
<button>Search</button>
</form>
</header>
<p id="contact" role="status"></p>
<main>
"""
_BOTTOM = "</main>\n</body>\n</html>\n"


async def render(overview: Overview) -> list[str]:
    """The document, in parts; made some rows at a time, so that other threads have their turn."""
    return [
        _TOP.format(
            title=escape(_title(overview)),
            version=escape(__version__),
            query=escape(overview.query),
            limit=overview.limit,
        ),
        *_summary(overview),
        f"<h2>Clusters <small>{_found(overview.clusters, overview.clusters_found)}</small></h2>\n",
        *await _table(
            ("Cluster", "Dashboard", "Jobs", "Live", "State"), overview.clusters, _cluster
        ),
        f"<h2>Jobs <small>{_found(overview.jobs, overview.jobs_found)}</small></h2>\n",
        *await _table(
            ("Job", "Cluster", "Status", "Answer’s age", "Runs for", "Trouble"),
            overview.jobs,
            lambda row: _job(row, overview.at),
        ),
        _more(overview),
        _BOTTOM,
    ]


def _title(overview: Overview) -> str:
    failed = overview.statuses.get("FAILED", 0)
    return f"{failed} failed – jobinfo-cache" if failed else "jobinfo-cache"


def _summary(overview: Overview) -> Iterator[str]:
    moment = overview.at.strftime("%Y-%m-%d %H:%M:%S")
    yield f'<p class="moment">As of <time datetime="{moment}Z">{moment} UTC</time></p>\n'
    if overview.is_closed:
        yield '<p class="notice">The cache is closed: it polls and answers nothing any more.</p>\n'
    if overview.stats.capacity_exceeded:
        yield '<p class="notice">The cache is too small for its jobs: raise cache_size.</p>\n'
    yield '<dl class="figures">\n'
    for name, value in _figures(overview):
        yield f"<div><dt>{name}</dt><dd>{value}</dd></div>\n"
    yield "</dl>\n"
    yield '<nav aria-label="Jobs by status">\n'
    for status, count in overview.statuses.items():
        address = escape(_address(status, overview.limit))
        yield f'<a href="{address}">{_status(status)} {count:,}</a>\n'
    if overview.query:
        yield f'<a href="{escape(_address("", overview.limit))}">all jobs</a>\n'
    yield "</nav>\n"


def _figures(overview: Overview) -> Iterator[tuple[str, str]]:
    stats = overview.stats
    others = stats.reads_pending + stats.reads_stale + stats.reads_failed
    yield "live jobs", f"{stats.live:,} of {stats.entries:,}"
    yield "oldest live answer", _seconds(stats.oldest_age)
    yield "workers busy", f"{stats.workers_busy} of {stats.workers}"
    yield "clusters waiting", f"{stats.queued:,}"
    yield "polls", f"{stats.polls_ok:,}"
    yield "polls failed", f"{sum(stats.polls_failed.values()):,}"
    yield "reads", f"{stats.reads_hit + others:,}"
    yield "reads answered", f"{stats.reads_hit:,}"


async def _table(
    headings: Sequence[str], rows: Sequence[_Row], cells: Callable[[_Row], Sequence[str]]
) -> list[str]:
    """A table of which the first cell of each row is its heading."""
    # Narrow screens show rows as blocks; the roles keep them a table to a screen reader.
    heads = "".join(f'<th scope="col" role="columnheader">{each}</th>' for each in headings)
    parts = [
        '<table role="table">\n<thead role="rowgroup">',
        f'<tr role="row">{heads}</tr></thead>\n<tbody role="rowgroup">\n',
    ]
    for some in slices(rows):
        parts.append("".join(_row(headings, cells(row)) for row in some))
        await pause()
    return [*parts, "</tbody>\n</table>\n"]


def _row(headings: Sequence[str], cells: Sequence[str]) -> str:
    first, *others = cells
    data = "".join(
        f'<td role="cell" data-heading="{heading}">{cell}</td>'
        for heading, cell in zip(headings[1:], others, strict=True)
    )
    return f'<tr role="row"><th scope="row" role="rowheader">{first}</th>{data}</tr>\n'


def _cluster(row: ClusterRow) -> Sequence[str]:
    name = escape(f"{row.namespace}/{row.name}")
    return (
        name + _small(row.uid),
        escape(row.url),
        f"{row.jobs:,}",
        f"{row.live:,}",
        _state(row),
    )


def _state(row: ClusterRow) -> str:
    if row.failing is None:
        return '<span class="good">well</span>' if row.reached else "not reached yet"
    again = "" if row.retry_after is None else f"asked again in {_seconds(row.retry_after)}"
    return f'<span class="bad">{escape(row.failing)}</span> × {row.failures}{_small(again)}'


def _job(row: JobRow, now: datetime) -> Sequence[str]:
    other_id = row.submission_id if row.submission_id != row.job_id else ""
    return (
        escape(row.job_id) + _small(other_id or ""),
        escape(f"{row.namespace}/{row.cluster}"),
        NO_ANSWER if row.status is None else _status(row.status) + _small(_reason(row)),
        _age(row),
        _duration(row, now),
        _trouble(row, now),
    )


def _age(row: JobRow) -> str:
    """The age of an answer that may change, and whether reads refuse it though polls are well."""
    if row.age is None or row.terminal:
        return _NOTHING
    is_stale = not row.fresh and row.error is None
    return _seconds(row.age) + _small("too old" if is_stale else "")


def _reason(row: JobRow) -> str:
    code = row.driver_exit_code
    words = [row.error_type or "", "" if code is None else f"exit code {code}"]
    return ", ".join(word for word in words if word)


def _duration(row: JobRow, now: datetime) -> str:
    if row.start_time is None or (row.terminal and row.end_time is None):
        return _NOTHING
    return _seconds(((row.end_time or now) - row.start_time).total_seconds())


def _trouble(row: JobRow, now: datetime) -> str:
    if row.error is None or row.error_kind is None:
        return _NOTHING
    since = row.failing_since
    lasting = "" if since is None else f" for {_seconds((now - since).total_seconds())}"
    kind = escape(row.error_kind.replace("_", " "))
    return f'<span class="bad">{kind}</span> × {row.failures}{lasting}{_small(row.error)}'


def _more(overview: Overview) -> str:
    """A link to more of what was found, if there is more."""
    if overview.jobs_found <= overview.limit:
        return ""
    limit = next((more for more in _MORE if more > overview.limit), None)
    if limit is None:
        return "<p>Search to see the others.</p>\n"
    address = escape(_address(overview.query, limit))
    return f'<p><a href="{address}">Show up to {limit:,}</a></p>\n'


def _address(query: str, limit: int) -> str:
    return "?" + urlencode({"q": query, "limit": limit}, errors="replace")


def _found(rows: Sequence[object], found: int) -> str:
    return f"{found:,}" if len(rows) >= found else f"{len(rows):,} of {found:,}"


def _status(status: str) -> str:
    return f'<span class="status {_CLASSES.get(status, "other")}">{escape(status)}</span>'


def _small(text: str) -> str:
    return f"<small>{escape(text)}</small>" if text else ""


def _seconds(seconds: float | None) -> str:
    """A duration in at most two units."""
    if seconds is None:
        return _NOTHING
    if seconds < 10:
        return f"{max(seconds, 0.0):.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min"
    return f"{hours // 24} d {hours % 24} h"
