"""Every proof that docs/explanation/consistency.md names is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "explanation" / "consistency.md"


def test_every_named_test_exists() -> None:
    """Each `path::name` of the page is a function or a class of that file."""
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE.read_text(encoding="utf-8"))
    missing = [f"{path}::{name}" for path, name in named if not _is_defined(ROOT / path, name)]

    assert len(named) > 60
    assert missing == []


def test_every_promise_has_a_proof() -> None:
    """No row of a table of promises is without one."""
    promises, _, _ = PAGE.read_text(encoding="utf-8").partition("## The lessons")
    rows = [row for row in promises.splitlines() if row.startswith("| ") and "proof |" not in row]

    assert [row for row in rows if "the machine" not in row and "::" not in row] == []


def _is_defined(path: Path, name: str) -> bool:
    if not path.is_file():
        return False
    text = path.read_text(encoding="utf-8")
    return re.search(rf"^\s*(def |class )?{name}\b", text, re.MULTILINE) is not None
