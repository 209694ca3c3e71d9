"""What a smoke run found, and whether that is good."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jobinfo_cache.commands.exits import Exit
from jobinfo_cache.commands.pulse import Reading

__all__ = ["Summary"]


@dataclass(frozen=True)
class Summary:
    """The figures of a run (durations in seconds), and all that is wrong with them.

    `first` is the read that starts the threads; of the others one is the `slowest`. `stalled` is
    how long the machine let nothing of the program run during that.
    `unfinished` are jobs that had not ended when the time was up.
    """

    statuses: Mapping[str, int]
    unfinished: int
    first: Reading | None
    slowest: Reading | None
    stalled: float
    reads: int
    requests: int
    failures: int
    oldest_age: float | None
    threads_left: list[str]
    duration: float
    problems: list[str]

    @property
    def exit(self) -> Exit:
        if self.problems:
            return Exit.FAILED
        return Exit.UNAVAILABLE if self.unfinished else Exit.OK

    def text(self) -> str:
        """For people: one figure a line, then the verdict."""
        jobs = [f"{number} {status}" for status, number in sorted(self.statuses.items())]
        if self.unfinished:
            jobs.append(f"{self.unfinished} not ended in time")
        rows = [
            ("jobs", ", ".join(jobs)),
            ("slowest read", self._slowest_text()),
            ("first read", f"{_milliseconds(self.first)}, it starts the threads"),
            ("reads", str(self.reads)),
            ("requests", str(self.requests)),
            ("failures seen", str(self.failures)),
            ("oldest answer", "none" if self.oldest_age is None else f"{self.oldest_age:.2f} s"),
            ("threads left", ", ".join(self.threads_left) or "none"),
            ("took", f"{self.duration:.1f} s"),
        ]
        lines = [f"{name:<14} {value}" for name, value in rows]
        lines += [f"{'wrong':<14} {problem}" for problem in self.problems]
        verdict = {Exit.OK: "ok", Exit.FAILED: "FAILED"}.get(self.exit, "timed out")
        return "\n".join([*lines, f"{'smoke':<14} {verdict}"])

    def fields(self) -> dict[str, Any]:
        """The same, for JSON."""
        slowest = self.slowest
        return {
            "ok": self.exit is Exit.OK,
            "problems": self.problems,
            "jobs": dict(self.statuses),
            "unfinished": self.unfinished,
            "slowest_read": None if slowest is None else round(slowest.wall, 6),
            "slowest_read_cpu": None if slowest is None else round(slowest.cpu, 6),
            "first_read": None if self.first is None else round(self.first.wall, 6),
            "slowest_read_stalled": round(self.stalled, 6),
            "reads": self.reads,
            "requests": self.requests,
            "failures": self.failures,
            "oldest_answer": None if self.oldest_age is None else round(self.oldest_age, 3),
            "threads_left": self.threads_left,
            "duration": round(self.duration, 3),
        }

    def _slowest_text(self) -> str:
        text = _milliseconds(self.slowest)
        if self.stalled:
            text += f", the machine standing still for {self.stalled * 1000:.0f} ms of it"
        return text


def _milliseconds(reading: Reading | None) -> str:
    if reading is None:
        return "none"
    return f"{reading.wall * 1000:.2f} ms (CPU {reading.cpu * 1000:.2f} ms)"
