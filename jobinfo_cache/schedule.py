"""When jobs and dashboards are asked: the rhythm of polls, and the backoff after failures.

Pure arithmetic on entries and clusters; the store calls it under its lock. All times are on the
monotonic clock, in seconds.
"""

from __future__ import annotations

import math
import random

from jobinfo_cache.backoff import backoff, jittered
from jobinfo_cache.clock import ROUNDING
from jobinfo_cache.costs import Costs
from jobinfo_cache.entry import ClusterState, Entry
from jobinfo_cache.errors import DashboardError, DashboardUnavailable
from jobinfo_cache.settings import Settings

__all__ = ["Schedule"]

_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_LATENCY_WEIGHT = 0.3  # of the newest request in the moving average of their durations


class Schedule:
    """The rules of the rhythm, for the settings of one cache."""

    def __init__(self, settings: Settings) -> None:
        self._interval = settings.poll_interval
        self._jitter = settings.jitter
        self._max_backoff = settings.max_backoff
        self._drawn = random.random()

    def due(self, state: ClusterState, now: float) -> list[Entry]:
        """The jobs to ask about now, longest due first: all that may be asked, if one is due."""
        now += ROUNDING
        if now < state.not_before:
            return []
        entries = list(state.entries.values())  # at once: `close` may empty it from anywhere
        if not any(entry.due_at <= now for entry in entries):
            return []
        state.share = self._share(entries, now)
        joining = [entry for entry in entries if entry.joins_at <= now]
        return sorted(joining, key=_due_at)  # a round that takes several turns starves nobody

    def next_delay(self, state: ClusterState, now: float) -> float | None:
        """Seconds until the next round; None when no job of the cluster is live."""
        due = min((entry.due_at for entry in list(state.entries.values())), default=math.inf)
        state.next_due = max(due, state.not_before)
        return None if due == math.inf else max(state.next_due - now, 0.0)

    def contact(self, state: ClusterState, now: float) -> bool:
        """The dashboard has answered; True if that ends an outage.

        At first contact, and after an outage, one due time is drawn from the whole interval for
        the jobs that are due now, so that clusters which were reached together spread out.
        """
        recovers = state.failures > 0
        if state.contact_at == -math.inf or recovers:
            state.spread_due = now + self._spread(now)
            for entry in list(state.entries.values()):
                entry.spreads = entry.due_at <= now + ROUNDING
            state.contact_at = now
            state.failing, state.failures = "", 0
            state.cut_short = False
            state.not_before = -math.inf
        return recovers

    def back_off(self, state: ClusterState, error: DashboardError, now: float) -> None:
        """The dashboard itself has failed: leave it alone for a while."""
        state.failures += 1
        state.failing = error.kind
        state.failed_at = now
        delay = jittered(self._backoff(state.failures), self._jitter)
        named = error.retry_after if isinstance(error, DashboardUnavailable) else None
        state.not_before = now + max(delay, min(named or 0.0, self._max_backoff))

    def replaced(self, state: ClusterState, *, moved: bool) -> None:
        """The cluster has another dashboard client; with `moved`, at another address.

        A client that is made anew in each reconcile must not undo the backoff altogether: at one
        address there is still one interval between a failure and the next try.
        """
        if moved:
            state.contact_at = state.not_before = -math.inf
            state.failing, state.failures = "", 0
            state.costs = Costs()
            state.session, state.session_due = None, -math.inf
        else:
            state.not_before = min(state.not_before, state.failed_at + self._interval)

    def after_poll(self, entry: Entry, now: float) -> None:
        """Set when the job is due again, now that the outcome of a poll is in its record."""
        record = entry.record
        if record.is_terminal:
            entry.due_at = entry.joins_at = math.inf
            entry.terminal_at = now
            return
        if entry.state.failures:
            return  # it stays due; the dashboard's backoff decides
        entry.not_before = -math.inf
        if record.error is not None:
            delay = self._backoff(record.failures) * (1.0 - entry.state.share)
            entry.due_at = entry.joins_at = entry.not_before = entry.asked_at + delay
        elif entry.spreads and entry.state.spread_due > now:
            entry.due_at = entry.joins_at = entry.state.spread_due
        else:
            entry.due_at = entry.asked_at + self._interval * (1.0 - entry.state.share)
            entry.joins_at = entry.asked_at + self._interval * (1.0 - self._jitter)
        entry.spreads = False
        if entry.wanted_at > entry.asked_at:
            wanted = max(entry.wanted_at, entry.not_before)
            entry.due_at = min(entry.due_at, wanted)
            entry.joins_at = min(entry.joins_at, wanted)

    def measured(self, state: ClusterState, seconds: float) -> None:
        """A request to the dashboard took so long."""
        state.latency += _LATENCY_WEIGHT * (seconds - state.latency)

    def _share(self, entries: list[Entry], now: float) -> float:
        """The share by which the delays after this round are shortened.

        It is random in the round that the cluster's first healthy job takes part in. Jobs that
        are asked at other times come sooner, until they meet that round and stay with it.
        """
        live = (entry for entry in entries if entry.due_at < math.inf)
        lead = next((entry for entry in live if entry.record.error is None), None)
        if lead is None or lead.joins_at <= now:
            return 1.0 - jittered(1.0, self._jitter)
        meets = 1.0 - (lead.due_at - now) / self._interval
        return meets if 0.0 <= meets <= self._jitter else self._jitter

    def _spread(self, now: float) -> float:
        """The delay to a moment of the interval that is as far from those drawn before as can be.

        Multiples of the golden ratio leave no gap and no crowd, however many are drawn.
        """
        self._drawn = (self._drawn + _GOLDEN) % 1.0
        return (self._drawn * self._interval - now) % self._interval

    def _backoff(self, failures: int) -> float:
        return backoff(failures, base=self._interval, cap=self._max_backoff)


def _due_at(entry: Entry) -> float:
    return entry.due_at
