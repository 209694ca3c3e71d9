"""Tables on the terminal, and the same figures as JSON in `build/bench`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["read_number", "say", "table", "write_json"]

PLACE = Path("build/bench")


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print it; floats are shortened, None is a dash."""
    texts = [[*columns], *([read_number(value) for value in row] for row in rows)]
    widths = [max(len(row[place]) for row in texts) for place in range(len(columns))]
    say(f"\n{title}")
    for number, row in enumerate(texts):
        say("  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)))
        if number == 0:
            say("  ".join("-" * width for width in widths))


def read_number(value: object) -> str:
    """The value in as few characters as tell what it is."""
    if value is None:
        return "-"
    if not isinstance(value, float):
        return str(value)
    if value == 0.0 or abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}"


def write_json(name: str, figures: Any) -> None:
    PLACE.mkdir(parents=True, exist_ok=True)
    (PLACE / f"{name}.json").write_text(json.dumps(figures, indent=1) + "\n")
