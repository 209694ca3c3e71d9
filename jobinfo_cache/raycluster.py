"""What a RayCluster resource says of its dashboard: identity, service, address, token's Secret.

The rules for names are KubeRay's. Pure; resources are dicts as the API server sends them, in
which anything may be missing or null. `ValueError` names what must be there and is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobinfo_cache.model import Cluster

__all__ = [
    "asks_for_token",
    "cluster_of",
    "dashboard_port",
    "dashboard_url",
    "head_service",
    "secret_name",
]

_LONGEST = 50  # characters; of a longer name KubeRay keeps the last ones
_DASHBOARD_PORT = 8265


def cluster_of(ray_cluster: Mapping[str, Any]) -> Cluster:
    """The identity: namespace, name and uid as they are, never shortened."""
    metadata = _part(ray_cluster, "metadata")
    return Cluster(
        metadata.get("namespace") or "", metadata.get("name") or "", metadata.get("uid") or ""
    )


def asks_for_token(ray_cluster: Mapping[str, Any]) -> bool:
    """Whether the cluster was made with `authOptions.mode: token`."""
    return _part(ray_cluster, "spec", "authOptions").get("mode") == "token"


def secret_name(cluster_name: str) -> str:
    """The name of the Secret with the cluster's token."""
    return _shortened(cluster_name)


def head_service(ray_cluster: Mapping[str, Any]) -> str:
    """The head service's name: what the status says, else what KubeRay will call it.

    Raises `ValueError` where that would be a shortened name, which another cluster may have.
    """
    named = _part(ray_cluster, "status", "head").get("serviceName")
    named = named or _part(ray_cluster, "spec", "headGroupSpec", "headService", "metadata").get(
        "name"
    )
    if isinstance(named, str) and named:
        return named
    full = f"{cluster_of(ray_cluster).name}-head-svc"
    if _shortened(full) != full:
        raise ValueError(
            f"RayCluster {cluster_of(ray_cluster)} has no status.head.serviceName yet, and its name"
            " is changed for the service's, so that it cannot be told from others"
        )
    return full


def dashboard_port(ray_cluster: Mapping[str, Any]) -> int:
    """The dashboard's port: what the status says, else the head container's, else Ray's own."""
    told = _part(ray_cluster, "status", "endpoints").get("dashboard")
    if told:
        return _port(ray_cluster, told)
    pod = _part(ray_cluster, "spec", "headGroupSpec", "template", "spec")
    for container in _items(pod, "containers"):
        for port in _items(container, "ports"):
            if port.get("name") == "dashboard":
                return _port(ray_cluster, port.get("containerPort"))
    return _DASHBOARD_PORT


def dashboard_url(ray_cluster: Mapping[str, Any]) -> str:
    """The dashboard's address inside the Kubernetes cluster."""
    namespace = cluster_of(ray_cluster).namespace
    return f"http://{head_service(ray_cluster)}.{namespace}.svc:{dashboard_port(ray_cluster)}"


def _port(ray_cluster: Mapping[str, Any], value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"RayCluster {cluster_of(ray_cluster)} names {value!r} as its dashboard's port"
        ) from None


def _part(resource: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """The mapping at that path; an empty one where there is none."""
    for name in path:
        inner = resource.get(name)
        resource = inner if isinstance(inner, Mapping) else {}
    return resource


def _items(resource: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """The mappings in that list; none where there is no list."""
    items = resource.get(name)
    return [each for each in items if isinstance(each, Mapping)] if isinstance(items, list) else []


def _shortened(name: str) -> str:
    """KubeRay's `CheckName`: the end of a long name, and a letter to begin with."""
    name = name[-_LONGEST:]
    return name if name[:1].isalpha() else "r" + name[1:]
