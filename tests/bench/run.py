"""`make bench`: all figures in one run, the contestants in turns. Asserts nothing.

The environment variable FULL=1 runs all cells, and RAY_BIN adds the real Ray head in it.
`--only TEXT` runs the cells whose names contain it, and `--seconds S` shortens all of them.
"""

from __future__ import annotations

import argparse
import os
import platform
from dataclasses import replace
from typing import Any

from tests.bench.cells import CELLS, CURVE, full_cells
from tests.bench.contestants import NAMES
from tests.bench.fleet import FleetPlan
from tests.bench.goals import GOALS
from tests.bench.hits import hit_figures
from tests.bench.http_path import http_figures
from tests.bench.measure import Cell, Figures, measure
from tests.bench.ray_head import ray_figures
from tests.bench.report import read_number, say, table, write_json

INTERVAL = 3.0
COLUMNS = [
    ("first s", "first_answers"),
    ("never", "never"),
    ("age p50", "age_p50"),
    ("p99", "age_p99"),
    ("max", "age_max"),
    ("unknown", "unknown"),
    ("blocked s/pass", "blocked_a_pass"),
    ("req/s/dash.", "requests_a_second"),
    ("busiest 0.1 s", "busiest_tenth"),
    ("CPU", "cpu"),
    ("CPU s/refresh", "cpu_a_refresh"),
    ("MB", "rss_mb"),
    ("threads", "threads"),
    ("fleet CPU", "fleet_cpu"),
]
RATIOS = ["first_answers", "age_p99", "blocked_a_pass", "cpu_a_refresh", "rss_mb", "threads"]


def run_cell(cell: Cell) -> dict[str, Figures]:
    """All contestants of the cell, one after the other; prints their table."""
    results = {letter: measure(cell, letter) for letter in cell.contestants}
    rows = [
        [f"({letter}) {NAMES[letter]}", *(figures[key] for _, key in COLUMNS)]
        for letter, figures in results.items()
    ]
    table(cell.name, ["", *(name for name, _ in COLUMNS)], rows)
    if len(results) > 1:
        ratios = [[f"({letter})", *ratios_of(results, letter)] for letter in results]
        table("as multiples of this library's", ["", *RATIOS], ratios)
    for figures in results.values():
        if figures.get("recovery") or figures["reactions"]["ended"]:
            say(f"recovery {figures.get('recovery')}, reactions {figures['reactions']}")
    return results


def ratios_of(results: dict[str, Figures], letter: str) -> list[float | None]:
    ours, theirs = results["e"], results[letter]
    return [
        None if not ours[key] or theirs[key] is None else theirs[key] / ours[key] for key in RATIOS
    ]


def run_curve(seconds: float) -> list[Figures]:
    """One core, more and more jobs, until the answers get old; says what ran out."""
    curve: list[Figures] = []
    for jobs in CURVE:
        plan = FleetPlan(max(jobs // 100, 1), jobs)
        # The curve is about what comes after first contact, which is given time to end.
        warm_up = 6.0 + jobs / 8000
        cell = Cell(f"{jobs} jobs", plan, "e", seconds, pinned=True, warm_up=warm_up)
        figures = measure(cell, "e")
        curve.append({"jobs": jobs, **figures})
        if is_too_old(figures):
            break
    keys = ["jobs", "age_p99", "unknown", "cpu", "cpu_a_refresh", "rss_mb", "busy", "fleet_cpu"]
    table("cost curve: one core, clusters of 100", keys, [[f[key] for key in keys] for f in curve])
    enough = [figures["jobs"] for figures in curve if not is_too_old(figures)]
    limit = what_ran_out(curve[-1]) if is_too_old(curve[-1]) else "nothing yet"
    say(f"age p99 below 1.2 intervals up to {max(enough, default=0)} jobs; ran out: {limit}")
    return curve


def is_too_old(figures: Figures) -> bool:
    age = figures["age_p99"]
    return age is None or age >= 1.2 * INTERVAL or figures["unknown"] > 0.0


def what_ran_out(figures: Figures) -> str:
    if figures["fleet_cpu"] > 0.9:
        return "the fleet's CPU (the server, not the library)"
    if figures["cpu"] > 0.8:  # other processes want some of it
        return "the core"
    return "the workers" if figures["busy"] > 7 else "neither CPU nor workers"


def print_goals(results: dict[str, Any]) -> list[dict[str, Any]]:
    outcomes = []
    for goal in GOALS:
        try:
            value = goal.find(results)
        except (KeyError, TypeError):
            continue  # not measured in this run
        outcomes.append(
            {
                "figure": goal.figure,
                "work": goal.work,
                "measured": value,
                "goal": f"≤ {read_number(goal.bound)}",
                "met": "met" if goal.is_met(value) else "NOT MET",
            }
        )
    keys = ["figure", "work", "measured", "goal", "met"]
    table("goals", keys, [[outcome[key] for key in keys] for outcome in outcomes])
    return outcomes


def run(only: str, seconds: float | None) -> None:
    known = full_cells() if os.environ.get("FULL") else CELLS
    cells = [cell for cell in known if only in cell.name]
    results: dict[str, Any] = {
        "machine": f"{os.cpu_count()} cores, {platform.platform()}, {platform.python_version()}",
        "cells": {},
    }
    say(results["machine"])
    for cell in cells:
        shortened = cell if seconds is None else replace(cell, seconds=seconds)
        results["cells"][cell.name] = run_cell(shortened)
        write_json("bench", results)
    if not only:
        results["curve"] = run_curve(seconds or 5.0)
        results["hits"] = hit_figures()
        rows = [[name, *figures.values()] for name, figures in results["hits"].items()]
        table("hits", ["", "library µs", "literal µs", "ratio"], rows)
        results["http"] = http_figures()
        table("CPU of a request", [*results["http"]], [[*results["http"].values()]])
    if not only and os.environ.get("RAY_BIN"):
        results["ray"] = ray_figures()
    results["goals"] = print_goals(results)
    write_json("bench", results)
    say("\nAll figures are in build/bench/bench.json.")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.run", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--seconds", type=float)
    arguments = parser.parse_args()
    run(arguments.only, arguments.seconds)


if __name__ == "__main__":
    main()
