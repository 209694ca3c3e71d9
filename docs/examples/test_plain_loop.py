"""The plain loop, as a program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


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
