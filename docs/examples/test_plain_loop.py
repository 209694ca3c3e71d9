"""The plain loop, as a program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from plain_loop.loop import Key, Loop

from jobinfo_cache import Cluster, Settings


def test_loop_follows_all_jobs_to_their_ends() -> None:
    """It prints each job's true end, ends by itself, and says nothing else."""
    program = Path(__file__).parent / "plain_loop" / "loop.py"
    done = subprocess.run(
        [sys.executable, "-W", "error", str(program)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    ends = [
        f"cluster-{number}-{end.lower()} {end}"
        for number in (0, 1)
        for end in ("FAILED", "STOPPED", "SUCCEEDED")
    ]

    assert ("\n".join(ends) + "\n", "", 0) == (done.stdout, done.stderr, done.returncode)


def test_one_time_counts_for_each_key() -> None:
    """However often a job was looked at, one time to look again is left of it, or none."""
    cluster = Cluster("default", "cluster")
    often, last = Key(cluster, "often"), Key(cluster, "last")
    loop, looks = Loop(Settings()), []

    def look(key: Key) -> float | None:
        looks.append(key)
        if looks.count(often) == 4 and key == often:  # its end
            loop.add(last)
            return None
        if looks.count(last) == 2:
            loop.ended["last"] = "SUCCEEDED"
        return 0.0

    loop.reconcile = look  # type: ignore[method-assign]
    for _ in range(3):
        loop.add(often)
    loop.run(until_ended=1)

    assert looks == [often] * 4 + [last] * 2
