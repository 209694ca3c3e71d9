"""The same with a handler that raises until the job has ended: see what it does to the log."""

from __future__ import annotations

from typing import Any

import kopf

from jobinfo_cache import Cluster, JobInfoCache, Settings, TryAgain

STATUS = "example.com/ray-status"
DASHBOARD_URL = "example.com/dashboard-url"


@kopf.on.startup()
def start(settings: kopf.OperatorSettings, memo: kopf.Memo, **_: Any) -> None:
    settings.posting.enabled = False
    memo.cache = JobInfoCache(Settings.from_env())


@kopf.on.cleanup()
def stop(memo: kopf.Memo, **_: Any) -> None:
    memo.cache.close()


@kopf.index("ray.io", "v1", "rayclusters")
def clusters(namespace: str, name: str, meta: kopf.Meta, **_: Any) -> dict[tuple[str, str], Any]:
    return {(namespace, name): (meta["annotations"][DASHBOARD_URL], meta["uid"])}


@kopf.on.create("ray.io", "v1", "rayjobs")
@kopf.on.resume("ray.io", "v1", "rayjobs")
def follow(
    namespace: str,
    status: kopf.Status,
    patch: kopf.Patch,
    memo: kopf.Memo,
    clusters: kopf.Index[tuple[str, str], Any],
    **_: Any,
) -> None:
    name = status["rayClusterName"]
    [(url, uid)] = clusters[namespace, name]
    try:
        client = memo.cache.client(url, Cluster(namespace, name, uid))
        info = client.get_job_info(status["jobId"])
    except TryAgain as again:
        raise kopf.TemporaryError(str(again), delay=again.retry_after) from None
    if not info.status.is_terminal:
        raise kopf.TemporaryError(f"the job is {info.status}", delay=0.5)
    patch.metadata.annotations[STATUS] = str(info.status)
