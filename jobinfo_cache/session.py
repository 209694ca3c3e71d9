"""Noticing that a cluster's head was restarted, where no uid tells its incarnations apart.

A head has a session name, new at each start. It is asked for once after the first good answer,
and again when a job that was known is suddenly not found. Only the worker that handles the
cluster comes here, so nothing is locked.
"""

from __future__ import annotations

from jobinfo_cache.connections import with_timeout
from jobinfo_cache.entry import ClusterState, Entry
from jobinfo_cache.errors import DashboardUnavailable, JobNotFound
from jobinfo_cache.instrumentation import get_logger

__all__ = ["after_answer", "after_not_found"]

log = get_logger(__name__)

_CANNOT_TELL = ""

# Seconds, both guesses:
_PATIENCE = 0.5  # for the answer; the jobs of other clusters wait for this worker
_TRY_AGAIN = 60.0  # after which it is asked for again, if there was none


def after_answer(entry: Entry) -> None:
    """Note which session a good answer came from; may send a request, once."""
    state = entry.state
    if state.session is None and not state.cluster.uid:
        state.session = _ask(state, entry.asked_at)
    entry.session = state.session


def after_not_found(entry: Entry, error: JobNotFound) -> None:
    """Say in the error of a job that was known if the head was restarted since.

    May send a request, if none was sent since the job was seen: one for all that are lost.
    """
    state = entry.state
    if state.cluster.uid or not entry.session:
        return
    if entry.session == state.session and state.session_at <= entry.record.info_at:
        state.session = _ask(state, entry.asked_at) or state.session
    if entry.session != state.session:
        if state.said_restart != state.session:
            log.warning(
                "a head was restarted: its jobs are lost",
                cluster=str(state.cluster),
                session=state.session,
            )
            state.said_restart = state.session
        error.args = (f"{error}; the head was restarted since the job was last seen",)


def _ask(state: ClusterState, now: float) -> str | None:
    """The session's name; None when to ask again later, "" when the dashboard cannot tell."""
    if now < state.session_due:
        return None
    state.session_at = now
    try:
        name = with_timeout(state.dashboard, _PATIENCE).get_version().get("session_name")
    except DashboardUnavailable:
        state.session_due = now + _TRY_AGAIN
        return None
    except Exception:  # a user's own fake may do anything, and this is a courtesy
        return _CANNOT_TELL
    return name if isinstance(name, str) else _CANNOT_TELL
