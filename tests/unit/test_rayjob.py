"""The verdicts of a RayJob controller: the table of the docs, row by row, and its edges."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from jobinfo_cache import (
    BadResponse,
    Cluster,
    DashboardAuthError,
    DashboardUnavailable,
    JobInfo,
    JobInfoCacheError,
    JobNotFound,
    JobSnapshot,
    TryAgain,
)
from jobinfo_cache.rayjob import Action, Limits, Observation, SubmissionMode, Submitter, decide
from tests.support import START, make_info

PAGE = Path(__file__).parents[2] / "docs/reference/rayjob-verdicts.md"
LIMITS = Limits()
NOW = START + timedelta(seconds=1000)
FINISHED = NOW - timedelta(seconds=20)
NEW, OLD = NOW - timedelta(seconds=1), NOW - timedelta(seconds=60)
ANSWERS = ("silence", "not found", "live", "SUCCEEDED", "STOPPED", "FAILED")
TERMINAL = ("SUCCEEDED", "STOPPED", "FAILED")


class Case(NamedTuple):
    """The columns of the table that say when a row fits."""

    mode: str
    answer: str
    age: str
    submitter: str
    before: str
    since: str


class Row(NamedTuple):
    """One row of the table."""

    number: str
    when: Case
    action: str
    reason: str
    answered: str

    def fits(self, case: Case) -> bool:
        """Whether the row is about the case."""
        mode = {case.mode, "pod"} if case.mode in ("K8sJob", "Sidecar") else {case.mode}
        wanted = zip(self.when[1:], case[1:], strict=True)
        return self.when.mode in mode | {"*"} and all(want in (is_, "*") for want, is_ in wanted)


def read_table() -> list[Row]:
    lines = re.findall(r"^\| \d+ \|.*\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    rows = []
    for line in lines:
        number, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        rows.append(Row(number, Case(*cells[:6]), *cells[6:]))
    return rows


ROWS = read_table()


def cases() -> Iterator[Case]:
    """Every combination of the columns that can happen."""
    modes = ("HTTP", "K8sJob", "Sidecar", "Interactive")
    submitters = ("running", "succeeded", "failed")
    every = itertools.product(
        modes, ANSWERS, ("new", "old"), submitters, ("no", "yes"), ("below", "above")
    )
    for case in (Case(*columns) for columns in every):
        if case.mode == "HTTP" and case.before == "yes" and case.answer in TERMINAL:
            if case.age == "new":  # else see the test of that
                yield case
            continue
        submitted = case.mode == "HTTP" and case.before == "yes"
        finished = case.mode != "Interactive" and case.submitter != "running"
        # An answer is old when something has happened since.
        if case.age == "new" or submitted or finished:
            yield case


def make_answer(case: Case) -> JobInfo | JobInfoCacheError:
    fetched_at = OLD if case.age == "old" else NEW
    if case.answer == "silence":
        return DashboardUnavailable("refused", fetched_at=fetched_at)
    if case.answer == "not found":
        return JobNotFound("no such job", job_id="a", fetched_at=fetched_at)
    status = "RUNNING" if case.answer == "live" else case.answer
    return make_info(status, fetched_at=fetched_at)


def observe(case: Case) -> Observation:
    submitter = Submitter(FINISHED, case.submitter == "succeeded")
    silent = LIMITS.status_check_timeout + (1 if case.since == "above" else -1)
    submitted = case.mode == "HTTP" and case.before == "yes"
    return Observation(
        SubmissionMode(f"{case.mode}Mode"),
        make_answer(case),
        NOW,
        seen=case.before == "yes" and not submitted,
        submitted_at=FINISHED if submitted else None,
        submitter=None if case.submitter == "running" else submitter,
        unanswered_since=NOW - timedelta(seconds=silent),
    )


@pytest.mark.parametrize("case", list(cases()), ids=" ".join)
def test_every_case_ends_as_the_first_row_that_fits_says(case: Case) -> None:
    """For each combination of the columns there is a row, and the verdict is the first one's."""
    row = next(row for row in ROWS if row.fits(case))
    verdict = decide(observe(case))
    said = (verdict.action.value, verdict.reason, "yes" if verdict.answered else "no")

    assert (row.action, row.reason, row.answered) == said, f"row {row.number}"
    assert (verdict.retry_after is not None) == (verdict.action is Action.WAIT)
    assert verdict.message


@pytest.mark.parametrize("row", ROWS, ids=[row.number for row in ROWS])
def test_every_row_is_the_first_that_fits_some_case(row: Row) -> None:
    """No row of the table is hidden by those above it."""
    firsts = [next(each for each in ROWS if each.fits(case)) for case in cases()]

    assert row in firsts


@pytest.mark.parametrize("status", ["RUNNING", "SUCCEEDED", "FAILED"])
def test_answer_from_before_the_own_submission_never_decides(status: str) -> None:
    """Not even an end counts that was fetched before this controller submitted the job."""
    info = make_info(status, fetched_at=OLD)
    verdict = decide(Observation(SubmissionMode.HTTP, info, NOW, submitted_at=NEW))

    assert (verdict.action, verdict.newer_than, verdict.answered) == (Action.WAIT, NEW, False)


