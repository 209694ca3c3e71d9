"""Runs the soak, prints its figures, and ends with 1 if anything was not as it must be."""

from __future__ import annotations

import argparse
import gc
import logging
import sys
import tempfile
import threading
import time
from pathlib import Path

from jobinfo_cache import JobInfoCache, Settings, Stats
from tests.soak.chaos import Chaos
from tests.soak.clusters import SECRET, Site
from tests.soak.controllers import Controller, Slot
from tests.soak.fleet import Fleet
from tests.soak.footing import Footing, footing
from tests.soak.ledger import Ledger, LogWatch
from tests.soak.storm import storm

_DASHBOARDS = 20
_JOBS = 500
_CONTROLLERS = 5
_DRAIN = 120.0  # seconds that the last jobs may take when all is well again
_MEMORY = 20.0  # MB that the process may have grown by since it was warm; a guess
_SETTINGS = Settings(
    workers=8,
    poll_interval=1.0,
    max_backoff=5.0,
    max_age=10.0,
    expiry=15.0,  # short, so that the number of entries is level once warm
    cleanup_interval=5.0,
)


def main() -> int:
    """Run for so many minutes, beside a storm at the beginning."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--storm", type=int, default=10_000, help="requests of the storm")
    arguments = parser.parse_args()
    ledger = Ledger()
    watch = LogWatch(ledger, SECRET)
    logging.getLogger().addHandler(watch)
    logging.getLogger().setLevel(logging.DEBUG)
    with Fleet(_DASHBOARDS) as fleet:
        before = footing()
        say(f"before: {before}")
        storm(fleet, arguments.storm, ledger)
        after_storm = footing()
        say(f"after the storm: {after_storm}")
        compare(before, after_storm, ledger, "storm")
        warm, stats = soak(fleet, arguments.minutes * 60, arguments.seed, ledger)
        gc.collect()
        after = footing()
        say(f"after: {after}")
        compare(before, after, ledger, "soak")
        ledger.check(
            after.memory - warm.memory < _MEMORY,
            f"memory grew from {warm.memory:.1f} to {after.memory:.1f} MB",
        )
    say(str(stats))
    say("\n".join(ledger.lines()))
    say("FAILED" if ledger.violations else "passed")
    return 1 if ledger.violations else 0


def soak(fleet: Fleet, seconds: float, seed: int, ledger: Ledger) -> tuple[Footing, Stats]:
    """Chaos for so long, then a drain; returns the footing once warm, and the last figures."""
    with tempfile.TemporaryDirectory() as directory:
        cache = JobInfoCache(_SETTINGS, on_change=lambda _: ledger.count("calls of on_change"))
        sites = [Site(fleet, number, cache, Path(directory)) for number in range(_DASHBOARDS)]
        slots = [Slot(sites[number % _DASHBOARDS], number, ledger) for number in range(_JOBS)]
        controllers = [
            Controller(slots[number::_CONTROLLERS], seed + number, ledger)
            for number in range(_CONTROLLERS)
        ]
        chaos = Chaos(fleet, sites, cache, ledger, seed)
        for controller in controllers:
            controller.start()
        warm = rage(chaos, seconds, ledger)
        chaos.end()
        drain(controllers, slots, ledger)
        stats = cache.stats()
        ledger.check(cache.close(), "the cache did not close in time")
        return warm, stats


def rage(chaos: Chaos, seconds: float, ledger: Ledger) -> Footing:
    """Let chaos go on for so long, with bounded threads and sockets all the time."""
    began = time.monotonic()
    warm = None
    most_sockets = most_threads = 0
    most_memory = 0.0
    while (passed := time.monotonic() - began) < seconds:
        chaos.tick()
        now = footing()
        most_sockets = max(most_sockets, now.sockets)
        most_threads = max(most_threads, now.threads)
        most_memory = max(most_memory, now.memory)
        if warm is None and passed > min(seconds / 4, 300.0):
            warm = now
            say(f"warm after {passed:.0f} s: {warm}")
    say(f"at most: {most_threads} threads, {most_sockets} sockets, {most_memory:.1f} MB")
    bound = _SETTINGS.workers + _CONTROLLERS + _DASHBOARDS + 1  # the last one leads to the fleet
    ledger.check(most_sockets <= bound, f"{most_sockets} sockets were open; {bound} are allowed")
    allowed = _SETTINGS.workers + 3 + _CONTROLLERS + 1
    # A cancelled timer's thread lives on for a moment.
    ledger.check(most_threads <= allowed + 2, f"{most_threads} threads; {allowed} are allowed")
    return warm or footing()


def drain(controllers: list[Controller], slots: list[Slot], ledger: Ledger) -> None:
    """Wait until each job has ended, as the dashboards say."""
    began = time.monotonic()
    for controller in controllers:
        controller.draining.set()
    for controller in controllers:
        controller.join(max(0.0, began + _DRAIN - time.monotonic()))
        controller.given_up.set()
        controller.join()
    say(f"drained in {time.monotonic() - began:.1f} s")
    left = [slot.job_id for slot in slots if not slot.is_over]
    ledger.check(not left, f"{len(left)} jobs had no end: {left[:10]}")


def compare(before: Footing, after: Footing, ledger: Ledger, what: str) -> None:
    """Threads, files and sockets must be back to what they were."""
    gc.collect()
    pause = threading.Event()
    for _ in range(100):  # a timer's thread ends a moment after it was cancelled
        if after[:3] == before[:3]:
            return
        pause.wait(0.02)
        after = footing()
    ledger.violation(f"the {what} began with {before} and left {after}")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
