"""What this process takes of its machine."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import NamedTuple

_MEGABYTE = 1_048_576


class Footing(NamedTuple):
    """Threads, open files, sockets among them, and resident memory in MB, at one moment."""

    threads: int
    files: int
    sockets: int
    memory: float

    def __str__(self) -> str:
        return (
            f"{self.threads} threads, {self.files} files, {self.sockets} sockets, "
            f"{self.memory:.1f} MB"
        )


def footing() -> Footing:
    """The state now."""
    targets = [_target(each) for each in Path("/proc/self/fd").iterdir()]
    status = Path("/proc/self/status").read_text()
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return Footing(
        threads=threading.active_count(),
        files=len(targets),
        sockets=sum(target.startswith("socket:") for target in targets),
        memory=int(resident.split()[1]) * 1024 / _MEGABYTE,
    )


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:  # the directory's own descriptor
        return ""
