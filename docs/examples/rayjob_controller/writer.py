"""Writes RayJobs back, in a thread of its own: a slow API server delays no reconcile."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import urllib3
from kubernetes import client

from jobinfo_cache import WorkerPool
from rayjob_controller.store import GROUP, VERSION

__all__ = ["Writer"]

log = logging.getLogger(__name__)


class Writer:
    """Patches statuses and metadata, what is new since the last patch of a RayJob in one.

    `on_written` is called with the RayJob's name when all that was handed in has been written.
    """

    def __init__(
        self,
        objects: client.CustomObjectsApi,
        namespace: str,
        on_written: Callable[[str], None],
        *,
        workers: int = 2,
    ) -> None:
        self._objects = objects
        self._where = (GROUP, VERSION, namespace, "rayjobs")
        self._on_written = on_written
        self._pool = WorkerPool(self._write, workers=workers, name="rayjob-writer")
        self._lock = threading.Lock()
        # Guarded by _lock, by part ("status", "metadata") and name:
        self._unwritten: dict[str, dict[str, Any]] = {}

    def put(self, name: str, part: str, fields: dict[str, Any]) -> None:
        """Have the fields written soon. Never blocks."""
        with self._lock:
            parts = self._unwritten.setdefault(name, {})
            parts[part] = {**parts.get(part, {}), **fields}
        self._pool.add(name)

    def is_pending(self, name: str) -> bool:
        """Whether something about that RayJob has not been written yet."""
        with self._lock:
            return name in self._unwritten

    def close(self, timeout: float) -> bool:
        """Write what is left, for at most `timeout` seconds, and end."""
        for name in list(self._unwritten):
            self._write(name)
        return self._pool.close(timeout)

    def _write(self, name: str) -> float | None:
        with self._lock:
            parts = dict(self._unwritten.get(name, {}))
        try:
            # Metadata last: without its finalizer the resource is gone.
            if "status" in parts:
                patch = self._objects.patch_namespaced_custom_object_status
                patch(*self._where, name, {"status": parts["status"]}, _request_timeout=10.0)
            if "metadata" in parts:
                patch = self._objects.patch_namespaced_custom_object
                patch(*self._where, name, {"metadata": parts["metadata"]}, _request_timeout=10.0)
        except (client.ApiException, urllib3.exceptions.HTTPError) as error:
            if getattr(error, "status", None) != 404:  # gone: there is nothing left to write
                log.warning("RayJob %s cannot be written now: %s", name, type(error).__name__)
                return 1.0
        with self._lock:
            if self._unwritten.get(name) != parts:
                return 0.0  # more came meanwhile
            del self._unwritten[name]
        self._on_written(name)
        return None
