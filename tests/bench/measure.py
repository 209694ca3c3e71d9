"""Runs a trial beside a fleet of its own, and brings the figures of both together."""

from __future__ import annotations

import json
import random
import subprocess
import threading
import time
from dataclasses import dataclass
from typing import Any

from tests.bench.fleet import Fleet, FleetPlan
from tests.bench.trial import Trial, command, jobs_of

__all__ = ["Cell", "measure"]

Figures = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """A work, and who is tried at it."""

    name: str
    plan: FleetPlan
    contestants: str
    seconds: float
    batching: bool = True
    pinned: bool = False  # the contestant on one core, the fleet on another
    ends: int = 0  # jobs that end while it is measured
    heals: bool = False
    warm_up: float = 6.0


def measure(cell: Cell, contestant: str) -> Figures:
    """The contestant's figures at the cell's work; blocks for its seconds and some more."""
    with Fleet(cell.plan, core=1 if cell.pinned else None) as fleet:
        trial = Trial(
            contestant,
            fleet.urls,
            cell.plan.jobs,
            cell.plan.well,
            cell.seconds,
            control=fleet.control,
            batching=cell.batching,
            core=0 if cell.pinned else None,
            heals=cell.heals,
            warm_up=cell.warm_up,
        )
        began = time.monotonic()
        process = subprocess.Popen(command(trial), stdout=subprocess.PIPE, text=True)
        ender = Ender(fleet, cell, began + trial.warm_up + 1.0)
        ender.start()
        try:
            pause_until(began + trial.warm_up + 1.0)  # a second for the start of the process
            before = fleet.ask("/counters")
            pause_until(began + trial.warm_up + cell.seconds)
            after = fleet.ask("/counters")
            output, _ = process.communicate(timeout=cell.seconds + 120)
        finally:
            process.kill()
        figures: Figures = json.loads(output)
        ender.join()
    figures["reactions"] = reactions(ender.ended_at, figures.pop("ended_at", {}))
    return {**figures, **seen_by_fleet(cell.plan, before, after, figures)}


class Ender(threading.Thread):
    """Lets jobs of the dashboards that are well end, one after the other, in random order."""

    def __init__(self, fleet: Fleet, cell: Cell, starts: float) -> None:
        super().__init__(daemon=True)
        self._fleet = fleet
        self._cell = cell
        self._starts = starts
        self.ended_at: dict[str, float] = {}

    def run(self) -> None:
        plan = self._cell.plan
        jobs = [job for job in jobs_of(plan.jobs, plan.dashboards) if job.dashboard < plan.well]
        ended = random.sample(jobs, self._cell.ends)
        # Leave the last of them time to be noticed.
        step = max(self._cell.seconds - 6.0, 0.0) / max(len(ended), 1)
        for number, job in enumerate(ended):
            pause_until(self._starts + number * step)
            path = f"/end?dashboard={job.dashboard}&job_id={job.job_id}"
            self.ended_at[job.job_id] = self._fleet.ask(path)


def reactions(ended_at: dict[str, float], noticed_at: dict[str, float]) -> Figures:
    """Seconds from the end of a job to the call that tells of it."""
    took = sorted(noticed_at[job] - at for job, at in ended_at.items() if job in noticed_at)
    return {
        "ended": len(ended_at),
        "noticed": len(took),
        "p99": took[int(len(took) * 0.99)] if took else None,
    }


def seen_by_fleet(plan: FleetPlan, before: Figures, after: Figures, figures: Figures) -> Figures:
    """Rates over the time between the two looks at the fleet's counters."""
    seconds = after["seen_at"] - before["seen_at"]
    old, new = before["dashboards"], after["dashboards"]
    well = [difference(*pair) for pair in zip(old[: plan.well], new[: plan.well], strict=True)]
    requests, lists = sum(r for r, _ in well), sum(count for _, count in well)
    refreshes = (requests - lists) + lists * plan.jobs / plan.dashboards
    ill = new[plan.well :]
    return {
        "requests_a_second": requests / seconds / max(plan.well, 1),
        "lists": lists / max(requests, 1),
        "refreshes_a_second": refreshes / seconds,
        "cpu_a_refresh": figures["cpu"] * seconds / refreshes if refreshes else None,
        "connections": sum(each["connections"] for each in new),
        "busiest_tenth": busiest_tenth(new[: plan.well], before["seen_at"], after["seen_at"]),
        "ill_tries": sum(each["requests"] for each in ill) / max(len(ill), 1),
        "ill_in_flight": max((each["most_in_flight"] for each in ill), default=0),
        "fleet_cpu": (after["cpu"] - before["cpu"]) / seconds,
    }


def difference(old: Figures, new: Figures) -> tuple[int, int]:
    return new["requests"] - old["requests"], new["lists"] - old["lists"]


def busiest_tenth(dashboards: list[Figures], since: float, until: float) -> float:
    """The most requests that a tenth of a second had, as a multiple of the mean."""
    tenths = [0] * (int(until * 10) - int(since * 10))
    for each in dashboards:
        for tenth, count in each["tenths"].items():
            place = int(tenth) - int(since * 10)
            if 0 <= place < len(tenths):
                tenths[place] += count
    return max(tenths, default=0) * len(tenths) / max(sum(tenths), 1)


def pause_until(moment: float) -> None:
    time.sleep(max(moment - time.monotonic(), 0.0))
