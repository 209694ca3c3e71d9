"""A kopf operator that writes each RayJob's Ray status into an annotation. A look never waits."""

from __future__ import annotations

import logging
from typing import Any

import kopf
from kubernetes import config

from jobinfo_cache import CacheClosed, JobInfoCache, Settings
from jobinfo_cache.kubernetes import DashboardClientProvider

STATUS = "example.com/ray-status"  # KubeRay's own operator writes `status`: keep out of it
DASHBOARD_URL = "example.com/dashboard-url"  # on a RayCluster: where else its dashboard is
TERMINAL = ("SUCCEEDED", "FAILED", "STOPPED")


@kopf.on.startup()
def start(settings: kopf.OperatorSettings, memo: kopf.Memo, **_: Any) -> None:
    settings.posting.enabled = False
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)  # it tells of each tick
    try:
        config.load_incluster_config()
    except config.ConfigException:
        config.load_kube_config()
    memo.cache = JobInfoCache(Settings.from_env())
    memo.provider = DashboardClientProvider(memo.cache)


@kopf.on.cleanup()
def stop(memo: kopf.Memo, **_: Any) -> None:
    memo.cache.close()


@kopf.index("ray.io", "v1", "rayclusters")
def clusters(namespace: str, name: str, body: kopf.Body, **_: Any) -> dict[tuple[str, str], Any]:
    return {(namespace, name): dict(body)}


def is_live(status: kopf.Status, annotations: kopf.Annotations, **_: Any) -> bool:
    return bool(status.get("jobId")) and annotations.get(STATUS) not in TERMINAL


@kopf.timer("ray.io", "v1", "rayjobs", interval=1.0, when=is_live)
def refresh(
    namespace: str,
    status: kopf.Status,
    annotations: kopf.Annotations,
    patch: kopf.Patch,
    memo: kopf.Memo,
    clusters: kopf.Index[tuple[str, str], Any],
    **_: Any,
) -> None:
    for cluster in clusters.get((namespace, status.get("rayClusterName")), ()):
        url = (cluster["metadata"].get("annotations") or {}).get(DASHBOARD_URL)
        try:
            snapshot = memo.provider.client_for(cluster, url).lookup(status["jobId"])
        except CacheClosed:
            return  # the operator is ending
        if snapshot.known and snapshot.info.status != annotations.get(STATUS):
            patch.metadata.annotations[STATUS] = str(snapshot.info.status)
