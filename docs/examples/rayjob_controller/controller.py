"""A small RayJob controller: HTTP mode, on RayClusters that exist (`clusterSelector`).

One worker thread reconciles everything, and never waits: statuses come from the cache, what must
ask a dashboard (submit, stop) is done by `Acts`, and the `Writer` talks to the API server.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from kubernetes import client

from jobinfo_cache import (
    Cluster,
    DashboardError,
    JobChange,
    JobConflict,
    JobInfoCache,
    Settings,
    WorkerPool,
)
from jobinfo_cache.kubernetes import DashboardClientProvider
from jobinfo_cache.raycluster import cluster_of
from jobinfo_cache.rayjob import Action, Limits, Verdict
from rayjob_controller.acts import Acts
from rayjob_controller.attempts import MODE, Attempts
from rayjob_controller.store import Store
from rayjob_controller.writer import Writer

__all__ = ["Controller"]

FINALIZER = "example.com/rayjob"
#: A RayCluster's annotation: where its dashboard is, for a controller outside of Kubernetes.
DASHBOARD_URL = "example.com/dashboard-url"
_ENDS = ("Complete", "Failed")
_LIVE = ("PENDING", "RUNNING")

log = logging.getLogger(__name__)


class Controller:
    """Follows the RayJobs of a namespace. A context manager.

    `on_reconcile` is told (began, ended) of each reconcile, on `time.perf_counter`.
    """

    def __init__(
        self,
        api_client: client.ApiClient,
        *,
        namespace: str = "default",
        workers: int = 1,
        resync: float = 60.0,
        settings: Settings | None = None,
        limits: Limits | None = None,
        on_reconcile: Callable[[float, float], None] = lambda began, ended: None,
    ) -> None:
        self.cache = JobInfoCache(settings, on_change=self._wake)
        self._provider = DashboardClientProvider(self.cache, api_client=api_client)
        objects = client.CustomObjectsApi(api_client)
        self._namespace = namespace
        self._attempts = Attempts(limits or Limits())
        self._on_reconcile = on_reconcile
        self._queue = WorkerPool(self._timed, workers=workers, name="rayjob")
        self._acts = Acts()
        self._writer = Writer(objects, namespace, self._queue.add)
        self._clusters = Store(
            objects, namespace, "rayclusters", resync=resync, on_change=self._wake_all_of
        )
        self._jobs = Store(objects, namespace, "rayjobs", resync=resync, on_change=self._queue.add)
        # By uid. Nobody else writes a RayJob's status: what was written last is what it is, also
        # while the watch still brings older versions.
        self._status: dict[str, dict[str, Any]] = {}
        self._names: dict[tuple[Cluster, str], str] = {}  # RayJobs by cluster and job id

    def __enter__(self) -> Controller:
        self._clusters.start()
        self._jobs.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._jobs.stop()
        self._clusters.stop()
        self._queue.close(5.0)
        self._acts.close(5.0)
        self._writer.close(5.0)
        self.cache.close()

    def _wake(self, change: JobChange) -> None:
        name = self._names.get((change.cluster, change.job_id))
        if name is not None:
            self._queue.add(name)

    def _wake_all_of(self, cluster: str) -> None:
        for job in self._jobs.all():
            if _cluster_name(job) == cluster:
                self._queue.add(_name(job))

    def _timed(self, name: str) -> float | None:
        began = time.perf_counter()
        try:
            return self._reconcile(name)
        finally:
            self._on_reconcile(began, time.perf_counter())

    def _reconcile(self, name: str) -> float | None:
        """Bring one RayJob a step on; returns in how many seconds to look again, or None."""
        job = self._jobs.get(name)
        if job is None or not _is_ours(job):
            return self._let_go()
        status = self._status.setdefault(job["metadata"]["uid"], dict(job.get("status") or {}))
        state = status.get("jobDeploymentStatus") or ""
        if job["metadata"].get("deletionTimestamp"):
            return self._delete(job, status)
        if job["spec"].get("suspend") and state not in (*_ENDS, "Suspended"):
            return self._suspend(job, status)
        if state in _ENDS or (state == "Suspended" and job["spec"].get("suspend")):
            return None
        finalizers = job["metadata"].get("finalizers") or []
        if FINALIZER not in finalizers:
            self._put_finalizers(job, [*finalizers, FINALIZER])
            return None  # the watch tells when it is there
        if state in ("", "Suspended", "Retrying"):
            return self._initialize(job, status)
        return self._follow(job, status)

    def _let_go(self) -> None:
        """Forget what is known of RayJobs that are gone."""
        for uid in set(self._status) - {each["metadata"]["uid"] for each in self._jobs.all()}:
            del self._status[uid]

    def _initialize(self, job: dict[str, Any], status: dict[str, Any]) -> float | None:
        """Choose the attempt's job id: the same one in each process that starts from here."""
        attempt = int(status.get("attempt") or 0) + 1
        job_id = f"{_name(job)}-{job['metadata']['uid'][:8]}-{attempt}"
        new = {"jobDeploymentStatus": "Initializing", "jobStatus": "", "startTime": None}
        self._set(job, status, attempt=attempt, jobId=job_id, **new)
        return 0.0

    def _follow(self, job: dict[str, Any], status: dict[str, Any]) -> float | None:
        """Ask the cache, decide, and do it."""
        cluster = self._clusters.get(_cluster_name(job))
        if cluster is None:
            return None  # its coming wakes us
        job_id = status["jobId"]
        is_new = not status.get("jobStatus")
        if self._acts.is_pending(job_id) or (is_new and self._writer.is_pending(_name(job))):
            # Their ends wake us; the id must be written before the job is submitted.
            return None
        if is_new and not _is_ready(cluster):
            return None  # its change wakes us
        self._names[cluster_of(cluster), job_id] = _name(job)
        snapshot = self._client(cluster).lookup(job_id)
        verdict = self._attempts.decide(status, snapshot)
        if verdict.newer_than is not None:
            if snapshot.retry_after is None:  # it has ended, and would not be asked for again
                self.cache.forget(self._namespace, _cluster_name(job), job_id)
            self._client(cluster).lookup(job_id, newer_than=verdict.newer_than)
        seen = {}
        if verdict.answered and snapshot.info is not None and snapshot.error is None:
            seen = {"jobStatus": str(snapshot.info.status)}
        if verdict.action is Action.SUBMIT:
            self._acts.add(cluster_of(cluster), job_id, lambda: self._submit(job, status, cluster))
        else:
            self._note(job, status, verdict, seen)
        return verdict.retry_after

    def _note(
        self, job: dict[str, Any], status: dict[str, Any], verdict: Verdict, seen: dict[str, str]
    ) -> None:
        if verdict.action.is_end:
            self._end(job, status, verdict, seen)
        elif seen:
            self._set(job, status, jobDeploymentStatus="Running", **seen)

    def _end(
        self, job: dict[str, Any], status: dict[str, Any], verdict: Verdict, seen: dict[str, str]
    ) -> None:
        failed = int(status.get("failed") or 0)
        self._forget(job, status)
        if verdict.action is Action.COMPLETE:
            self._set(job, status, jobDeploymentStatus="Complete", **seen)
            return
        failure = {"reason": verdict.reason, "message": verdict.message, "failed": failed + 1}
        if failed < int(job["spec"].get("backoffLimit") or 0):
            self._set(job, status, jobDeploymentStatus="Retrying", **failure)
            self._queue.add(_name(job))
            return
        self._set(job, status, jobDeploymentStatus="Failed", **failure, **seen)

    def _submit(self, job: dict[str, Any], status: dict[str, Any], cluster: dict[str, Any]) -> None:
        """An act. The outcome is found by the next look at the job, whatever happened here."""
        try:
            self._client(cluster).submit_job(
                job["spec"]["entrypoint"], submission_id=status["jobId"]
            )
            started = datetime.now(timezone.utc).isoformat()
            self._set(job, status, jobDeploymentStatus="Running", startTime=started)
        except JobConflict:
            log.info("%s was submitted before", status["jobId"])
        except DashboardError as error:
            log.warning("%s could not be submitted: %s", status["jobId"], error)
            self._attempts.not_submitted(status["jobId"], error)
        finally:
            self._queue.add_after(_name(job), 0.05)

    def _stopped(self, job: dict[str, Any], status: dict[str, Any]) -> bool:
        """True when the Ray job is stopped, or need not or cannot be; else it is on its way."""
        cluster = self._clusters.get(_cluster_name(job))
        job_id = status.get("jobId")
        name = f"stop {job_id}"
        if not job_id or cluster is None or status.get("stopped") == job_id:
            return True
        if status.get("jobDeploymentStatus") in _ENDS and status.get("jobStatus") not in _LIVE:
            return True

        def stop() -> None:
            try:
                self._client(cluster).stop_job(job_id)
            except DashboardError as error:
                log.warning("%s could not be stopped: %s", job_id, error)
            status["stopped"] = job_id  # in memory only
            self._queue.add_after(_name(job), 0.05)

        self._acts.add(cluster_of(cluster), name, stop)
        return False

    def _suspend(self, job: dict[str, Any], status: dict[str, Any]) -> float | None:
        if not self._stopped(job, status):
            return None
        self._forget(job, status)
        nothing = {"jobId": "", "jobStatus": "", "startTime": None}
        self._set(job, status, jobDeploymentStatus="Suspended", **nothing)
        return None

    def _delete(self, job: dict[str, Any], status: dict[str, Any]) -> float | None:
        finalizers = job["metadata"].get("finalizers") or []
        if FINALIZER not in finalizers or not self._stopped(job, status):
            return None
        self._forget(job, status)
        self._put_finalizers(job, [each for each in finalizers if each != FINALIZER])
        return None

    def _put_finalizers(self, job: dict[str, Any], finalizers: list[str]) -> None:
        """Have the list written, unless it has changed since: others have finalizers too."""
        version = job["metadata"].get("resourceVersion")
        fields = {"finalizers": finalizers or None, "resourceVersion": version}
        self._writer.put(_name(job), "metadata", fields)

    def _forget(self, job: dict[str, Any], status: dict[str, Any]) -> None:
        """By name: the cluster may be gone."""
        job_id = status.get("jobId")
        if job_id:
            self.cache.forget(self._namespace, _cluster_name(job), job_id)
            self._attempts.forget(job_id)
            for key in [key for key in self._names if key[1] == job_id]:
                del self._names[key]

    def _client(self, cluster: dict[str, Any]) -> Any:
        url = (cluster["metadata"].get("annotations") or {}).get(DASHBOARD_URL)
        return self._provider.client_for(cluster, url)

    def _set(self, job: dict[str, Any], status: dict[str, Any], **fields: Any) -> None:
        """Have the status written, if that changes it."""
        changed = {name: value for name, value in fields.items() if status.get(name) != value}
        if changed:
            status.update(changed)
            self._writer.put(_name(job), "status", changed)


def _name(job: dict[str, Any]) -> str:
    return str(job["metadata"]["name"])


def _is_ours(job: dict[str, Any]) -> bool:
    """Whether it is for this controller to submit."""
    return bool(job["spec"].get("submissionMode", MODE.value) == MODE.value)


def _is_ready(cluster: dict[str, Any]) -> bool:
    """Its start is no silence: it may take longer than a dashboard may be silent."""
    given = DASHBOARD_URL in (cluster["metadata"].get("annotations") or {})
    return given or (cluster.get("status") or {}).get("state") == "ready"


def _cluster_name(job: dict[str, Any]) -> str:
    return str((job["spec"].get("clusterSelector") or {}).get("ray.io/cluster") or "")
