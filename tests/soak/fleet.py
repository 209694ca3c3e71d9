"""The dashboards of a soak, behind fault servers, in a process of their own.

So that the threads, files and memory that are measured are those of the client alone.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import threading
from collections import deque
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from jobinfo_cache.testing import FaultServer, SimulatedDashboard
from jobinfo_cache.testing.peer import forwarding

CERTIFICATE = Path(__file__).parents[1] / "http" / "localhost.pem"
_REQUESTS_KEPT = 100


class Stand(NamedTuple):
    """A dashboard, and the server that stands before it."""

    dashboard: SimulatedDashboard
    server: FaultServer

    def obey(self, order: str, *arguments: Any, **named: Any) -> Any:
        """Carry out one order of the other process."""
        if order == "fault":
            return self.server.fault(*arguments, **named)
        if order == "truth":
            with contextlib.suppress(KeyError):
                return self.dashboard.job(*arguments)["status"]
            return None
        if order == "remove":
            with contextlib.suppress(KeyError):
                self.dashboard.remove_job(*arguments)
            return None
        return getattr(self.dashboard, order)(*arguments, **named)


class Fleet:
    """So many dashboards in a child process; every second one speaks TLS. Safe from any thread."""

    def __init__(self, size: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, size), daemon=True)
        self._lock = threading.Lock()  # guards the pipe: one order at a time
        self._process.start()
        theirs.close()
        self.urls: list[str] = self._pipe.recv()

    def order(self, number: int, order: str, *arguments: Any, **named: Any) -> Any:
        """Have dashboard `number` do something; returns what it returns. May block for seconds."""
        with self._lock:
            self._pipe.send((number, order, arguments, named))
            return self._pipe.recv()

    def __enter__(self) -> Fleet:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._pipe.close()  # which ends the child
        self._process.join(20)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._process.close()


def _serve(orders: Connection, size: int) -> None:
    """Obey until the other side closes."""
    with contextlib.ExitStack() as stack:
        stands = [_stand(stack, CERTIFICATE if number % 2 else None) for number in range(size)]
        orders.send([stand.server.url for stand in stands])
        with contextlib.suppress(EOFError):
            while True:
                number, order, arguments, named = orders.recv()
                orders.send(stands[number].obey(order, *arguments, **named))


def _stand(stack: contextlib.ExitStack, tls: Path | None) -> Stand:
    dashboard = stack.enter_context(SimulatedDashboard())
    dashboard._journal._entries = deque(maxlen=_REQUESTS_KEPT)  # for hours
    server = FaultServer(forwarding(dashboard.url), tls=tls)
    server._requests = deque(maxlen=_REQUESTS_KEPT)
    return Stand(dashboard, stack.enter_context(server))