@pytest.mark.parametrize(
    ("seconds", "action"), [(1.9, Action.WAIT), (2.0, Action.SUBMISSION_FAILED)]
)
def test_not_found_counts_from_the_submitters_end_and_the_tolerance_on(
    seconds: float, action: Action
) -> None:
    """One second for Kubernetes' rounding and one for its clock: not found before waits."""
    fetched_at = FINISHED + timedelta(seconds=seconds)
    answer = JobNotFound("no such job", job_id="a", fetched_at=fetched_at)
    submitter = Submitter(FINISHED, succeeded=False)
    verdict = decide(Observation(SubmissionMode.K8S_JOB, answer, NOW, submitter=submitter))

    assert action == verdict.action
    wanted = FINISHED + timedelta(seconds=2) if action is Action.WAIT else None
    assert wanted == verdict.newer_than


def test_giving_up_counts_by_the_controllers_own_clock() -> None:
    """In HTTP mode a "not found" that was asked for after the last attempt needs no tolerance."""
    submitter = Submitter(FINISHED, succeeded=False)
    verdicts = [
        decide(
            Observation(
                SubmissionMode.HTTP,
                JobNotFound("no such job", job_id="a", fetched_at=fetched_at),
                NOW,
                submitter=submitter,
            )
        )
        for fetched_at in (FINISHED - timedelta(microseconds=1), FINISHED)
    ]

    assert [verdict.action for verdict in verdicts] == [Action.WAIT, Action.SUBMISSION_FAILED]
    assert verdicts[0].newer_than == FINISHED


@pytest.mark.parametrize(("seconds", "action"), [(29, Action.WAIT), (30, Action.COMPLETE)])
def test_submitter_that_does_not_end_is_waited_for_in_bounded_time(
    seconds: float, action: Action
) -> None:
    """A job that has ended waits for its submitter for `submitter_timeout` and no longer."""
    info = make_info("SUCCEEDED", fetched_at=NOW - timedelta(seconds=seconds))
    verdict = decide(Observation(SubmissionMode.SIDECAR, info, NOW))

    assert action == verdict.action
    assert verdict.retry_after == (1.0 if action is Action.WAIT else None)


@pytest.mark.parametrize(
    "answer",
    [
        TryAgain("no answer", reason="pending", retry_after=0.5),
        TryAgain("too old", reason="stale", retry_after=0.5, last_info=make_info("RUNNING")),
        DashboardAuthError("403", status_code=403, fetched_at=NEW),
        BadResponse("404 of a proxy", status_code=404, fetched_at=NEW),
    ],
    ids=["pending", "stale", "auth", "bad response"],
)
def test_what_is_no_answer_never_submits_and_ends_in_bounded_time(
    answer: JobInfoCacheError,
) -> None:
    """Whatever else is raised waits, and after `status_check_timeout` it is an end."""
    observation = Observation(SubmissionMode.HTTP, answer, NOW)
    first = decide(observation)
    long_since = NOW - timedelta(seconds=LIMITS.status_check_timeout)
    last = decide(replace(observation, unanswered_since=long_since))

    assert (first.action, first.answered) == (Action.WAIT, False)
    assert last.action == Action.STATUS_CHECK_FAILED


@pytest.mark.parametrize(
    ("info", "error", "fresh", "action", "answered"),
    [
        (None, None, False, Action.WAIT, False),
        ("RUNNING", None, True, Action.WAIT, True),
        ("RUNNING", None, False, Action.WAIT, False),
        ("RUNNING", DashboardUnavailable("refused", fetched_at=NEW), False, Action.WAIT, False),
        ("RUNNING", JobNotFound("no", job_id="a", fetched_at=NEW), False, None, True),
        ("SUCCEEDED", None, True, Action.COMPLETE, True),
    ],
)
def test_snapshot_counts_by_its_newest_outcome(
    info: str | None,
    error: DashboardUnavailable | JobNotFound | None,
    fresh: bool,
    action: Action | None,
    answered: bool,
) -> None:
    """Of a snapshot the error decides if there is one, and an info only while it is fresh."""
    shown = None if info is None else make_info(info, fetched_at=NEW)
    at = None if info is None else NEW
    snapshot = JobSnapshot(
        "a", Cluster("ns", "one"), shown, error, fresh, at, 1.0, 0, None, retry_after=0.7
    )
    verdict = decide(Observation(SubmissionMode.HTTP, snapshot, NOW, seen=True))

    assert (action or Action.APPLICATION_FAILED, answered) == (verdict.action, verdict.answered)
    assert verdict.retry_after == (0.7 if action is Action.WAIT else None)


def test_unknown_status_is_live() -> None:
    """A status of a later Ray is neither an end nor silence."""
    verdict = decide(Observation(SubmissionMode.HTTP, make_info("PAUSED", fetched_at=NEW), NOW))

    assert (verdict.action, verdict.answered) == (Action.WAIT, True)


def test_times_without_a_zone_are_refused() -> None:
    """A naive time is a ValueError that names it, not a wrong verdict."""
    with pytest.raises(ValueError, match=r"now is .* aware"):
        decide(Observation(SubmissionMode.HTTP, make_info(), datetime(2026, 1, 1)))
