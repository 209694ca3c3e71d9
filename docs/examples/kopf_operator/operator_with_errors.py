"""The same with a handler that raises until the job has ended: see what it does to the log."""

from __future__ import annotations

from typing import Any

import kopf
from kubernetes import client, config

from jobinfo_cache import Cluster, JobInfoCache, Settings, TryAgain

DASHBOARD_URL = "example.com/dashboard-url"


@kopf.on.startup()
def start(settings: kopf.OperatorSettings, memo: kopf.Memo, **_: Any) -> None:
    settings.posting.enabled = False
    config.load_kube_config()
    memo.cache = JobInfoCache(Settings.from_env())
    memo.objects = client.CustomObjectsApi()


@kopf.on.cleanup()
def stop(memo: kopf.Memo, **_: Any) -> None:
    memo.cache.close()


@kopf.on.create("ray.io", "v1", "rayjobs")
@kopf.on.resume("ray.io", "v1", "rayjobs")
def follow(
    namespace: str, status: kopf.Status, patch: kopf.Patch, memo: kopf.Memo, **_: Any
) -> None:
    name = status["rayClusterName"]
    found = memo.objects.get_namespaced_custom_object(
        "ray.io", "v1", namespace, "rayclusters", name
    )["metadata"]
    cluster = Cluster(namespace, name, found["uid"])
    try:
        info = memo.cache.client(found["annotations"][DASHBOARD_URL], cluster).get_job_info(
            status["jobId"]
        )
    except TryAgain as again:
        raise kopf.TemporaryError(str(again), delay=again.retry_after) from None
    if not info.status.is_terminal:
        raise kopf.TemporaryError(f"the job is {info.status}", delay=0.5)
    patch.status["jobStatus"] = str(info.status)
