"""The resources of one kind, followed by list and watch in a thread of their own."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable
from typing import Any

import urllib3
from kubernetes import client, watch

__all__ = ["GROUP", "VERSION", "Store"]

GROUP, VERSION = "ray.io", "v1"

log = logging.getLogger(__name__)


class Store:
    """Keeps the newest version of each resource of a namespace, by name.

    `on_change` is called with a name, in the store's thread, for each event, and for every
    resource at each resync (all `resync` seconds, when the watch ends and all is listed anew).
    """

    def __init__(
        self,
        objects: client.CustomObjectsApi,
        namespace: str,
        plural: str,
        *,
        resync: float,
        on_change: Callable[[str], None],
    ) -> None:
        self._objects = objects
        self._where = (GROUP, VERSION, namespace, plural)
        self._resync = resync
        self._on_change = on_change
        self._stop = threading.Event()
        self._held: dict[str, dict[str, Any]] = {}
        self._thread = threading.Thread(target=self._run, name=f"watch-{plural}", daemon=True)

    def start(self) -> None:
        """Follow the resources from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Stop following; the thread ends with its watch, in `resync` seconds at most."""
        self._stop.set()

    def get(self, name: str) -> dict[str, Any] | None:
        """The resource as last seen, or None. Never blocks."""
        return self._held.get(name)

    def all(self) -> list[dict[str, Any]]:
        """All resources as last seen. Never blocks."""
        return list(self._held.values())

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._list()
                with contextlib.suppress(urllib3.exceptions.ReadTimeoutError):
                    self._watch()
            except Exception:  # whatever the API server does, the controller goes on
                if not self._stop.wait(1.0):
                    log.warning("list or watch failed; listing anew", exc_info=True)

    def _list(self) -> None:
        items = self._objects.list_namespaced_custom_object(*self._where)["items"]
        before = set(self._held)
        self._held = {item["metadata"]["name"]: item for item in items}
        for name in before | set(self._held):
            self._on_change(name)

    def _watch(self) -> None:
        following = watch.Watch()
        events = following.stream(
            self._objects.list_namespaced_custom_object,
            *self._where,
            timeout_seconds=max(1, round(self._resync)),
            # A server that went away without a word does not end the watch by itself.
            _request_timeout=self._resync + 1.0,
        )
        for event in events:
            if self._stop.is_set():
                return
            resource, name = event["object"], event["object"]["metadata"]["name"]
            if event["type"] == "DELETED":
                self._held.pop(name, None)
            else:
                self._held[name] = resource
            self._on_change(name)
