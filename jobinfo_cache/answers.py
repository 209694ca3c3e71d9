"""What a dashboard answered, and which error it stands for."""

from __future__ import annotations

import html
import http
import json
import re
from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import quote

from jobinfo_cache.errors import (
    BadResponse,
    DashboardAuthError,
    DashboardError,
    DashboardUnavailable,
    JobConflict,
    JobNotFound,
)
from jobinfo_cache.job import JobInfo, parsed_job

__all__ = ["Answer", "Redact", "bad", "job_info", "job_list", "printable", "refusal", "without"]

Redact = Callable[[str], str]

_SHOWN = 200
_LOOKED_AT = 65_536
_LONGEST_DELAY = 365 * 86_400.0
_ENVIRONMENT = re.compile("runtime_?env|env_?vars", re.IGNORECASE)
# What Ray's dashboard says when the state of a job forbids a request.
_CONFLICTS = (
    ("POST DELETE GET", 400, "submission type jobs"),
    ("DELETE", 500, "in a non-terminal state"),
    ("POST", 500, "Please use a different submission_id"),
)


class Answer(NamedTuple):
    """An HTTP response, read to its end. `sent_at` is when the request was sent (aware UTC)."""

    method: str
    url: str
    sent_at: datetime
    status: int
    content_type: str
    retry_after: str | None
    content: bytes

    @property
    def text(self) -> str:
        """The beginning of the body, whatever bytes it holds."""
        return self.content[:_LOOKED_AT].decode("utf-8", "replace")


def printable(text: str, limit: int = _SHOWN) -> str:
    """At most `limit` characters of the text on one line, without control characters."""
    folded = " ".join(text.split())
    shown = "".join(char for char in folded if char.isprintable())
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def without(text: str, secrets: Iterable[str]) -> str:
    """The text with each of the secrets replaced, also as JSON, HTML and URLs write them."""
    for secret in sorted(set(secrets), key=len, reverse=True):
        quoted = quote(secret, safe="")
        for written in (secret, json.dumps(secret)[1:-1], html.escape(secret), quoted):
            text = text.replace(written, "[secret]")
    return text


def refusal(answer: Answer, redact: Redact, job_id: str | None = None) -> DashboardError:
    """The error that an answer other than 200 stands for; `job_id` is the job it is about."""
    message = _message(answer, redact)
    fields: dict[str, Any] = _fields(answer)
    status, text = answer.status, answer.text
    if status in (401, 403):
        return DashboardAuthError(message, **fields)
    if job_id is not None:
        if status == 404 and text.strip().rstrip(".") == f"Job {job_id} does not exist".rstrip("."):
            return JobNotFound(message, job_id=job_id, **fields)
        if _is_conflict(answer, job_id):
            return JobConflict(message, job_id=job_id, **fields)
    if status == 429 or (500 <= status < 600 and status != 501):
        return DashboardUnavailable(message, retry_after=_delay(answer.retry_after), **fields)
    return BadResponse(message, **fields)


def bad(answer: Answer, redact: Redact, why: str) -> BadResponse:
    """The error for a 200 that makes no sense."""
    return BadResponse(f"{_message(answer, redact)}: {why}", **_fields(answer))


def job_info(answer: Answer, body: Any, job_id: str, redact: Redact) -> JobInfo:
    """The job in the body; raises `BadResponse` or `JobNotFound` when it is not job `job_id`."""
    info = _readable(answer, body)
    if info is None:
        raise bad(answer, redact, "no JSON object with a status")
    if is_ghost(body):
        message = f"{answer.method} {answer.url}: what is left of a record that was deleted"
        raise JobNotFound(message, job_id=job_id, **_fields(answer))
    ids = [body.get("submission_id"), body.get("job_id")]
    named = [name for name in ids if isinstance(name, str)]
    if named and job_id not in named and all(name is None or name in named for name in ids):
        raise bad(answer, redact, "another job than the one asked for")
    return info


def job_list(answer: Answer, body: Any, redact: Redact) -> list[JobInfo]:
    """The jobs in the body, what is none left out; raises `BadResponse` if it is no list of jobs.

    One record that cannot be read hides no other job; to ask for it singly tells what is wrong.
    """
    if not isinstance(body, list):
        raise bad(answer, redact, "no JSON list of jobs")
    infos = [_readable(answer, each) for each in body if not is_ghost(each)]
    jobs = [info for info in infos if info is not None]
    if infos and not jobs:
        raise bad(answer, redact, "no JSON list of jobs")
    return jobs


def _readable(answer: Answer, body: Any) -> JobInfo | None:
    """The job that the object describes, or None if it is no such object."""
    try:
        return parsed_job(body, answer.sent_at)
    except ValueError:
        return None


def is_ghost(body: Any) -> bool:
    """True for the record that Ray makes up when it misses one that was deleted."""
    return (
        isinstance(body, dict)
        and body.get("status") == "FAILED"
        and body.get("error_type") == "JOB_SUPERVISOR_ACTOR_DIED"
        and body.get("entrypoint") == "Entrypoint not found."
        and body.get("start_time") is None
    )


def _is_conflict(answer: Answer, job_id: str) -> bool:
    if answer.method == "GET" and not answer.url.endswith(f"/{quote(job_id, safe='')}/logs"):
        return False  # no state of a job forbids to look at it
    return any(
        answer.method in methods and answer.status == status and words in answer.text
        for methods, status, words in _CONFLICTS
    )


def _fields(answer: Answer) -> dict[str, Any]:
    return {"url": answer.url, "status_code": answer.status, "fetched_at": answer.sent_at}


def _message(answer: Answer, redact: Redact) -> str:
    """One line: what was asked, the status, the content type, the beginning of the body."""
    try:
        phrase = f" {http.HTTPStatus(answer.status).phrase}"
    except ValueError:
        phrase = ""
    kind = printable(redact(answer.content_type), 100) or "no content type"
    head = f"{answer.method} {answer.url}: {answer.status}{phrase}, {kind}"
    text = printable(redact(answer.text), _LOOKED_AT)
    if not text:
        return f"{head}, empty body"
    if _ENVIRONMENT.search(text):
        return f"{head}, a body with a runtime_env, which is not shown"
    # Once more: a secret may have been broken up by characters that are not shown.
    return f'{head}: "{printable(redact(text))}"'


def _delay(retry_after: str | None) -> float | None:
    """The seconds that a Retry-After names, as a number or as a date; None if it names none."""
    text = (retry_after or "").strip()
    if text.isascii() and text.isdigit() and len(text) < 10:
        delay = float(text)
    else:
        try:
            moment = parsedate_to_datetime(text)
            delay = (moment.astimezone(timezone.utc) - datetime.now(timezone.utc)).total_seconds()
        except (ValueError, TypeError, OverflowError, IndexError):
            return None
    return max(delay, 0.0) if delay <= _LONGEST_DELAY else None
