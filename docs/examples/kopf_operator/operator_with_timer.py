"""A kopf operator that keeps `status.jobStatus` of RayJobs true. Run: `kopf run -A THIS_FILE`.

The cache is made in `startup`, that is in the process that runs, and closed in `cleanup`.
"""

from __future__ import annotations

from typing import Any

import kopf
from kubernetes import client, config

from jobinfo_cache import CacheClosed, JobInfoCache, Settings
from jobinfo_cache.kubernetes import DashboardClientProvider

DASHBOARD_URL = "example.com/dashboard-url"
TERMINAL = ("SUCCEEDED", "FAILED", "STOPPED")


def is_live(status: kopf.Status, **_: Any) -> bool:
    return status.get("jobStatus") not in TERMINAL and bool(status.get("jobId"))


@kopf.on.startup()
def start(settings: kopf.OperatorSettings, memo: kopf.Memo, **_: Any) -> None:
    settings.posting.enabled = False
    config.load_kube_config()  # in a pod: load_incluster_config()
    memo.cache = JobInfoCache(Settings.from_env())
    memo.provider = DashboardClientProvider(memo.cache)
    memo.objects = client.CustomObjectsApi()


@kopf.on.cleanup()
def stop(memo: kopf.Memo, **_: Any) -> None:
    memo.cache.close()


@kopf.timer("ray.io", "v1", "rayjobs", interval=0.5, when=is_live)
def refresh(
    namespace: str, status: kopf.Status, patch: kopf.Patch, memo: kopf.Memo, **_: Any
) -> None:
    cluster = memo.objects.get_namespaced_custom_object(
        "ray.io", "v1", namespace, "rayclusters", status["rayClusterName"]
    )
    url = (cluster["metadata"].get("annotations") or {}).get(DASHBOARD_URL)
    try:
        snapshot = memo.provider.client_for(cluster, url).lookup(status["jobId"])
    except CacheClosed:
        return  # the operator is ending
    if snapshot.known and snapshot.info.status != status.get("jobStatus"):
        patch.status["jobStatus"] = str(snapshot.info.status)
