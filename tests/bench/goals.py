"""What is to be reached, and whether it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["GOALS", "Goal"]

Results = dict[str, Any]
INTERVAL = 3.0
THOUSAND = "1000 jobs, 10 dashboards"
TEN_THOUSAND = "10000 jobs, 100 dashboards"


class Goal(NamedTuple):
    """A figure, its upper bound, and how to find it; KeyError: it was not measured."""

    figure: str
    work: str
    bound: float
    find: Callable[[Results], float]

    def is_met(self, value: float) -> bool:
        return value <= self.bound


def of(results: Results, work: str, figure: str, contestant: str = "e") -> float:
    value = results["cells"][work][contestant][figure]
    return float("inf") if value is None else float(value)


def age(work: str, bound: float) -> Goal:
    return Goal("age p99, intervals", work, bound, lambda r: of(r, work, "age_p99") / INTERVAL)


def dead_ratio(results: Results) -> float:
    hang = f"{THOUSAND}, 1 hang"
    return of(results, hang, "ill_tries") / of(results, hang, "ill_tries", "d")


def cpu_ratio(results: Results) -> float:
    ours = of(results, TEN_THOUSAND, "cpu_a_refresh")
    return ours / of(results, TEN_THOUSAND, "cpu_a_refresh", "d")


def requests_an_interval(results: Results) -> float:
    """Per dashboard and interval, for what jitter adds: its mean shortens an interval by 5 %."""
    return of(results, THOUSAND, "requests_a_second") * INTERVAL * 0.95


REACTION = "100 of 1000 jobs end, 10 dashboards, 1 hang"

GOALS = [
    age(THOUSAND, 1.01),
    age(TEN_THOUSAND, 1.01),
    age(f"{TEN_THOUSAND}, 10 hang", 1.02),
    Goal(
        "jobs without an answer",
        f"{TEN_THOUSAND}, 10 hang",
        0,
        lambda r: of(r, f"{TEN_THOUSAND}, 10 hang", "never"),
    ),
    age("2000 jobs, 20 dashboards, 10 hang", 1.05),
    Goal("first answers, s", TEN_THOUSAND, 0.6, lambda r: of(r, TEN_THOUSAND, "first_answers")),
    Goal(
        "first answers, of those when all are well",
        f"{TEN_THOUSAND}, 10 hang",
        2.0,
        lambda r: (
            of(r, f"{TEN_THOUSAND}, 10 hang", "first_answers")
            / of(r, TEN_THOUSAND, "first_answers")
        ),
    ),
    Goal("CPU, of a core", TEN_THOUSAND, 0.12, lambda r: of(r, TEN_THOUSAND, "cpu")),
    Goal("CPU a refresh, of (d)", TEN_THOUSAND, 0.02, cpu_ratio),
    Goal(
        "CPU, of a core",
        "30000 jobs, 300 dashboards",
        0.5,
        lambda r: of(r, "30000 jobs, 300 dashboards", "cpu"),
    ),
    Goal(
        "CPU, of a core",
        "2500 jobs, 2500 dashboards",
        0.5,
        lambda r: of(r, "2500 jobs, 2500 dashboards", "cpu"),
    ),
    Goal("threads", TEN_THOUSAND, 11, lambda r: of(r, TEN_THOUSAND, "threads")),
    Goal("peak memory, MB", TEN_THOUSAND, 70, lambda r: of(r, TEN_THOUSAND, "rss_mb")),
    Goal("requests a dashboard and interval", THOUSAND, 1.1, requests_an_interval),
    Goal("connections", TEN_THOUSAND, 100, lambda r: of(r, TEN_THOUSAND, "connections")),
    Goal(
        "requests in flight at a dead dashboard",
        f"{THOUSAND}, 1 hang",
        1,
        lambda r: of(r, f"{THOUSAND}, 1 hang", "ill_in_flight"),
    ),
    Goal("tries at a dead dashboard, of (d)", f"{THOUSAND}, 1 hang", 0.05, dead_ratio),
    Goal(
        "recovery, of one interval + current delay",
        REACTION,
        1.0,
        lambda r: r["cells"][REACTION]["e"]["recovery"]["share"],
    ),
    Goal(
        "end of a job to on_change p99, intervals",
        REACTION,
        1.02,
        lambda r: r["cells"][REACTION]["e"]["reactions"]["p99"] / INTERVAL,
    ),
    Goal("CPU of a request", "of Session.get", 0.45, lambda r: r["http"]["ratio"]),
    Goal("a hit", "1 thread", 0.35, lambda r: r["hits"]["hit, 1 threads"]["ratio"]),
    Goal("a hit", "16 threads", 0.15, lambda r: r["hits"]["hit, 16 threads"]["ratio"]),
    Goal("a hit, p99", "8 busy", 0.05, lambda r: r["hits"]["hit p99, 8 busy workers"]["ratio"]),
]
