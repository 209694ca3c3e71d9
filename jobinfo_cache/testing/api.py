"""What a Ray dashboard answers to each request."""

from __future__ import annotations

import json
import os
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.message import Message
from http.cookies import SimpleCookie
from typing import Any

from jobinfo_cache.clock import Clock
from jobinfo_cache.testing import texts
from jobinfo_cache.testing.submit import complaint_about
from jobinfo_cache.testing.table import JobTable, UnknownJobError, UsedIdError

__all__ = ["Answer", "Api", "Call", "html_answer", "text_answer"]

_JSON = "application/json; charset=utf-8"
_TEXT = "text/plain; charset=utf-8"
_HTML = "text/html"  # a file's, to which no charset is added
_OPEN_PATHS = ("/", "/favicon.ico", "/api/authentication_mode", "/api/gcs_healthz")
_BROWSER_HEADERS = (
    "Referer",
    "Origin",
    "Sec-Fetch-Mode",
    "Sec-Fetch-Dest",
    "Sec-Fetch-Site",
    "Sec-Fetch-User",
    "Access-Control-Request-Method",
    "Access-Control-Request-Headers",
)
_BROWSER_METHODS = ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True)
class Call:
    """One request. `path` is as sent, with its query; `headers` find any case of a name."""

    method: str
    path: str
    headers: Message
    body: bytes = b""

    @property
    def bare_path(self) -> str:
        """The path without its query."""
        return self.path.partition("?")[0]

    def is_from_browser(self) -> bool:
        """Whether Ray takes the client for a browser."""
        agent = self.headers.get("User-Agent", "")
        return agent.startswith("Mozilla") or any(name in self.headers for name in _BROWSER_HEADERS)


@dataclass(frozen=True)
class Answer:
    """One response."""

    status: int
    body: bytes
    content_type: str = _TEXT
    headers: Mapping[str, str] = field(default_factory=dict)


def text_answer(status: int, text: str) -> Answer:
    return Answer(status, text.encode(errors="replace"))


def html_answer(text: str) -> Answer:
    return Answer(200, text.encode(), _HTML)


def _json_answer(value: Any) -> Answer:
    return Answer(200, json.dumps(value).encode(), _JSON)


class Api:
    """The answers of one dashboard. Safe from any thread."""

    def __init__(self, clock: Clock, token: str | None) -> None:
        self._clock = clock
        self._restarts = 0
        self.jobs = JobTable(clock)
        self.token = token
        self.serve = False
        self.stop_delay = 0.0
        self.session_name = self._new_session_name()

    def restart(self) -> None:
        """Become a new head: no jobs, another session."""
        self._restarts += 1
        self.jobs.clear()
        self.session_name = self._new_session_name()

    def answer(self, call: Call) -> Answer:
        """The answer to a request; a job may change by it."""
        refusal = self._refusal(call)
        if refusal is not None:
            return refusal
        handlers, job_id = _route(call.bare_path)
        if handlers is None:
            return text_answer(404, texts.plain(404))
        handler = handlers.get("GET" if call.method == "HEAD" else call.method)
        if handler is None:
            allowed = sorted([*handlers, "HEAD"] if "GET" in handlers else handlers)
            refused = texts.plain(405).encode()
            return Answer(405, refused, headers={"Allow": ",".join(allowed)})
        try:
            return handler(self, call, job_id)
        except UnknownJobError:
            return text_answer(404, texts.job_not_found(job_id))

    def _new_session_name(self) -> str:
        born = self._clock.now().strftime("%Y-%m-%d_%H-%M-%S_%f")
        return f"session_{born}_{os.getpid() + self._restarts}"

    def _refusal(self, call: Call) -> Answer | None:
        """The answer of the gatekeepers: the token first, then the browser rule."""
        path = call.bare_path
        if self.token is not None and path not in _OPEN_PATHS and not path.startswith("/static/"):
            credentials = _credentials(call.headers)
            if not credentials:
                return text_answer(401, texts.NO_TOKEN)
            if credentials != f"Bearer {self.token}":
                return text_answer(403, texts.WRONG_TOKEN)
        if call.method not in _BROWSER_METHODS and call.is_from_browser():
            return text_answer(405, texts.browser_refused(call.method))
        return None

    def index(self, _call: Call, _job_id: str) -> Answer:
        return html_answer(texts.INDEX)

    def version(self, _call: Call, _job_id: str) -> Answer:
        return _json_answer(
            {
                "version": "4",
                "ray_version": "2.60.0",
                "ray_commit": "b7f4259e944bf6959f721b106adc366ddfa0c356",
                "session_name": self.session_name,
            }
        )

    def authentication_mode(self, _call: Call, _job_id: str) -> Answer:
        mode = "disabled" if self.token is None else "token"
        return _json_answer({"authentication_mode": mode})

    def health(self, _call: Call, _job_id: str) -> Answer:
        return Answer(200, b"success", "application/text; charset=utf-8")

    def list_jobs(self, call: Call, _job_id: str) -> Answer:
        return _json_answer([_shown(record, call) for record in self.jobs.list()])

    def get_job(self, call: Call, job_id: str) -> Answer:
        return _json_answer(_shown(self.jobs.snapshot(job_id), call))

    def submit(self, call: Call, _job_id: str) -> Answer:
        try:
            fields = json.loads(call.body)
        except ValueError:
            fields = None
        if not isinstance(fields, dict):
            return text_answer(500, texts.INTERNAL_ERROR)
        fields = {name: value for name, value in fields.items() if value is not None}
        complaint = complaint_about(fields)
        if complaint is not None:
            return text_answer(400, texts.bad_request(complaint))
        try:
            job_id = self.jobs.submit(fields)
        except UsedIdError as error:
            return text_answer(500, texts.used_id(str(error)))
        return _json_answer({"job_id": job_id, "submission_id": job_id})

    def stop(self, _call: Call, job_id: str) -> Answer:
        if self.jobs.is_driver(job_id):
            return text_answer(400, texts.only_submissions("stop"))
        return _json_answer({"stopped": self.jobs.stop(job_id, self.stop_delay)})

    def delete(self, _call: Call, job_id: str) -> Answer:
        if self.jobs.is_driver(job_id):
            return text_answer(400, texts.only_submissions("delete"))
        submission_id, status = self.jobs.delete(job_id)
        if status is not None:
            return text_answer(500, texts.live_job(submission_id, status))
        return _json_answer({"deleted": True})

    def logs(self, _call: Call, job_id: str) -> Answer:
        if self.jobs.is_driver(job_id):
            return text_answer(400, texts.only_submissions("get logs of"))
        return _json_answer({"logs": self.jobs.logs(job_id)})

    def serve_details(self, _call: Call, _job_id: str) -> Answer:
        if not self.serve:
            return text_answer(501, texts.NO_SERVE)
        empty: dict[str, Any] = {
            "controller_info": {},
            "proxies": {},
            "applications": {},
            "target_capacity": None,
        }
        return _json_answer(empty)

    def deploy(self, _call: Call, _job_id: str) -> Answer:
        return text_answer(200, "") if self.serve else text_answer(501, texts.NO_SERVE)


