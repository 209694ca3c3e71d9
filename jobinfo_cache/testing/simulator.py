"""A Ray dashboard without Ray: a real HTTP server on loopback that answers as Ray 2.60 does."""

from __future__ import annotations

import copy
import socket
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from jobinfo_cache.clock import Clock, SystemClock
from jobinfo_cache.testing.api import Answer, Api, Call
from jobinfo_cache.testing.faults import Fault, FaultBoard
from jobinfo_cache.testing.gate import Gate, outlasts
from jobinfo_cache.testing.jobs import Script, SimulatedJob
from jobinfo_cache.testing.journal import Journal, Request
from jobinfo_cache.testing.listener import Listener
from jobinfo_cache.testing.server import serve

__all__ = ["SimulatedDashboard"]


class SimulatedDashboard:
    """A dashboard whose jobs follow scripts, and that fails on demand. A context manager.

    `port` 0 takes a free one. With `token` requests must bring it, as with RAY_AUTH_MODE=token.
    Each answer takes `latency` real seconds. Jobs move on `clock`, the machine's by default; a
    `FakeClock` stands still until advanced. All methods are safe from any thread, except that
    `start`, `close`, `restart` and `fault` are for one thread at a time. None waits for jobs, and
    only those that say so block, for the threads of connections.

    .. versionadded:: 0.1.0
    """

    def __init__(
        self,
        *,
        port: int = 0,
        token: str | None = None,
        latency: float = 0.0,
        clock: Clock | None = None,
    ) -> None:
        self._port = port
        self._latency = latency
        self._clock = clock or SystemClock()
        self._api = Api(self._clock, token)
        self._board = FaultBoard()
        self._journal = Journal()
        self._listener = Listener(
            lambda connection: serve(connection, self._handle, self._clock), name="simulator"
        )
        self._is_started = False
        self._refuses = False

    def __enter__(self) -> SimulatedDashboard:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def start(self) -> SimulatedDashboard:
        """Listen; does nothing if it does so already. Raises `OSError` if the port is taken.

        .. versionadded:: 0.1.0
        """
        if self._is_started:
            return self
        self._port = self._listener.bind(self._port)
        self._is_started = True
        if not self._refuses:
            self._listener.open()
        return self

    def close(self) -> None:
        """End all connections, faults and gates; no thread or socket is left. Idempotent.

        Waits for the threads of the connections.

        .. versionadded:: 0.1.0
        """
        self._is_started = False
        self._listener.close()
        self._board.release_all()
        self._refuses = False

    @property
    def url(self) -> str:
        """Where it listens; the same after `restart`. Before `start` the port may be 0."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def session_name(self) -> str:
        """As in /api/version; another one after `restart`."""
        return self._api.session_name

    @property
    def requests(self) -> list[Request]:
        """The requests so far, the last 50,000 of them, in order of arrival."""
        return self._journal.requests()

    @property
    def stop_delay(self) -> float:
        """Seconds on the clock from a stop to STOPPED; the job runs on meanwhile. 0 by default."""
        return self._api.stop_delay

    @stop_delay.setter
    def stop_delay(self, seconds: float) -> None:
        self._api.stop_delay = seconds

    @property
    def serve(self) -> bool:
        """Whether Ray Serve is installed there; if not, its paths answer 501. False by default."""
        return self._api.serve

    @serve.setter
    def serve(self, is_installed: bool) -> None:
        self._api.serve = is_installed

    def script(
        self,
        job_id: str | None = None,
        *,
        pending: float = 0.2,
        running: float = 0.5,
        outcome: str = "SUCCEEDED",
        message: str | None = None,
        exit_code: int | None = None,
        error_type: str | None = None,
        driver_job_id: str | None = None,
    ) -> None:
        """What later submissions under `job_id` do by themselves; None: all others.

        PENDING for `pending` seconds of the clock, RUNNING for `running`, then `outcome`; `inf`
        is for ever, and a job that is PENDING for ever cannot be stopped, as in Ray. The rest is
        for FAILED, except `driver_job_id`: the job's other id, once it runs.

        .. versionadded:: 0.1.0
        """
        script = Script(pending, running, outcome, message, exit_code, error_type, driver_job_id)
        self._api.jobs.set_script(job_id, script)

    def add_job(
        self,
        job_id: str,
        *,
        status: str | None = None,
        type: str = "SUBMISSION",  # noqa: A002 - the field's name
        metadata: Mapping[str, str] | None = None,
        runtime_env: Mapping[str, Any] | None = None,
        entrypoint: str = "true",
        **script: Any,
    ) -> None:
        """Put a job there that nobody submitted, with a script as `script` takes it.

        With `status` it stays in that status until `set_status` or a stop. A DRIVER job has no
        submission id, and runs at once. Raises `ValueError` if the id is in use.

        .. versionadded:: 0.1.0
        """
        if type not in ("SUBMISSION", "DRIVER"):
            raise ValueError(f"type is {type!r}; it must be SUBMISSION or DRIVER")
        if type == "DRIVER":
            script.setdefault("pending", 0.0)
        now = self._clock.monotonic()
        self._api.jobs.add(
            SimulatedJob(
                job_id,
                type,
                entrypoint,
                Script(**script),
                born=now,
                born_at=self._clock.now(),
                metadata=metadata,
                runtime_env=runtime_env,
                timeline=[] if status is None else [(now, status)],
            )
        )

    def set_status(self, job_id: str, status: str, **fields: Any) -> None:
        """The job changes now, to any status text; `fields` replace others of its JSON.

        Its script ends with that. Raises `KeyError` for an unknown job.

        .. versionadded:: 0.1.0
        """
        self._api.jobs.set_status(job_id, status, fields)

    def remove_job(self, job_id: str) -> None:
        """The record vanishes, whatever its state. Raises `KeyError` for an unknown job.

        .. versionadded:: 0.1.0
        """
        self._api.jobs.remove(job_id)

    def resurrect(self, job_id: str) -> None:
        """The record is Ray's ghost of a deleted one: FAILED, and without a start time.

        .. versionadded:: 0.1.0
        """
        self._api.jobs.resurrect(job_id)

    def job(self, job_id: str) -> dict[str, Any]:
        """The true JSON of the job now, by either id. Raises `KeyError` for an unknown job.

        .. versionadded:: 0.1.0
        """
        return copy.deepcopy(self._api.jobs.snapshot(job_id))

    def fault(
        self,
        kind: str | None,
        *,
        path: str | None = None,
        method: str | None = None,
        times: int | None = None,
        retry_after: str | None = None,
    ) -> None:
        """From now on, go wrong; None ends it.

        "hang" reads a request and does not answer until the fault ends; "reset" drops the
        connection; "garbage" is a login page with status 200; a status ("500", "503", "429", …)
        is answered as such, with `retry_after` as its Retry-After if given; "slow:S" answers S
        real seconds late; "refuse" drops all connections and accepts none. All but the last may be
        for requests whose path contains `path`, for one `method`, and for the next `times`
        requests only. A fault takes the place of the one with the same `path` and `method`; one
        without either takes the place of all. Waits for the connections that "refuse" drops.
        Raises `ValueError` for another kind, or for arguments that do not go with it. What breaks
        below HTTP is a `FaultServer`'s to do.

        .. versionadded:: 0.1.0
        """
        narrowed = path is not None or method is not None
        if kind == "refuse" and (narrowed or times is not None):
            raise ValueError("refuse is for all requests; it takes no path, method or times")
        if kind in (None, "refuse") and retry_after is not None:
            raise ValueError(f"kind is {kind!r}; retry_after goes with a status only")
        fault = None if kind in (None, "refuse") else Fault(str(kind), times, retry_after)
        if fault is None:
            self._board.clear(path, method)
        else:
            self._board.put(path, method, fault)
        if not narrowed:
            self._refuse(kind == "refuse")

    def gate(self, path: str | None = None, *, answer_first: bool = False) -> Gate:
        """From now on requests whose path contains `path` (None: all) wait for the gate's release.

        With `answer_first` the answer is made before the wait: a late reply.

        .. versionadded:: 0.1.0
        """
        gate = Gate(answer_first=answer_first)
        self._board.add_gate(path, gate)
        return gate

    def set_token(self, token: str | None) -> None:
        """Ask for another token from now on; None asks for none.

        .. versionadded:: 0.1.0
        """
        self._api.token = token

    def restart(self) -> None:
        """Become a new head at the same address: connections and jobs gone, another session.

        Waits for the threads of the connections. Scripts, faults and gates stay.

        .. versionadded:: 0.1.0
        """
        self._api.restart()
        self._listener.cut()

    def _refuse(self, refuses: bool) -> None:
        if refuses == self._refuses:
            return
        self._refuses = refuses
        if not self._is_started:
            return
        if refuses:
            self._listener.close()
            self._listener.bind(self._port)  # nobody else gets the port meanwhile
        else:
            self._listener.open()

    def _handle(self, call: Call, connection: socket.socket) -> Answer | None:
        entry = self._journal.arrived(call, self._clock.monotonic())
        answer = self._gated(call, connection)
        entry.status = None if answer is None else answer.status
        return answer

    def _gated(self, call: Call, connection: socket.socket) -> Answer | None:
        """The answer, past latency and gate; None for none."""
        if self._latency and not outlasts(connection, None, self._latency):
            return None
        gate = self._board.gate_for(call)
        if gate is None:
            return self._answer(call, connection)
        if gate.answer_first:
            answer = self._answer(call, connection)
            return answer if gate.hold(connection) else None
        return self._answer(call, connection) if gate.hold(connection) else None

    def _answer(self, call: Call, connection: socket.socket) -> Answer | None:
        """The true answer, or what a fault makes of it."""
        fault = self._board.take(call)
        if fault is not None and not fault.strike(connection):
            return None
        if fault is not None and fault.answer is not None:
            return fault.answer
        return self._api.answer(call)
