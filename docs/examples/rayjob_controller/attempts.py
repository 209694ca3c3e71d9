"""What the controller remembers of the attempts under way, in memory only, and what it decides."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from jobinfo_cache import BadResponse, DashboardError, JobSnapshot
from jobinfo_cache.rayjob import Limits, Observation, SubmissionMode, Submitter, Verdict, decide

__all__ = ["MODE", "Attempts"]

MODE = SubmissionMode.HTTP


class Attempts:
    """By job id. The reconciling thread decides and forgets; acts tell of failed submissions."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._unanswered: dict[str, datetime] = {}  # since when answers have not counted
        self._unsubmitted: dict[str, datetime] = {}  # when the first submission failed
        self._given_up: dict[str, Submitter] = {}

    def decide(self, status: dict[str, Any], snapshot: JobSnapshot) -> Verdict:
        """What to do next with a RayJob of that status."""
        job_id, started = status["jobId"], status.get("startTime")
        now = datetime.now(timezone.utc)
        observation = Observation(
            MODE,
            snapshot,
            now,
            seen=bool(status.get("jobStatus")),
            submitted_at=datetime.fromisoformat(started) if started else None,
            submitter=self._given_up.get(job_id),
            unanswered_since=self._unanswered.get(job_id),
        )
        verdict = decide(observation, self._limits)
        if verdict.answered:
            self._unanswered.pop(job_id, None)
        else:
            self._unanswered.setdefault(job_id, now)
        return verdict

    def not_submitted(self, job_id: str, error: DashboardError) -> None:
        """Give up when the submission is refused, or has failed for too long."""
        now = datetime.now(timezone.utc)
        failing = (now - self._unsubmitted.setdefault(job_id, now)).total_seconds()
        if isinstance(error, BadResponse) or failing >= self._limits.status_check_timeout:
            self._given_up[job_id] = Submitter(now, succeeded=False)

    def forget(self, job_id: str) -> None:
        """The attempt is over."""
        for noted in (self._unanswered, self._unsubmitted, self._given_up):
            noted.pop(job_id, None)
