"""Every error of the library.

The tree::

    JobInfoCacheError
    ├── TryAgain              nothing to return now: come back in `retry_after` seconds
    ├── CacheClosed           the cache is closed
    ├── WaitTimeout           `wait` ran out (also a TimeoutError)
    ├── InvalidJobId          the id can be no job's (also a ValueError)
    └── DashboardError        the dashboard, or the way to it, is in trouble
        ├── JobNotFound           it does not know the job
        ├── DashboardUnavailable  refused, reset, timed out, 429, 5xx
        ├── DashboardAuthError    401, 403
        ├── JobConflict           the job's state forbids the request
        └── BadResponse           an answer that makes no sense

Messages are one line and never hold a token, a password or a runtime_env.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

if TYPE_CHECKING:
    from jobinfo_cache.job import JobInfo

__all__ = [
    "BadResponse",
    "CacheClosed",
    "DashboardAuthError",
    "DashboardError",
    "DashboardUnavailable",
    "InvalidJobId",
    "JobConflict",
    "JobInfoCacheError",
    "JobNotFound",
    "TryAgain",
    "WaitTimeout",
]

_E = TypeVar("_E", bound="DashboardError")


class JobInfoCacheError(Exception):
    """The base of all errors of this library.

    .. versionadded:: 0.1.0
    """

    def __reduce__(self) -> tuple[Any, ...]:
        # Keyword-only fields: rebuild from the instance's state, not through __init__.
        return _rebuild, (type(self), self.args), self.__dict__


def _rebuild(cls: type[JobInfoCacheError], args: tuple[Any, ...]) -> JobInfoCacheError:
    error = cls.__new__(cls, *args)
    error.args = args
    return error


class TryAgain(JobInfoCacheError):  # noqa: N818 - a request to the caller, not a fault
    """There is nothing to return now; the answer is on its way.

    `reason` is "pending" (no answer yet, or the failure was already told) or "stale" (there is
    one, but it is older than the caller accepts).
    `retry_after` is the time in seconds, above 0, after which asking again makes sense.
    `last_info` is the last good answer, or None.

    .. versionadded:: 0.1.0
    """

    def __init__(
        self,
        message: str,
        *,
        reason: Literal["pending", "stale"],
        retry_after: float,
        last_info: JobInfo | None = None,
    ) -> None:
        super().__init__(message)
        self.reason: Literal["pending", "stale"] = reason
        self.retry_after = retry_after
        self.last_info = last_info


class CacheClosed(JobInfoCacheError):  # noqa: N818 - the contract's name
    """The cache was closed: it reads and asks nothing any more.

    .. versionadded:: 0.1.0
    """


class WaitTimeout(JobInfoCacheError, TimeoutError):  # noqa: N818 - the contract's name
    """`wait` ran out of time. `last_info` is the last good answer, or None.

    .. versionadded:: 0.1.0
    """

    def __init__(self, message: str, *, last_info: JobInfo | None = None) -> None:
        super().__init__(message)
        self.last_info = last_info


class InvalidJobId(JobInfoCacheError, ValueError):  # noqa: N818 - the contract's name
    """The text can be no job's id: empty, ".", "..", too long, or with control characters.

    .. versionadded:: 0.1.0
    """


class DashboardError(JobInfoCacheError):
    """A request to a dashboard failed. Itself raised for an internal fault, with its cause.

    `url` is what was asked, without credentials. `status_code` is the HTTP status, or None when
    there was no answer. `fetched_at` is when the request was sent (aware UTC).
    `last_info` is the last good answer that the cache holds; None from the plain client.
    `kind` is the word for the class that figures, logs and the command line use.

    .. versionadded:: 0.1.0
    """

    kind: ClassVar[str] = "internal"

    def __init__(
        self,
        message: str,
        *,
        url: str = "",
        status_code: int | None = None,
        fetched_at: datetime | None = None,
        last_info: JobInfo | None = None,
    ) -> None:
        super().__init__(message)
        self.url = url
        self.status_code = status_code
        self.fetched_at = fetched_at
        self.last_info = last_info

    def fresh(self: _E, last_info: JobInfo | None) -> _E:
        """A new exception that says the same, for one reader.

        .. versionadded:: 0.1.0
        """
        error = _rebuild(type(self), self.args)
        error.__dict__.update(self.__dict__, last_info=last_info)
        error.__cause__ = self.__cause__
        return error  # type: ignore[return-value]


class JobNotFound(DashboardError):  # noqa: N818 - the contract's name
    """The dashboard itself says that it does not know the job `job_id`.

    .. versionadded:: 0.1.0
    """

    kind = "not_found"

    def __init__(self, message: str, *, job_id: str, **fields: Any) -> None:
        super().__init__(message, **fields)
        self.job_id = job_id


class DashboardUnavailable(DashboardError):  # noqa: N818 - the contract's name
    """No usable answer: refused, reset, not resolved, deadline passed, 429 or 5xx.

    `retry_after` is the delay in seconds that the server named, or None.

    .. versionadded:: 0.1.0
    """

    kind = "unavailable"

    def __init__(self, message: str, *, retry_after: float | None = None, **fields: Any) -> None:
        super().__init__(message, **fields)
        self.retry_after = retry_after


class DashboardAuthError(DashboardError):
    """The dashboard, or something before it, refused the credentials (401, 403).

    .. versionadded:: 0.1.0
    """

    kind = "auth"


class JobConflict(DashboardError):  # noqa: N818 - the contract's name
    """The state of job `job_id` forbids the request.

    Its submission id is in use, it is live and cannot be deleted, or it is a driver job, which
    can be neither stopped nor deleted and has no logs.

    .. versionadded:: 0.1.0
    """

    kind = "conflict"

    def __init__(self, message: str, *, job_id: str, **fields: Any) -> None:
        super().__init__(message, **fields)
        self.job_id = job_id


class BadResponse(DashboardError):  # noqa: N818 - the contract's name
    """An answer that makes no sense: a redirect, not JSON, the wrong shape, too large, …

    .. versionadded:: 0.1.0
    """

    kind = "bad_response"
