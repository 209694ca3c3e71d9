"""Whether a cache does its work: the answer to a liveness probe."""

from __future__ import annotations

import math
import threading

from jobinfo_cache.cache import JobInfoCache

__all__ = ["Health"]

# Seconds beyond the longest deadline of a request. What may take longer is a name look-up, up to
# half a minute with the usual resolver; what takes this long hangs.
_GRACE = 60.0


class Health:
    """Looks at a cache from time to time; for one thread.

    The cache is well until it is closed, one of its threads has died, or no worker has begun a
    turn for a minute beyond the longest deadline of a request although clusters wait for one.
    Dead dashboards do not bring that about, as each request to them ends at its deadline; a
    callback that never returns does, once it holds every worker.
    """

    def __init__(self, cache: JobInfoCache) -> None:
        self._engine = cache._engine  # noqa: SLF001 - the library's own probe
        self._begun = -1  # turns, at the last look
        self._moved_at = -math.inf  # when the last look saw that turns begin, or need not

    def trouble(self) -> str | None:
        """What is wrong, in a few words; None when all is well. Never blocks."""
        engine = self._engine
        if engine.store.is_closed:
            return "the cache is closed"
        threads = (engine.pool._dispatcher.thread, engine.cleanup.thread)  # noqa: SLF001
        if any(_has_died(thread) for thread in threads):
            return "a thread has died"
        pool, now = engine.pool.stats(), engine.clock.monotonic()
        if not pool.queued or pool.handled != self._begun:
            self._begun, self._moved_at = pool.handled, now
        still = now - self._moved_at
        if still <= _GRACE or still <= _GRACE + self._longest_deadline():
            return None
        return f"no worker has begun a turn for {still:.0f} s"

    def _longest_deadline(self) -> float:
        dashboards = [state.dashboard for state in self._engine.store.clusters()]
        # A user's own fake may have no deadline.
        return max((getattr(each, "timeout", 0.0) for each in dashboards), default=0.0)


def _has_died(thread: threading.Thread | None) -> bool:
    # One that is only about to start has no identity yet.
    return thread is not None and thread.ident is not None and not thread.is_alive()
