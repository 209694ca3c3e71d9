"""The README says what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")])


def test_first_example_prints_what_is_said() -> None:
    """The first example, pasted into a file and run, prints the text under it."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", readme, re.DOTALL)
    output = re.search(r"```text\n(.*?)```", readme, re.DOTALL)
    assert code is not None
    assert output is not None
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code[1]],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert (output[1], "", 0) == (run.stdout, run.stderr, run.returncode)


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    """Each relative link of a page leads to a file that exists."""
    links = re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8"))
    missing = [
        link for link in links if "://" not in link and not (page.parent / link).resolve().exists()
    ]

    assert not missing
