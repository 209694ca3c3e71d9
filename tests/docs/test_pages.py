"""The examples of the tutorial and of the how-to pages print what the pages say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import run_page

DOCS = Path(__file__).resolve().parents[2] / "docs"

#: The pages whose examples are run as they stand, and how many those are.
PAGES = {
    "tutorial/first-controller.md": 7,
}


@pytest.mark.parametrize("page", PAGES)
def test_examples_print_what_the_page_says(page: str) -> None:
    """Each program and each command of the page, run in order, prints what is under it."""
    assert run_page(DOCS / page) == PAGES[page]
