"""Waiting for a cache's threads in a test, without sleeping."""

from __future__ import annotations

from jobinfo_cache.cache import JobInfoCache
from jobinfo_cache.testing.clock import FakeEvent

__all__ = ["settle"]


def settle(cache: JobInfoCache, timeout: float = 10.0) -> None:
    """Return when no poll of the cache is queued or running, and no cleanup that is due.

    Blocks for at most about `timeout` real seconds, then raises `TimeoutError`: a poll that a
    test holds back never settles. Call it after the first read, and after each
    `FakeClock.advance`.

    .. versionadded:: 0.1.0
    """
    engine = cache._engine  # noqa: SLF001 - the library's own tool
    if not engine.pool.wait_idle(timeout):
        raise TimeoutError(f"a poll is still queued or running after {timeout} s")
    shutdown = engine.cleanup.shutdown
    sleeps = not isinstance(shutdown, FakeEvent) or shutdown.wait_for_sleeper(timeout)
    if engine.cleanup.thread is not None and not sleeps:
        raise TimeoutError(f"a cleanup is still running after {timeout} s")
