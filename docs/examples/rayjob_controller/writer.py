"""Writes RayJobs back, in a thread of its own: a slow API server delays no reconcile."""

from __future__ import annotations

import logging
import threading
import time
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

    `on_written` is called with the RayJob's name when all that was handed in has been written,
    or dropped: metadata with a `resourceVersion` are dropped when that is not the newest.
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
        """End, and write what is left; takes `timeout` seconds at most, and one request."""
        deadline = time.monotonic() + timeout
        ended = self._pool.close(timeout)  # first: no two threads write one RayJob
        for name in list(self._unwritten):
            if time.monotonic() < deadline:
                self._write(name)
        return ended

    def _write(self, name: str) -> float | None:
        # Metadata last: without its finalizer the resource is gone.
        for part in ("status", "metadata"):
            with self._lock:
                fields = self._unwritten.get(name, {}).get(part)
            if fields is not None:
                pause = self._patch(name, part, fields)
                if pause is not None:
                    return pause
        with self._lock:
            if self._unwritten.get(name):
                return 0.0  # more came meanwhile
            self._unwritten.pop(name, None)
        self._on_written(name)
        return None

    def _patch(self, name: str, part: str, fields: dict[str, Any]) -> float | None:
        """Write the fields of a part; returns in how many seconds to go on, None for at once."""
        patch = self._objects.patch_namespaced_custom_object
        if part == "status":
            patch = self._objects.patch_namespaced_custom_object_status
        try:
            patch(*self._where, name, {part: fields}, _request_timeout=10.0)
        except (client.ApiException, urllib3.exceptions.HTTPError) as error:
            status = getattr(error, "status", None)
            outdated = status == 409 and "resourceVersion" in fields
            if outdated:
                self._drop(name, part, fields)  # the next look makes it of what there is now
            if status != 404:  # else there is nothing left to write
                log.warning("RayJob %s cannot be written now: %s", name, status or error)
                return 1.0
        self._drop(name, part, fields)
        return None

    def _drop(self, name: str, part: str, fields: dict[str, Any]) -> None:
        """The part needs no more to be written, unless more came meanwhile."""
        with self._lock:
            parts = self._unwritten.get(name, {})
            if parts.get(part) == fields:
                del parts[part]
