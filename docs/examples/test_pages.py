"""The pages that lead to an operator: their commands, run as they stand, in the sandbox."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
HOW_TO = HERE.parent / "how-to"
LIMIT = 30  # seconds to end in
Wait = Callable[..., None]


def commands_of(page: str) -> list[str]:
    """The commands of the page's console blocks that start a program of this directory."""
    text = (HOW_TO / page).read_text(encoding="utf-8")
    lines = re.findall(r"^\$ (.*)$", text, re.MULTILINE)
    return [line for line in lines if line.startswith(("python sandbox", "kopf ", "python -m r"))]


def output_of(page: str) -> list[str]:
    """What the page says that the sandbox prints."""
    text = (HOW_TO / page).read_text(encoding="utf-8")
    block = re.search(r"^\$ python sandbox.py.*\n((?:[^$`].*\n)+)", text, re.MULTILINE)
    assert block is not None
    return block[1].splitlines()


def printed_in(log: Path) -> list[str]:
    """The lines of the sandbox, with the machine's own paths left out."""
    return re.sub(r"=.*/", "=…/", log.read_text(encoding="utf-8")).splitlines()


@contextlib.contextmanager
def started(command: str, log: Path) -> Iterator[None]:
    """A program of this directory until the block ends; then Ctrl-C, after which it ends well."""
    name, *arguments = shlex.split(command)
    with log.open("wb") as output:
        process = subprocess.Popen(
            [Path(sys.executable).with_name(name), *arguments],
            cwd=HERE,
            env={**os.environ, "KUBECONFIG": str(HERE / "sandbox.kubeconfig")},
            stdout=output,
            stderr=output,
        )
        try:
            yield
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(LIMIT) == 0, log.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ["kopf-operator.md", "plain-client-operator.md"])
def test_commands_lead_to_what_the_page_shows(page: str, eventually: Wait, tmp_path: Path) -> None:
    """The sandbox and the operator, started as the page says, print what it says."""
    start_sandbox, start_operator, *_ = commands_of(page)
    wanted = [line for line in output_of(page) if line != "…"]
    sandbox, operator = tmp_path / "sandbox.log", tmp_path / "operator.log"
    with started(start_sandbox, sandbox):
        eventually(lambda: "ready" in sandbox.read_text(encoding="utf-8"))
        with started(start_operator, operator):
            eventually(lambda: set(wanted) <= set(printed_in(sandbox)))
    printed = printed_in(sandbox)

    assert printed[0] == wanted[0]
    assert "…" in output_of(page) or sorted(printed) == sorted(wanted)
    assert "Traceback" not in operator.read_text(encoding="utf-8")
    assert not (HERE / "sandbox.kubeconfig").exists()


def test_sandbox_without_a_kind_says_what_it_is_for() -> None:
    """A command line that lacks something ends with the program's own words."""
    program = [sys.executable, "sandbox.py"]
    done = subprocess.run(program, cwd=HERE, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "python sandbox.py KIND" in done.stderr


@pytest.mark.parametrize(
    ("page", "program"), [("kopf-operator.md", "kopf_operator/operator_with_timer.py")]
)
def test_program_in_the_page_is_the_one_that_runs(page: str, program: str) -> None:
    """What a reader copies from the page is the file that the tests run."""
    text = (HOW_TO / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)

    assert (HERE / program).read_text(encoding="utf-8") in blocks
