"""The examples of the tutorial and of the how-to pages print what the pages say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import run_page

pytestmark = pytest.mark.timeout(120)  # a page starts up to a dozen interpreters

DOCS = Path(__file__).resolve().parents[2] / "docs"

#: The pages whose examples are run as they stand, and how many those are.
PAGES = {
    "index.md": 1,
    "tutorial/first-controller.md": 7,
    "how-to/always-pending.md": 13,
    "how-to/reconcile-loop.md": 1,
    "how-to/shutdown.md": 3,
    "how-to/testing.md": 1,
    "how-to/tokens.md": 3,
    "how-to/tuning.md": 3,
}


@pytest.mark.parametrize("page", PAGES)
def test_examples_print_what_the_page_says(page: str) -> None:
    """Each program and each command of the page, run in order, prints what is under it."""
    assert run_page(DOCS / page) == PAGES[page]
