"""The tables of a page, for tests that compare them with the code."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"

_RULE = re.compile(r"\|(\s*:?-+:?\s*\|)+")


def page(name: str) -> str:
    """The text of `docs/<name>.md`."""
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def table(text: str, heading: str) -> list[dict[str, str]]:
    """The rows of the first table under a heading, each by its columns' names."""
    _, found, section = text.partition(f"\n{heading}\n")
    if not found:
        raise ValueError(f"there is no heading {heading!r}")
    lines = section.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("|"))
    names = _cells(lines[start])
    if not _RULE.fullmatch(lines[start + 1].strip()):
        raise ValueError(f"under {heading!r} is no table: {lines[start + 1]!r}")
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append(dict(zip(names, _cells(line), strict=True)))
    return rows


def plain(cell: str) -> str:
    """A cell without its backticks."""
    return cell.replace("`", "")


def codes(cell: str) -> list[str]:
    """What stands between backticks in a cell."""
    return re.findall(r"`([^`]+)`", cell)


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", inner)]
