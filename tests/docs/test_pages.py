"""The examples of the tutorial and of the how-to pages print what the pages say."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from jobinfo_cache import Settings
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


WRONG = {
    "program prints something else": "```python\nprint(1)\n```\n\n```text\n2\n```\n",
    "program prints more": "```python\nprint(1)\n```\n",
    "program raises": "```python\nraise ValueError\n```\n",
    "program ends the interpreter": "```python\nexit(0)\n```\n\n```text\n1\n```\n",
    "program warns": "```python\nimport warnings\n\nwarnings.warn('old')\n```\n",
    "command prints something else": "```console\n$ python -c 'print(1)'\n2\n```\n",
    "command fails": "`a.py`:\n\n```python\n1 / 0\n```\n\n```console\n$ python a.py\n```\n",
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_example_is_noticed(text: str, tmp_path: Path) -> None:
    """A page that does not print what it says does not pass."""
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n{text}", encoding="utf-8")
    with pytest.raises(AssertionError, match="shall print"):
        run_page(page)


def test_an_ellipsis_stands_for_what_differs(tmp_path: Path) -> None:
    """It matches within its line, and alone in a line any lines."""
    page = tmp_path / "page.md"
    page.write_text(
        "# Page\n\n```python\nfor number in range(5):\n    print(number, 'of 5')\n```\n\n"
        "```text\n0 … 5\n…\n4 of …\n```\n",
        encoding="utf-8",
    )
    assert run_page(page) == 1


def test_tuning_has_every_setting() -> None:
    """No setting is missing on the page that says which one to turn."""
    text = (DOCS / "how-to" / "tuning.md").read_text(encoding="utf-8")

    assert [field.name for field in fields(Settings) if f"`{field.name}" not in text] == []
