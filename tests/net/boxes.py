"""Real middle boxes on loopback: each one process, with a configuration of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

LIMIT = 20.0  # seconds; only a failure uses them up
_SYSTEM_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"


def found(name: str) -> str:
    """The path of a program; skips the test where it is not installed."""
    path = shutil.which(name, path=_SYSTEM_PATH)
    if path is None:
        pytest.skip(f"{name} is not installed: `make test-net` as root installs it with apt-get")
    return path


def free_port() -> int:
    """A port that nobody listens on at this moment."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


class Box:
    """A program that listens on `port`, in the foreground, until it is stopped."""

    def __init__(self, command: list[str], port: int, log: Path) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._command = command
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Run it; returns when it listens."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        pause = threading.Event()
        for _ in range(int(LIMIT / 0.02)):
            if self._process.poll() is not None:
                break
            with contextlib.suppress(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", self.port), LIMIT).close()
                return
            pause.wait(0.02)
        self.stop()
        pytest.fail(f"{self._command[0]} did not start: {self._log.read_text()}")

    def stop(self) -> None:
        """End exactly this process."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


@contextlib.contextmanager
def nginx(directory: Path, servers: str, port: int) -> Iterator[Box]:
    """An nginx with the `server` blocks given; it listens on `port` first of all."""
    config = directory / "nginx.conf"
    spools = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    config.write_text(
        f"""
        daemon off;
        master_process off;
        pid {directory}/nginx.pid;
        error_log {directory}/nginx.log;
        events {{ worker_connections 256; }}
        http {{
            access_log off;
            {" ".join(f"{spool}_temp_path {directory}/{spool};" for spool in spools)}
            {servers}
        }}
        """
    )
    command = [found("nginx"), "-c", str(config), "-e", f"{directory}/nginx.log"]
    box = Box(command, port, directory / "nginx.log")
    with _running(box):
        yield box


@contextlib.contextmanager
def haproxy(directory: Path, sections: str, port: int) -> Iterator[Box]:
    """An HAProxy with the sections given; it listens on `port` first of all."""
    config = directory / "haproxy.cfg"
    lines = [line.strip() for line in sections.splitlines()]
    config.write_text("\n".join([*lines, ""]))
    command = [found("haproxy"), "-f", str(config), "-db"]
    box = Box(command, port, directory / "haproxy.log")
    with _running(box):
        yield box


@contextlib.contextmanager
def _running(box: Box) -> Iterator[None]:
    box.start()
    try:
        yield
    finally:
        box.stop()
