"""What docs/how-to/status-page.md says is so."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from jobinfo_cache import JobInfoCache
from jobinfo_cache.statuspage import serve
from jobinfo_cache.statuspage.overview import ClusterRow, JobRow
from tests.docs.pages import run_page
from tests.docs.tables import page, plain, table
from tests.unit.statuspage.visits import ask, json_of

TEXT = page("how-to/status-page")
PATH = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "status-page.md"


def test_examples_print_what_the_page_says() -> None:
    """The program of the page runs as it stands."""
    assert run_page(PATH) == 1


def _names(cell: str) -> set[str]:
    return set(re.findall(r"`(\w+)`", cell))


def test_every_field_of_the_json_is_there() -> None:
    """The table has all fields of the JSON, and those of its rows."""
    rows = {row["field"]: row["holds"] for row in table(TEXT, "## The JSON")}
    with JobInfoCache() as cache, serve(cache) as served:
        found = json_of(served)

    assert set().union(*map(_names, rows)) == set(found)
    assert _names(rows["`clusters`"]) == set(ClusterRow._fields)
    assert _names(rows["`jobs`"]) == set(JobRow._fields)


def test_every_path_is_there() -> None:
    """The paths of the table are served, and there are no others but the page's own parts."""
    paths = {
        plain(row["path"])
        for row in table(f"\n{TEXT}", "# Look at a cache in a browser, and probe it")
    }
    with JobInfoCache() as cache, serve(cache) as served:
        assert all(ask(served, path).status == 200 for path in paths)
        assert set(served._routes) == paths | {"/page.css", "/page.js"}


@pytest.mark.parametrize(("is_closed", "code"), [(False, 0), (True, 1)], ids=["well", "closed"])
def test_probe_in_the_container(is_closed: bool, code: int) -> None:
    """The command of the probe ends with 0 while all is well, and else with 1."""
    [program] = re.findall(r"- \|\n((?: {8}.*\n)+)", TEXT)
    with JobInfoCache() as cache, serve(cache) as served:
        if is_closed:
            cache.close()
        probe = textwrap.dedent(program).replace("8080", str(served.port))
        assert subprocess.run([sys.executable, "-c", probe], timeout=25).returncode == code
