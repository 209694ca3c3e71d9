"""Every proof that docs/explanation/security.md names is there, and its example runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.docs.test_consistency import _is_defined

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "explanation" / "security.md").read_text(encoding="utf-8")


def test_every_named_test_exists() -> None:
    """Each `path::name` of the page is a function of that file."""
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT)
    missing = [f"{path}::{name}" for path, name in named if not _is_defined(ROOT / path, name)]

    assert len(named) > 50
    assert missing == []


def test_every_line_has_a_proof() -> None:
    """No row of a table is without a test."""
    rows = [row for row in TEXT.splitlines() if row.startswith("| ") and "| test |" not in row]

    assert len(rows) > 40
    assert [row for row in rows if "::" not in row] == []


def test_the_example_runs() -> None:
    """It prints what its comments say."""
    code = re.search(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert code is not None
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code[1]],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (run.stderr, run.returncode) == ("", 0)
    failure, status = run.stdout.splitlines()
    assert failure.endswith("no complete answer within 0.5 s")
    assert status == "RUNNING"
