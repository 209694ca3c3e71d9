"""What a simulated dashboard does wrong when told to, and to which requests."""

from __future__ import annotations

import math
import re
import socket
import threading
from dataclasses import replace

from jobinfo_cache.testing import texts
from jobinfo_cache.testing.api import Answer, Call, html_answer, text_answer
from jobinfo_cache.testing.gate import Gate, outlasts

__all__ = ["Fault", "FaultBoard"]

_KINDS = 'hang, refuse, reset, garbage, a status from 200 to 599, "slow:SECONDS" or None'
_BODILESS = (204, 304)


class Fault:
    """One kind of trouble. `answer` is what is sent in place of the true answer, or None."""

    def __init__(self, kind: str, times: int | None, retry_after: str | None) -> None:
        self.left = math.inf if times is None else times
        self.answer = _canned(kind)
        if retry_after is not None:
            if self.answer is None or kind == "garbage":
                raise ValueError(f"kind is {kind!r}; retry_after goes with a status only")
            self.answer = replace(self.answer, headers={"Retry-After": retry_after})
        self._delay = _delay(kind)
        self._resets = kind == "reset"
        if not (self.answer or self._delay is not None or kind in ("hang", "reset")):
            raise ValueError(f"kind is {kind!r}; it must be {_KINDS}")
        if times is not None and times < 1:
            raise ValueError(f"times is {times!r}; it must be at least 1, or None for always")
        self._gate = Gate() if kind == "hang" else None

    def strike(self, connection: socket.socket) -> bool:
        """Do it to one request, and block as long as it takes; False: it gets no answer."""
        if self._gate is not None:
            return self._gate.hold(connection)
        if self._delay is not None:
            return outlasts(connection, None, self._delay)
        return not self._resets

    def end(self) -> None:
        """What hangs is answered."""
        if self._gate is not None:
            self._gate.release()


class FaultBoard:
    """The faults and gates in force, and the requests that they are for. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Guarded by _lock. Keys are (part of a path, method), None for any:
        self._faults: dict[tuple[str | None, str | None], Fault] = {}
        self._gates: list[tuple[str | None, Gate]] = []

    def put(self, path: str | None, method: str | None, fault: Fault) -> None:
        """The fault for these requests; ends the one that they had."""
        self.clear(path, method)
        with self._lock:
            self._faults[path, method] = fault

    def clear(self, path: str | None, method: str | None) -> None:
        """End the fault that was put for exactly these; all of them if both are None."""
        with self._lock:
            keys = [*self._faults] if (path, method) == (None, None) else [(path, method)]
            ended = [self._faults.pop(key) for key in keys if key in self._faults]
        for fault in ended:
            fault.end()

    def take(self, call: Call) -> Fault | None:
        """The fault that this request meets: of those that match, the one put last."""
        with self._lock:
            for (path, method), fault in reversed(self._faults.items()):
                if fault.left and _matches(path, call) and method in (None, call.method):
                    fault.left -= 1
                    return fault
        return None

    def add_gate(self, path: str | None, gate: Gate) -> None:
        with self._lock:
            self._gates = [pair for pair in self._gates if not pair[1].is_released]
            self._gates.append((path, gate))

    def gate_for(self, call: Call) -> Gate | None:
        """The gate that this request must pass: of those that match, the one made last."""
        with self._lock:
            for path, gate in reversed(self._gates):
                if not gate.is_released and _matches(path, call):
                    return gate
        return None

    def release_all(self) -> None:
        """End all faults and open all gates."""
        self.clear(None, None)
        with self._lock:
            gates, self._gates = self._gates, []
        for _, gate in gates:
            gate.release()


def _matches(path: str | None, call: Call) -> bool:
    return path is None or path in call.path


def _canned(kind: str) -> Answer | None:
    """The answer that is no dashboard's, or a dashboard's in trouble."""
    if kind == "garbage":
        return html_answer(texts.LOGIN)
    if not re.fullmatch("[2-5][0-9][0-9]", kind):
        return None
    status = int(kind)
    if status in _BODILESS:
        return text_answer(status, "")
    return text_answer(status, texts.INTERNAL_ERROR if status == 500 else texts.plain(status))


def _delay(kind: str) -> float | None:
    """The seconds of "slow:SECONDS", or None."""
    match = re.fullmatch(r"slow:(\d+(?:\.\d*)?|\.\d+)", kind)
    return float(match[1]) if match else None