_Handler = Callable[[Api, Call, str], Answer]
# "*" stands for a job id, which is not empty.
_ROUTES: dict[tuple[str, ...], dict[str, _Handler]] = {
    ("",): {"GET": Api.index},
    ("api", "version"): {"GET": Api.version},
    ("api", "authentication_mode"): {"GET": Api.authentication_mode},
    ("api", "gcs_healthz"): {"GET": Api.health},
    ("api", "serve", "applications", ""): {"GET": Api.serve_details, "PUT": Api.deploy},
    ("api", "jobs", ""): {"GET": Api.list_jobs, "POST": Api.submit},
    ("api", "jobs", "*"): {"GET": Api.get_job, "DELETE": Api.delete},
    ("api", "jobs", "*", "stop"): {"POST": Api.stop},
    ("api", "jobs", "*", "logs"): {"GET": Api.logs},
}


def _route(path: str) -> tuple[dict[str, _Handler] | None, str]:
    """The handlers of a path by method, or None, and the job id in it."""
    parts = path.split("/")[1:]
    if parts[:2] != ["api", "jobs"] or not "".join(parts[2:3]):
        return _ROUTES.get(tuple(parts)), ""
    job_id = urllib.parse.unquote(parts[2])
    handlers = _ROUTES.get(("api", "jobs", "*", *parts[3:]))
    if handlers is None or job_id == "..":
        return None, job_id
    if job_id == ".":  # Ray hands the request on to another server, and the dot is lost
        return _route("/".join(["", "api", "jobs", *(parts[3:] or [""])]))
    return handlers, job_id


def _credentials(headers: Message) -> str:
    """What the request brings: the first of two headers and a cookie that is not empty."""
    header = headers.get("Authorization") or headers.get("X-Ray-Authorization")
    if header:
        return header
    cookie = SimpleCookie(headers.get("Cookie", "")).get("ray-authentication-token")
    return f"Bearer {cookie.value}" if cookie and cookie.value else ""


def _shown(record: dict[str, Any], call: Call) -> dict[str, Any]:
    """The record as this client sees it: browsers see no values of environment variables."""
    environment = record["runtime_env"]
    if not environment or not call.is_from_browser() or "env_vars" not in environment:
        return record
    hidden = dict.fromkeys(environment["env_vars"], "<redacted>")
    return record | {"runtime_env": {**environment, "env_vars": hidden}}
