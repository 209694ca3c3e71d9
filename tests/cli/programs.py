"""The command line as a program of its own, for tests of signals and pipes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

LIMIT = 25.0  # seconds; only a failure uses them up


def environment(**variables: str) -> dict[str, str]:
    """This process's environment without what the command line reads, and with `variables`."""
    kept = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith(("JOBINFO_CACHE_", "RAY_AUTH_"))
    }
    return kept | {"PYTHONWARNINGS": "error"} | variables


@contextmanager
def program(*arguments: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """`python -m jobinfo_cache` with its streams as pipes; killed at the end if it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "jobinfo_cache", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**variables),
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def line_of(process: subprocess.Popen[str]) -> str:
    """The next line of its stdout; blocks until there is one, or the program has ended."""
    assert process.stdout is not None
    return process.stdout.readline()


def end_of(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Its exit code, and the rest of its stdout and stderr; waits for the end."""
    stdout, stderr = process.communicate(timeout=LIMIT)
    return process.returncode, stdout, stderr
