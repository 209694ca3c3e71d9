"""The view of one cluster that a controller works with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from jobinfo_cache.entry import ClusterState
from jobinfo_cache.errors import (
    CacheClosed,
    DashboardAuthError,
    DashboardError,
    JobConflict,
)
from jobinfo_cache.job import JobInfo, check_job_id
from jobinfo_cache.model import Cluster, JobSnapshot
from jobinfo_cache.waiting import wait_for_job

if TYPE_CHECKING:
    from jobinfo_cache.cache import JobInfoCache
    from jobinfo_cache.engine import Engine

__all__ = ["CachedDashboardClient"]

_T = TypeVar("_T")


class CachedDashboardClient:
    """The methods of `DashboardClient` for one cluster, with reads that never wait.

    Made by `JobInfoCache.client`. `get_job_info`, `lookup`, `peek` and `forget` answer from
    memory at once. `wait` blocks, as its name says. All other methods go straight to the
    dashboard in the caller's thread: they may block for the dashboard client's `timeout`, and
    raise its errors. Every method raises `CacheClosed` once the cache is closed (but `forget`,
    which then does nothing). Safe from any thread.

    .. versionadded:: 0.1.0
    """

    def __init__(self, cache: JobInfoCache, engine: Engine, state: ClusterState) -> None:
        self._cache = cache  # lives as long as a client of it is in use
        self._engine = engine
        self._state = state
        # For the hits:
        self._find = state.entries.get
        self._monotonic = engine.clock.monotonic
        self._count_hit = engine.reader.hits.increment

    @property
    def cluster(self) -> Cluster:
        """The cluster that this is a view of."""
        return self._state.cluster

    # Reads: answered from memory, at once

    def get_job_info(
        self,
        job_id: str,
        *,
        max_age: float | None = None,
        newer_than: datetime | None = None,
    ) -> JobInfo:
        """The job's newest answer, from memory. Never blocks, never does I/O.

        `max_age` (seconds; None: `Settings.max_age`) is the greatest age of an answer about a
        live job to be returned. `newer_than` (an aware datetime) asks for an answer to a request
        sent then or later. What has ended is always fresh enough.

        Raises `TryAgain` when nothing is known yet ("pending") or the answer is too old
        ("stale"): a poll is on its way, and `retry_after` says when to ask again. Raises a
        `DashboardError` when the newest poll failed, once per failure. Raises `CacheClosed`,
        `InvalidJobId`, and `ValueError` for an impossible `max_age` or `newer_than`.

        .. versionadded:: 0.1.0
        """
        if max_age is None and newer_than is None:
            try:
                entry = self._find(job_id)
            except TypeError:  # it is no text: the reader says so
                entry = None
            if entry is not None:
                now = self._monotonic()
                if now <= entry.readable_until:
                    self._count_hit()
                    entry.read_at = now
                    entry.read_again = True
                    entry.read_outcome = info = entry.readable_info
                    return info  # type: ignore[return-value] # fresh: there is one
        return self._engine.reader.get(self._state, job_id, max_age, newer_than)

    def lookup(
        self,
        job_id: str,
        *,
        max_age: float | None = None,
        newer_than: datetime | None = None,
    ) -> JobSnapshot:
        """The same read, without exceptions for remote trouble. Never blocks, never does I/O.

        It does not use up the failure that `get_job_info` raises once. A failure older than
        `max_age` or `newer_than`, if they are given, is not shown. Raises `CacheClosed`,
        `InvalidJobId`, `ValueError`.

        .. versionadded:: 0.1.0
        """
        return self._engine.reader.lookup(self._state, job_id, max_age, newer_than)

    def peek(self, job_id: str) -> JobSnapshot | None:
        """What is held about the job, or None; not a read: nothing is registered or stamped.

        Never blocks, never does I/O. Raises `CacheClosed`, `InvalidJobId`.

        .. versionadded:: 0.1.0
        """
        return self._engine.reader.peek(self._state, job_id)

    def forget(self, job_id: str) -> None:
        """Drop what is held about the job, and stop polling it until it is read again.

        Never blocks, never does I/O. Does nothing if nothing is held or the cache is closed.
        Raises `InvalidJobId`.

        .. versionadded:: 0.1.0
        """
        self._engine.forget(self._state, check_job_id(job_id))

    def wait(
        self,
        job_id: str,
        *,
        timeout: float,
        until: Callable[[JobInfo], bool] | None = None,
    ) -> JobInfo:
        """Block until the job has ended, or `until(info)` is true, for at most `timeout` seconds.

        For scripts and tests; it counts as reading. It sits out a dashboard that is unavailable.
        Raises `WaitTimeout`, `CacheClosed`, `InvalidJobId`; `JobNotFound` and
        `DashboardAuthError` when a poll that began after the call says so; `ValueError` for a
        negative timeout, and `RuntimeError` inside `on_change`, whose thread is needed for polling.

        .. versionadded:: 0.1.0
        """
        return wait_for_job(self._engine, self._state, job_id, timeout, until)

    # Requests: straight to the dashboard, in the caller's thread

    def list_jobs(self) -> list[JobInfo]:
        """`DashboardClient.list_jobs`: asks the dashboard, and blocks for the answer.

        .. versionadded:: 0.1.0
        """
        return self._ask(lambda: self._state.dashboard.list_jobs())

    def submit_job(
        self,
        entrypoint: str,
        *,
        submission_id: str | None = None,
        runtime_env: Mapping[str, Any] | None = None,
        metadata: Mapping[str, str] | None = None,
        entrypoint_num_cpus: float | None = None,
        entrypoint_num_gpus: float | None = None,
        entrypoint_memory: int | None = None,
        entrypoint_resources: Mapping[str, float] | None = None,
    ) -> str:
        """`DashboardClient.submit_job`: asks the dashboard, and blocks for the answer.

        What the cache held about the id is dropped; a refused submission changes nothing.

        .. versionadded:: 0.1.0
        """
        if submission_id is not None:
            submission_id = check_job_id(submission_id)
        try:
            job_id = self._ask(
                lambda: self._state.dashboard.submit_job(
                    entrypoint,
                    submission_id=submission_id,
                    runtime_env=runtime_env,
                    metadata=metadata,
                    entrypoint_num_cpus=entrypoint_num_cpus,
                    entrypoint_num_gpus=entrypoint_num_gpus,
                    entrypoint_memory=entrypoint_memory,
                    entrypoint_resources=entrypoint_resources,
                )
            )
        except (JobConflict, TypeError, ValueError):  # nothing was changed, or even sent
            raise
        except BaseException:
            if submission_id is not None:
                self._engine.forget(self._state, submission_id, aliases=True)
            raise
        self._engine.forget(self._state, job_id, aliases=True)
        return job_id

    def get_job_log(self, job_id: str) -> str:
        """`DashboardClient.get_job_log`: asks the dashboard, and blocks for the answer.

        .. versionadded:: 0.1.0
        """
        job_id = check_job_id(job_id)
        return self._ask(lambda: self._state.dashboard.get_job_log(job_id))

    def stop_job(self, job_id: str) -> bool:
        """`DashboardClient.stop_job`: asks the dashboard, and blocks for the answer.

        A live job is polled anew at once, and what was known before is stale from then on.

        .. versionadded:: 0.1.0
        """
        job_id = check_job_id(job_id)
        try:
            return self._ask(lambda: self._state.dashboard.stop_job(job_id))
        finally:
            self._engine.supersede(self._state, job_id)

    def delete_job(self, job_id: str) -> None:
        """`DashboardClient.delete_job`: asks the dashboard, and blocks for the answer.

        What the cache held about the job is dropped.

        .. versionadded:: 0.1.0
        """
        job_id = check_job_id(job_id)
        try:
            self._ask(lambda: self._state.dashboard.delete_job(job_id))
        except BaseException:
            self._engine.supersede(self._state, job_id)
            raise
        self._engine.forget(self._state, job_id, aliases=True)

    def get_serve_details(self) -> dict[str, Any]:
        """`DashboardClient.get_serve_details`: asks the dashboard, and blocks for the answer.

        .. versionadded:: 0.1.0
        """
        return self._ask(lambda: self._state.dashboard.get_serve_details())

    def get_multi_application_status(self) -> dict[str, Any]:
        """`DashboardClient.get_multi_application_status`: asks the dashboard, and blocks.

        .. versionadded:: 0.1.0
        """
        return self._ask(lambda: self._state.dashboard.get_multi_application_status())

    def update_deployments(self, config: Mapping[str, Any]) -> None:
        """`DashboardClient.update_deployments`: asks the dashboard, and blocks for the answer.

        .. versionadded:: 0.1.0
        """
        self._ask(lambda: self._state.dashboard.update_deployments(config))

    def get_version(self) -> dict[str, Any]:
        """`DashboardClient.get_version`: asks the dashboard, and blocks for the answer.

        .. versionadded:: 0.1.0
        """
        return self._ask(lambda: self._state.dashboard.get_version())

    def close(self) -> None:
        """Does nothing: connections close with the cache, or when the client is replaced.

        .. versionadded:: 0.1.0
        """

    def _ask(self, request: Callable[[], _T]) -> _T:
        """Make a direct request; any proof that the dashboard answers ends its backoff."""
        engine, state = self._engine, self._state
        if engine.store.is_closed:
            raise CacheClosed("the cache is closed")
        engine.connections.used(state)
        try:
            answer = request()
        except DashboardError as error:
            if _is_sign_of_life(error, state):
                engine.reached(state)
            raise
        engine.reached(state)
        return answer

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CachedDashboardClient):
            return NotImplemented
        return self._state is other._state

    def __hash__(self) -> int:
        return hash(self._state.cluster)

    def __repr__(self) -> str:
        return f"CachedDashboardClient({self._state.dashboard!r}, {self._state.cluster!r})"


def _is_sign_of_life(error: DashboardError, state: ClusterState) -> bool:
    if isinstance(error, DashboardAuthError) and state.failing == error.kind:
        return False
    return error.status_code is not None and error.status_code < 500 and error.status_code != 429
