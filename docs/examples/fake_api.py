"""A Kubernetes API server in memory (kmock), in a process of its own: `python fake_api.py PORT`.

It has no TLS, no service proxy, and resource versions that stand still.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import requests

RAY = "/apis/ray.io/v1"
_READY_LIMIT = 30.0  # seconds
_REMEMBERED = 64  # requests; more than are ever under way
_VERBS = ["get", "list", "watch", "patch", "create", "delete", "update"]
_KINDS = {
    "ray.io/v1/rayjobs": "RayJob",
    "ray.io/v1/rayclusters": "RayCluster",
    "apiextensions.k8s.io/v1/customresourcedefinitions": "CustomResourceDefinition",
    "v1/events": "Event",
    "v1/namespaces": "Namespace",
}


class FakeApi:
    """The server's process, and plain requests to it. A context manager."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self._session = requests.Session()
        self._session.trust_env = False
        self._process = subprocess.Popen([sys.executable, __file__, str(port)])

    def __enter__(self) -> FakeApi:
        deadline = time.monotonic() + _READY_LIMIT
        while True:
            try:
                self._session.get(f"{self.url}{RAY}/rayjobs", timeout=5)
            except requests.ConnectionError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise
                time.sleep(0.05)
            else:
                return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.terminate()
        self._process.wait()
        self._session.close()

    def create(self, plural: str, kind: str, name: str, **parts: Any) -> None:
        """Make a resource in the namespace "default"."""
        metadata = {"namespace": "default", "name": name, "uid": f"uid-{name}"}
        metadata["resourceVersion"] = "1"  # kopf tests it before it adds its finalizer
        metadata |= parts.pop("metadata", {})
        body = {"apiVersion": "ray.io/v1", "kind": kind, "metadata": metadata, **parts}
        self._ask("POST", plural, body)

    def get(self, plural: str, name: str) -> dict[str, Any]:
        """The resource now; an empty dict when there is none."""
        answer = self._session.get(f"{self._path(plural)}/{name}", timeout=20)
        if answer.status_code == 404:
            return {}
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
        return found

    def list(self, plural: str) -> dict[str, dict[str, Any]]:
        """All resources, by name."""
        answer = self._session.get(self._path(plural), timeout=20)
        answer.raise_for_status()
        return {each["metadata"]["name"]: each for each in answer.json()["items"]}

    def patch(self, plural: str, name: str, body: dict[str, Any]) -> None:
        """A merge patch."""
        headers = {"Content-Type": "application/merge-patch+json"}
        url = f"{self._path(plural)}/{name}"
        self._session.patch(url, json=body, headers=headers, timeout=20).raise_for_status()

    def delete(self, plural: str, name: str) -> None:
        """Delete, or mark for deletion when there are finalizers."""
        self._session.delete(f"{self._path(plural)}/{name}", timeout=20).raise_for_status()

    def kubeconfig(self, path: Path) -> Path:
        """Write a kubeconfig for it."""
        path.write_text(
            "apiVersion: v1\nkind: Config\ncurrent-context: fake\n"
            f"clusters: [{{name: fake, cluster: {{server: '{self.url}'}}}}]\n"
            "users: [{name: fake, user: {token: any}}]\n"
            "contexts: [{name: fake, context: {cluster: fake, user: fake}}]\n",
            encoding="utf-8",
        )
        return path

    def _ask(self, method: str, plural: str, body: dict[str, Any]) -> None:
        answer = self._session.request(method, self._path(plural), json=body, timeout=20)
        answer.raise_for_status()

    def _path(self, plural: str) -> str:
        return f"{self.url}{RAY}/namespaces/default/{plural}"


async def _serve(port: int) -> None:
    from kmock import KubernetesEmulator, Server

    async with KubernetesEmulator() as emulator, Server(emulator, host="127.0.0.1", port=port):
        for resource, kind in _KINDS.items():
            emulator.resources[resource] = {
                "kind": kind,
                "singular": kind.lower(),
                "namespaced": kind not in ("Namespace", "CustomResourceDefinition"),
                "shortnames": [],
                "categories": [],
                "verbs": _VERBS,
                "subresources": set(),
            }
        while True:
            await asyncio.sleep(0.05)
            # It holds each request against all earlier ones, slower and slower.
            del emulator._requests[:-_REMEMBERED]  # noqa: SLF001 - it has no other way


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
