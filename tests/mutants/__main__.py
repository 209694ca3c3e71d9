"""`python -m tests.mutants [TEXT]`: break a copy of the library, and see that a test notices.

Each mutation of the table is made in a copy of the package, in a temporary directory, and its
tests run against that. TEXT: only mutations whose file or description contains it. Exits with 1
if one survives, or if a text that was to be replaced is not there (any more) exactly once.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.mutants.table import MACHINE, MUTATIONS, Mutation

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 300.0  # seconds; a mutant that hangs is found out, too


def main() -> int:
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    chosen = [each for each in MUTATIONS if wanted in each.file or wanted in each.notices]
    lost = [each for each in chosen if _source(each).count(each.old) != 1]
    for each in lost:
        print(f"NOT THERE  {each.file}: {each.old!r}", file=sys.stderr)  # noqa: T201
    if lost:
        return 1
    for each in chosen:
        compile(_mutated(each), each.file, "exec")  # a mutant that cannot be run proves nothing
    if _is_killed(None):
        print("the tests fail without a mutation", file=sys.stderr)  # noqa: T201
        return 1
    survivors = [each for each in chosen if not _is_killed(each)]
    print(f"{len(chosen)} mutants, {len(survivors)} survived")  # noqa: T201
    return 1 if survivors or not chosen else 0


def _source(mutation: Mutation) -> str:
    return (ROOT / "jobinfo_cache" / mutation.file).read_text(encoding="utf-8")


def _mutated(mutation: Mutation) -> str:
    return _source(mutation).replace(mutation.old, mutation.new)


def _is_killed(mutation: Mutation | None) -> bool:
    """True if a test fails on a copy with that mutation; None: on a copy as it is."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory)
        shutil.copytree(ROOT / "jobinfo_cache", copy / "jobinfo_cache")
        shutil.copy(ROOT / "setup.cfg", copy)
        (copy / "tests").symlink_to(ROOT / "tests")
        if mutation is None:
            return _fails(MACHINE, copy)
        (copy / "jobinfo_cache" / mutation.file).write_text(_mutated(mutation), encoding="utf-8")
        is_killed = any(_fails(tests, copy) for tests in mutation.tests.split())
    verdict = "killed  " if is_killed else "SURVIVED"
    print(  # noqa: T201
        f"{verdict} {time.monotonic() - began:5.1f} s  {mutation.file}: {mutation.notices}",
        flush=True,
    )
    return is_killed


def _fails(tests: str, directory: Path) -> bool:
    """True if a test fails; raises RuntimeError if pytest could not run them."""
    command = [sys.executable, "-m", "pytest", "-xq", "-p", "no:cacheprovider", tests]
    environment = os.environ | {"HYPOTHESIS_PROFILE": "mutants", "PYTHONPATH": str(directory)}
    try:
        run = subprocess.run(
            command, cwd=directory, env=environment, capture_output=True, timeout=TIMEOUT
        )
    except subprocess.TimeoutExpired:
        return True
    if run.returncode not in (0, 1):
        raise RuntimeError(run.stdout.decode() + run.stderr.decode())
    return run.returncode == 1


if __name__ == "__main__":
    sys.exit(main())
