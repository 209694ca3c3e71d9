"""The reference controller of docs/examples on a real Ray head."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.ray.head import RayHead

pytestmark = pytest.mark.ray

PROGRAM = Path(__file__).parents[2] / "docs" / "examples" / "follow_real_head.py"


def test_rayjobs_end_as_the_real_jobs_do(ray_head: RayHead) -> None:
    """What succeeds is Complete, what fails is Failed; the program leaves no word on stderr."""
    python = os.environ.get("EXAMPLES_PYTHON", "")
    if not python:
        pytest.skip("EXAMPLES_PYTHON names no Python with the examples' packages")
    done = subprocess.run(
        [python, str(PROGRAM), ray_head.url],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "succeeds": ["Complete", "SUCCEEDED"],
        "fails": ["Failed", "FAILED"],
        "takes-time": ["Complete", "SUCCEEDED"],
    }
