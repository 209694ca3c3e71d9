"""The works that the contestants are tried at."""

from __future__ import annotations

from tests.bench.fleet import FleetPlan
from tests.bench.measure import Cell

__all__ = ["CELLS", "CURVE", "full_cells"]

ALL = "abcde"


def cell(
    jobs: int, dashboards: int, fault: str, ill: int, contestants: str, seconds: float
) -> Cell:
    """A work under the name that the goals know it by."""
    trouble = f", {ill} {fault}" if fault else ""
    name = f"{jobs} jobs, {dashboards} dashboards{trouble}"
    return Cell(name, FleetPlan(dashboards, jobs, fault, ill), contestants, seconds)


#: The dozen that tell most.
CELLS = [
    cell(100, 10, "", 0, ALL, 5),
    cell(1000, 10, "", 0, ALL, 8),
    cell(1000, 10, "hang", 1, "bde", 30),
    cell(1000, 10, "refuse", 1, "de", 6),
    cell(1000, 10, "hang", 5, "bde", 8),
    cell(10_000, 100, "", 0, ALL, 9),
    Cell(
        "10000 jobs, 100 dashboards, restless",
        FleetPlan(100, 10_000, restless=True),
        "e",
        9,
    ),
    cell(10_000, 100, "hang", 10, "de", 30),
    cell(2000, 20, "hang", 10, "e", 9),
    cell(1000, 1000, "", 0, "de", 9),
    cell(30_000, 300, "", 0, "e", 12),
    Cell(
        "30000 jobs, 300 dashboards, restless",
        FleetPlan(300, 30_000, restless=True),
        "e",
        12,
    ),
    cell(2500, 2500, "", 0, "e", 12),
    Cell(
        "100 of 1000 jobs end, 10 dashboards, 1 hang",
        FleetPlan(10, 1000, "hang", 1),
        "e",
        18,
        ends=100,
        heals=True,
    ),
]

#: Jobs of the cost curve, in clusters of 100, until one core is not enough.
CURVE = [10, 1000, 10_000, 30_000, 60_000, 100_000, 150_000, 200_000]


def full_cells() -> list[Cell]:
    """All works with all contestants, the dozen among them, and a fleet as slow as Ray's."""
    works = [
        cell(jobs, dashboards, fault, ill, ALL, 36)
        for jobs in (100, 1000, 10_000)
        for dashboards in (10, 100)
        for fault, ill in (
            ("", 0),
            ("hang", dashboards // 10),
            ("refuse", dashboards // 10),
            ("hang", dashboards // 2),
        )
    ]
    names = {work.name for work in works}
    slow = FleetPlan(100, 1000, latency=0.0065, record_latency=0.00065)
    return [
        *works,
        *(each for each in CELLS if each.name not in names),
        Cell("1000 jobs, 100 dashboards as slow as Ray", slow, ALL, 18),
    ]
