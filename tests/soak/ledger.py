"""What a soak counts, and what it must not find."""

from __future__ import annotations

import logging
import threading
from collections import Counter

_SHOWN = 20


class Ledger:
    """Counts and violations. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Guarded by _lock:
        self.counts: Counter[str] = Counter()
        self.violations: list[str] = []
        self.slowest: dict[str, float] = {}

    def count(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1

    def took(self, what: str, seconds: float) -> None:
        """Note how long something took; the longest is kept."""
        with self._lock:
            self.slowest[what] = max(self.slowest.get(what, 0.0), seconds)

    def violation(self, text: str) -> None:
        """Something happened that must not."""
        with self._lock:
            self.violations.append(text)

    def check(self, holds: bool, text: str) -> None:
        if not holds:
            self.violation(text)

    def lines(self) -> list[str]:
        """The counts, the longest times, and the violations."""
        with self._lock:
            return [
                *(f"{what}: {count}" for what, count in sorted(self.counts.items())),
                *(
                    f"slowest {what}: {seconds * 1000:.1f} ms"
                    for what, seconds in self.slowest.items()
                ),
                *(f"VIOLATION: {text}" for text in self.violations[:_SHOWN]),
            ]


class LogWatch(logging.Handler):
    """Counts records by level, and looks for secrets in them."""

    def __init__(self, ledger: Ledger, secret: str) -> None:
        super().__init__(logging.DEBUG)
        self._ledger = ledger
        self._secret = secret
        self.setFormatter(logging.Formatter("%(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        text = f"{self.format(record)} {vars(record)}"
        if record.name.startswith("jobinfo_cache"):
            self._ledger.count(f"log records, {record.levelname}")
        elif record.levelno >= logging.WARNING:
            self._ledger.violation(f"{record.name} says {record.getMessage()}")
        if self._secret in text:
            self._ledger.violation(f"a secret in a log record: {record.name}")
