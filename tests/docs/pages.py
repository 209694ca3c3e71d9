"""Runs the examples of a page, as its reader would, and compares what they print.

What a page may hold:

- A Python block after a line that ends in "`name.py`:" is saved under that name.
- All other Python blocks of a section are one program. It must print the `text` blocks that
  follow them, and nothing else. One interpreter runs the programs of a page, at its end.
- In a `console` block the lines after "$ " are run, but for those in `NOT_RUN`, and must print
  what follows. What runs until Ctrl-C goes on in the background, until the page ends.

In what is expected, "…" stands for any text in its line, or, alone in its line, for any lines.
Port 8265 is another one, which is free. Files and commands share one directory for each page.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["PageRun", "run_page"]

#: What prepares the reader's machine; the tests have such a machine.
NOT_RUN = ("git ", "pip ", "kubectl ", "python3 -m venv ", ". .venv/bin/activate", "cd ", "make ")
BACKGROUND = ("jobinfo-cache simulate ",)
TIMEOUT = 25.0  # seconds for one process; only one that hangs uses them up

_MARK = "\x1e\n"  # between the outputs of two programs
_RUN_ALL = f"""
import json, sys
for code in json.load(sys.stdin):
    exec(compile(code, "<example>", "exec"), {{"__name__": "__main__"}})
    sys.stdout.write({_MARK!r})
    sys.stdout.flush()
"""

_PIECE = re.compile(
    r"^```(?P<language>\w+)\n(?P<body>.*?)^```$|^##? [^\n]*$", re.DOTALL | re.MULTILINE
)
_SAVED_AS = re.compile(r"`([\w.-]+\.py)`:\s*$")


@dataclass
class PageRun:
    """One page while its examples run."""

    directory: Path
    port: int
    compared: int = 0
    _programs: list[tuple[str, str]] = field(default_factory=list)  # code, and what it prints
    _code: str = ""
    _output: str = ""
    _background: list[subprocess.Popen[str]] = field(default_factory=list)

    def run(self, text: str) -> None:
        """All examples of the page, in order; raises `AssertionError` for the first wrong one."""
        text = text.replace("8265", str(self.port))
        end, may_be_output = 0, False
        for piece in _PIECE.finditer(text):
            between = text[end : piece.start()]
            end = piece.end()
            language, body = piece["language"], piece["body"]
            if language is None:
                self._end_section()
            elif language == "console":
                self._console(body)
            elif language == "text" and may_be_output and not between.strip():
                self._output += body
            elif language == "python":
                self._python(body, _SAVED_AS.search(between))
            may_be_output = language == "python"
        self._end_section()
        self._run_programs()

    def close(self) -> None:
        """End what runs in the background, as Ctrl-C does."""
        for process in self._background:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=TIMEOUT)

    def _python(self, body: str, saved_as: re.Match[str] | None) -> None:
        if saved_as is None:
            self._code += body
        else:
            (self.directory / saved_as[1]).write_text(body, encoding="utf-8")

    def _end_section(self) -> None:
        if self._code:
            self._programs.append((self._code, self._output))
        self._code = self._output = ""

    def _run_programs(self) -> None:
        if not self._programs:
            return
        codes = json.dumps([code for code, _ in self._programs])
        printed = self._run([sys.executable, "-c", _RUN_ALL], codes).split(_MARK)
        for (code, output), text in zip(self._programs, printed, strict=False):
            self._compare(code, output, text)

    def _console(self, body: str) -> None:
        for command, output in _commands(body):
            if command.startswith(BACKGROUND):
                self._start(command, output)
            elif not command.startswith(NOT_RUN):
                self._compare(command, output, self._run(shlex.split(command)))

    def _start(self, command: str, output: str) -> None:
        process = subprocess.Popen(
            shlex.split(command),
            cwd=self.directory,
            env=_environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        self._background.append(process)
        assert process.stdout is not None
        printed = "".join(process.stdout.readline() for _ in output.splitlines())
        self._compare(command, output, printed)

    def _run(self, command: list[str], stdin: str = "") -> str:
        done = subprocess.run(
            command,
            cwd=self.directory,
            env=_environment(),
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        return done.stdout

    def _compare(self, example: str, expected: str, printed: str) -> None:
        self.compared += 1
        assert re.fullmatch(_pattern(expected), printed), (
            f"this example:\n{example}\nshall print:\n{expected}\nbut prints:\n{printed}"
        )


def run_page(page: Path) -> int:
    """Run the examples of a page; returns how many were compared. Blocks until all have ended."""
    with tempfile.TemporaryDirectory() as directory:
        run = PageRun(Path(directory), _free_port())
        try:
            run.run(page.read_text(encoding="utf-8"))
        finally:
            run.close()
    return run.compared


def _commands(body: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block, without its comment, and what it shall print."""
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield re.sub(r"\s+#.*", "", command), output


def _pattern(expected: str) -> str:
    lines = expected.splitlines(keepends=True)
    return "".join(r"(?:.*\n)*" if line == "…\n" else _line_pattern(line) for line in lines)


def _line_pattern(line: str) -> str:
    return ".*".join(re.escape(part) for part in line.split("…"))


def _environment() -> dict[str, str]:
    """The reader's: with the programs of this environment, and nothing set for the library."""
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("JOBINFO_", "RAY_", "PYTEST_", "PYTHON", "COV"))
    }
    binaries = Path(sys.executable).parent
    return {
        **own,
        "PATH": f"{binaries}{os.pathsep}{own.get('PATH', '')}",
        "PYTHONWARNINGS": "error",
        "NO_PROXY": "127.0.0.1",
        "NO_COLOR": "1",
        "COLUMNS": "80",
    }


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
