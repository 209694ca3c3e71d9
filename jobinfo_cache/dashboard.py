"""The plain, synchronous client of one Ray dashboard."""

from __future__ import annotations

import copy
import functools
import hashlib
import json
import ssl
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any
from urllib.parse import quote

from jobinfo_cache import answers, arguments
from jobinfo_cache.answers import Answer
from jobinfo_cache.credentials import Credentials, Header, SentHeaders, Token
from jobinfo_cache.errors import DashboardAuthError
from jobinfo_cache.job import JobInfo, check_job_id
from jobinfo_cache.listing import Listing
from jobinfo_cache.transport import Transport

__all__ = ["DashboardClient"]

_JOBS = "/api/jobs/"
_SERVE = "/api/serve/applications/"


class DashboardClient:
    """Asks one Ray dashboard; each method sends its request and waits for the answer.

    Safe from any thread. A method blocks for at most `timeout` seconds, a name look-up and the
    token's source aside. All methods raise the errors of `jobinfo_cache.errors`:
    `DashboardUnavailable`, `DashboardAuthError`, `BadResponse`, and those that they name.

    `url` is `http(s)://host[:port][/prefix]`. `token` is a str, a callable that returns one, or
    the `pathlib.Path` of a file; the latter two are asked again when the dashboard refuses the
    token. `headers` are added to each request; a value that is a callable is asked for each.
    `verify` is True, False, a CA bundle's path, or an `ssl.SSLContext` for such clients only.
    `proxies` maps a scheme to a proxy's URL; None takes the environment's, {} none.
    `max_response_bytes` bounds a body, decompressed. `json_loads` gets bytes.

    One connection is kept; `close` closes it, after which the client can still be used. Clients
    made with equal arguments are equal. Wrong arguments are a `ValueError` or a `TypeError`.

    .. versionadded:: 0.1.0
    """

    def __init__(
        self,
        url: str,
        *,
        token: Token | None = None,
        headers: Mapping[str, Header] | None = None,
        timeout: float = 2.0,
        verify: bool | str | ssl.SSLContext = True,
        proxies: Mapping[str, str] | None = None,
        max_response_bytes: int = 33_554_432,
        json_loads: Callable[[bytes], Any] = json.loads,
    ) -> None:
        self._url = arguments.checked_url(url)
        self._timeout = arguments.checked_timeout(timeout)
        self._json_loads = json_loads
        self._credentials = Credentials(token, headers)
        verify = arguments.checked_verify(verify)
        proxies = arguments.checked_proxies(proxies)
        max_bytes = arguments.checked_size(max_response_bytes)
        self._transport = Transport(
            self._url,
            verify=verify,
            proxies=proxies,
            max_response_bytes=max_bytes,
            redact=self._credentials.redact,
            hide=self._credentials.hide,
        )
        self._arguments = (
            self._url,
            self._timeout,
            self._credentials.source,
            self._credentials.headers,
            verify,
            proxies,
            max_bytes,
            json_loads,
        )

    @property
    def url(self) -> str:
        """The dashboard's URL, without a trailing slash."""
        return self._url

    @property
    def timeout(self) -> float:
        """The total deadline of one request, in seconds."""
        return self._timeout

    def get_job_info(self, job_id: str) -> JobInfo:
        """What the dashboard says about the job; raises `InvalidJobId`, `JobNotFound`.

        .. versionadded:: 0.1.0
        """
        job_id = check_job_id(job_id)
        answer = self._ask("GET", _path_of(job_id), job_id=job_id)
        return answers.job_info(answer, self._json(answer), job_id, self._credentials.redact)

    def list_jobs(self) -> list[JobInfo]:
        """All jobs that the dashboard has a readable record of, in no particular order.

        .. versionadded:: 0.1.0
        """
        return self._listing().jobs()

    def _listing(self) -> Listing:
        """The list as it came; for the cache, which need not read again what it has read."""
        answer = self._ask("GET", _JOBS)

        def jobs() -> list[JobInfo]:
            return answers.job_list(answer, self._json(answer), self._credentials.redact)

        return Listing(hashlib.sha256(answer.content).digest(), jobs)

    def submit_job(
        self,
        entrypoint: str,
        *,
        submission_id: str | None = None,
        runtime_env: Mapping[str, Any] | None = None,
        metadata: Mapping[str, str] | None = None,
        entrypoint_num_cpus: float | None = None,
        entrypoint_num_gpus: float | None = None,
        entrypoint_memory: int | None = None,
        entrypoint_resources: Mapping[str, float] | None = None,
    ) -> str:
        """Submit a job and return its submission id, `submission_id` if that was given.

        `entrypoint_memory` is bytes. Sent once only: after `DashboardUnavailable` the job may
        have been submitted. Raises `JobConflict` when the id is in use, `InvalidJobId`, and
        `TypeError` or `ValueError` for arguments that cannot be sent.

        .. versionadded:: 0.1.0
        """
        if submission_id is not None:
            submission_id = check_job_id(submission_id)
        job = arguments.checked_job(
            entrypoint=entrypoint,
            submission_id=submission_id,
            runtime_env=runtime_env,
            metadata=metadata,
            entrypoint_num_cpus=entrypoint_num_cpus,
            entrypoint_num_gpus=entrypoint_num_gpus,
            entrypoint_memory=entrypoint_memory,
            entrypoint_resources=entrypoint_resources,
        )
        redact = self._redacting(runtime_env)
        answer = self._ask("POST", _JOBS, job, job_id=submission_id, redact=redact)
        body = self._json_object(answer, redact)
        submitted = body.get("submission_id") or body.get("job_id")
        if not isinstance(submitted, str):
            raise answers.bad(answer, redact, "no submission id")
        return submitted

    def get_job_log(self, job_id: str) -> str:
        """The job's output so far; raises `InvalidJobId`, `JobNotFound`, `JobConflict`.

        .. versionadded:: 0.1.0
        """
        answer = self._ask_job("GET", job_id, "/logs")
        return str(self._field(answer, "logs", str))

    def stop_job(self, job_id: str) -> bool:
        """Ask for the job's end: True when that was accepted, False when it had already ended.

        Asks about the job as well when the answer is "not stopped", so it may take `timeout`
        twice. Raises `InvalidJobId`, `JobNotFound`, `JobConflict`; `BadResponse` when the job
        goes on although the dashboard did not stop it.

        .. versionadded:: 0.1.0
        """
        answer = self._ask_job("POST", job_id, "/stop")
        if self._field(answer, "stopped", bool):
            return True
        status = self.get_job_info(job_id).status
        if not status.is_terminal:
            raise answers.bad(answer, self._credentials.redact, f"but the job is {status}")
        return False

    def delete_job(self, job_id: str) -> None:
        """Delete the record of a job that has ended.

        Raises `InvalidJobId`, `JobNotFound`, and `JobConflict` when it has not ended.

        .. versionadded:: 0.1.0
        """
        answer = self._ask_job("DELETE", job_id)
        if not self._field(answer, "deleted", bool):
            raise answers.bad(answer, self._credentials.redact, "the job was not deleted")

    def get_serve_details(self) -> dict[str, Any]:
        """The state of Ray Serve, for the applications that were deployed by a config.

        .. versionadded:: 0.1.0
        """
        answer = self._ask("GET", f"{_SERVE}?api_type=declarative")
        return self._json_object(answer, self._credentials.redact)

    def get_multi_application_status(self) -> dict[str, Any]:
        """The applications in `get_serve_details`, by name.

        .. versionadded:: 0.1.0
        """
        answer = self._ask("GET", f"{_SERVE}?api_type=declarative")
        applications: dict[str, Any] = self._field(answer, "applications", dict)
        return applications

    def update_deployments(self, config: Mapping[str, Any]) -> None:
        """Make `config`, a Ray Serve config, the one that runs.

        Raises `TypeError` or `ValueError` when it cannot be written as JSON.

        .. versionadded:: 0.1.0
        """
        body = arguments.checked_config(config)
        self._ask("PUT", _SERVE, body, redact=self._redacting(config))

    def get_version(self) -> dict[str, Any]:
        """The dashboard's versions, and the name of its session.

        .. versionadded:: 0.1.0
        """
        return self._json_object(self._ask("GET", "/api/version"), self._credentials.redact)

    def with_timeout(self, timeout: float) -> DashboardClient:
        """This client with a deadline of `timeout` seconds, if that is sooner than its own.

        It shares the connection and the credentials. Never blocks.

        .. versionadded:: 0.1.0
        """
        other = copy.copy(self)
        timeout = min(timeout, self._timeout)
        url, _, *others = self._arguments
        vars(other).update(_timeout=timeout, _arguments=(url, timeout, *others))
        return other

    def separate(self) -> DashboardClient:
        """An equal client, with a connection and requests of its own. Never blocks.

        It shares the credentials. A cache asks through one, so that its end is nobody else's.

        .. versionadded:: 0.1.0
        """
        other = copy.copy(self)
        vars(other)["_transport"] = self._transport.separate()
        return other

    def close(self) -> None:
        """Close the kept connection. Never blocks; requests under way go on.

        .. versionadded:: 0.1.0
        """
        self._transport.close()

    def abort(self) -> None:
        """End this client: requests under way and later ones fail with `DashboardUnavailable`.

        They do at once. Never blocks.

        .. versionadded:: 0.1.0
        """
        self._transport.abort()

    def __enter__(self) -> DashboardClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DashboardClient):
            return NotImplemented
        return self._arguments == other._arguments

    def __hash__(self) -> int:
        return hash((self._url, self._timeout))

    def __repr__(self) -> str:
        return f"DashboardClient({self._url!r}, timeout={self._timeout!r})"

    def _ask_job(self, method: str, job_id: str, action: str = "") -> Answer:
        job_id = check_job_id(job_id)
        return self._ask(method, _path_of(job_id) + action, job_id=job_id)

    def _ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        job_id: str | None = None,
        redact: answers.Redact | None = None,
    ) -> Answer:
        """Send a request, once more if it was refused and there is a new token by now."""
        timeout = self._timeout
        send = functools.partial(
            self._transport.send,
            method,
            path,
            body=body,
            timeout=timeout,
            deadline=time.monotonic() + timeout,
        )
        sent = self._headers(method, path, None)
        answer = send(headers=sent.headers)
        if answer.status in (401, 403):
            renewed = self._headers(method, path, sent)
            if renewed is not sent:
                answer = send(headers=renewed.headers)
        if answer.status != 200:
            raise answers.refusal(answer, redact or self._credentials.redact, job_id)
        return answer

    def _headers(self, method: str, path: str, refused: SentHeaders | None) -> SentHeaders:
        try:
            if refused is None:
                return self._credentials.current()
            return self._credentials.after_refusal(refused) or refused
        except DashboardAuthError as error:
            error.url = self._url + path
            error.args = (f"{method} {error.url}: {error}",)
            raise

    def _redacting(self, secret: Any) -> answers.Redact:
        hidden = arguments.texts_in(secret)
        return lambda text: self._credentials.redact(answers.without(text, hidden))

    def _json(self, answer: Answer, redact: answers.Redact | None = None) -> Any:
        try:
            return self._json_loads(answer.content)
        except Exception as error:
            fault = type(error).__name__
        # Outside the handler: the parser's error holds the whole body.
        raise answers.bad(answer, redact or self._credentials.redact, f"no JSON ({fault})")

    def _json_object(self, answer: Answer, redact: answers.Redact) -> dict[str, Any]:
        body = self._json(answer, redact)
        if not isinstance(body, dict):
            raise answers.bad(answer, redact, "no JSON object")
        return body

    def _field(self, answer: Answer, name: str, kind: type) -> Any:
        redact = self._credentials.redact
        value = self._json_object(answer, redact).get(name)
        if not isinstance(value, kind):
            raise answers.bad(answer, redact, f"no {name} in it")
        return value


def _path_of(job_id: str) -> str:
    return _JOBS + quote(job_id, safe="")
