"""A job as a dashboard describes it: its id, and all that is known of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import FrozenInstanceError
from datetime import datetime, timedelta, timezone
from typing import Any, NoReturn

from jobinfo_cache.errors import InvalidJobId
from jobinfo_cache.job_status import JobStatus

__all__ = ["JobInfo", "check_job_id", "parsed_job"]

MAX_JOB_ID_LENGTH = 1024
_MOST_LEVELS = 100
_NO_JOB = f"raw is no mapping nested at most {_MOST_LEVELS} levels deep"
_CONTAINERS = (dict, list)  # JSON makes no others
_SHARED = 256  # characters; longer texts are seldom equal
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def check_job_id(job_id: str) -> str:
    """The id as an exact `str`; raises `InvalidJobId` if no request could name such a job.

    An empty id, "." and ".." make a dashboard answer about other things (its whole list).
    """
    if not isinstance(job_id, str):
        raise InvalidJobId(f"job_id must be a str, not {type(job_id).__name__}")
    job_id = str.__str__(job_id)  # what it holds: an enum member, for one, says another text
    if job_id in ("", ".", ".."):
        raise InvalidJobId(f"job_id is {job_id!r}; it must name one job")
    if len(job_id) > MAX_JOB_ID_LENGTH:
        raise InvalidJobId(
            f"job_id {job_id[:32]!r}… has {len(job_id)} characters; at most {MAX_JOB_ID_LENGTH} go"
        )
    if not job_id.isprintable() and any(_is_control(char) for char in job_id):
        raise InvalidJobId(f"job_id {job_id[:64]!r} holds a control character or half a character")
    return job_id


def _is_control(char: str) -> bool:
    code = ord(char)
    return code < 0x20 or 0x7F <= code < 0xA0 or 0xD800 <= code < 0xE000


class JobInfo:
    """What a dashboard said about one job. Immutable and hashable; safe from any thread.

    A field that was missing, null or of an odd type is None. Mappings are handed out as fresh
    copies. `fetched_at` (aware UTC) is when the request was sent, so the value is never older
    than that. `raw` is the whole answer, fields of newer Ray versions included.
    Made from a copy of a dashboard's JSON object; raises `ValueError` if that is none, has no
    status, or is nested deeper than 100 levels, which could not be copied in every thread.

    .. versionadded:: 0.1.0
    """

    __slots__ = ("_raw", "fetched_at", "status")

    status: JobStatus
    fetched_at: datetime
    _raw: dict[str, Any]  # its own

    def __init__(self, raw: Mapping[str, Any], *, fetched_at: datetime) -> None:
        if not isinstance(raw, Mapping) or _is_too_deep(raw):
            raise ValueError(_NO_JOB)
        own = _fresh_copy(raw)
        _fill(self, own, JobStatus(own.get("status")), fetched_at)

    def stamped(self, fetched_at: datetime, older: JobInfo | None = None) -> JobInfo:
        """The same answer with another `fetched_at`, in shared memory. Never blocks.

        It shares that of an equal `older` one, or of other jobs' equal texts: most polls bring
        nothing new, and most jobs of a cluster have most texts in common.

        .. versionadded:: 0.1.0
        """
        if older is not None and _is_same(older._raw, self._raw):  # noqa: SLF001 - the same class
            return _made(older._raw, older.status, fetched_at)  # noqa: SLF001
        _share_texts(self._raw)
        return _made(self._raw, self.status, fetched_at)

    @property
    def job_id(self) -> str | None:
        """Ray's own id ("03000000"); None for a submission whose driver has not connected."""
        return self._text("job_id")

    @property
    def submission_id(self) -> str | None:
        """The id the job was submitted under; None for a driver job."""
        return self._text("submission_id")

    @property
    def type(self) -> str | None:
        """ "SUBMISSION" or "DRIVER"."""
        return self._text("type")

    @property
    def entrypoint(self) -> str | None:
        """The command that runs."""
        return self._text("entrypoint")

    @property
    def message(self) -> str | None:
        """The dashboard's words on the status; for a failed job up to 20,000 characters of log."""
        return self._text("message")

    @property
    def error_type(self) -> str | None:
        """Why the job failed, as one word of Ray's."""
        return self._text("error_type")

    @property
    def start_time(self) -> datetime | None:
        """When the job was submitted (aware UTC)."""
        return self._time("start_time")

    @property
    def end_time(self) -> datetime | None:
        """When the job ended (aware UTC)."""
        return self._time("end_time")

    @property
    def metadata(self) -> dict[str, Any] | None:
        """What the submitter attached, as a fresh copy."""
        return self._mapping("metadata")

    @property
    def runtime_env(self) -> dict[str, Any] | None:
        """The job's runtime environment, secrets included, as a fresh copy; not in `repr`."""
        return self._mapping("runtime_env")

    @property
    def driver_info(self) -> dict[str, Any] | None:
        """The driver's id, node address and pid, as a fresh copy."""
        return self._mapping("driver_info")

    @property
    def driver_agent_http_address(self) -> str | None:
        """Where the agent of the driver's node listens."""
        return self._text("driver_agent_http_address")

    @property
    def driver_node_id(self) -> str | None:
        """The node that the driver runs on."""
        return self._text("driver_node_id")

    @property
    def driver_exit_code(self) -> int | None:
        """The exit code of the entrypoint, once it has ended."""
        value = self._raw.get("driver_exit_code")
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    @property
    def raw(self) -> dict[str, Any]:
        """The whole answer as a fresh copy, secrets included."""
        return dict(_fresh_copy(self._raw))

    def to_dict(self) -> dict[str, Any]:
        """All fields but `raw`, ready for JSON: times as ISO 8601 texts. Holds `runtime_env`.

        .. versionadded:: 0.1.0
        """
        fields: dict[str, Any] = {name: getattr(self, name) for name in _FIELDS}
        for name in ("start_time", "end_time", "fetched_at"):
            if fields[name] is not None:
                fields[name] = fields[name].isoformat()
        fields["status"] = str(self.status)
        return fields

    def _text(self, name: str) -> str | None:
        value = self._raw.get(name)
        return value if isinstance(value, str) else None

    def _mapping(self, name: str) -> dict[str, Any] | None:
        value = self._raw.get(name)
        return _fresh_copy(value) if isinstance(value, dict) else None

    def _time(self, name: str) -> datetime | None:
        value = self._raw.get(name)
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not value:
            return None
        try:
            return _EPOCH + timedelta(milliseconds=value)
        except (OverflowError, ValueError):
            return None

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, JobInfo):
            return NotImplemented
        return self.fetched_at == other.fetched_at and _is_same(self._raw, other._raw)

    def __hash__(self) -> int:
        return hash((self.submission_id, self.job_id, self.status, self.fetched_at))

    def __repr__(self) -> str:
        shown = ("submission_id", "job_id", "type", "status", "entrypoint", "fetched_at")
        return f"JobInfo({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _job_info, (self._raw, self.fetched_at)


_FIELDS = (
    "job_id",
    "submission_id",
    "type",
    "status",
    "entrypoint",
    "message",
    "error_type",
    "start_time",
    "end_time",
    "metadata",
    "runtime_env",
    "driver_info",
    "driver_agent_http_address",
    "driver_node_id",
    "driver_exit_code",
    "fetched_at",
)


def _job_info(raw: Mapping[str, Any], fetched_at: datetime) -> JobInfo:
    return JobInfo(raw, fetched_at=fetched_at)


def parsed_job(raw: Any, fetched_at: datetime) -> JobInfo:
    """The job in a parsed answer, without a copy: nobody else may hold `raw`.

    Raises `ValueError` as `JobInfo` does.
    """
    if not isinstance(raw, dict) or _is_too_deep(raw):
        raise ValueError(_NO_JOB)
    return _made(raw, JobStatus(raw.get("status")), fetched_at)  # type: ignore[arg-type]


def _made(raw: dict[str, Any], status: JobStatus, fetched_at: datetime) -> JobInfo:
    info = object.__new__(JobInfo)
    _fill(info, raw, status, fetched_at)
    return info


def _fill(info: JobInfo, raw: dict[str, Any], status: JobStatus, fetched_at: datetime) -> None:
    set_field = object.__setattr__
    set_field(info, "_raw", raw)
    set_field(info, "status", status)
    set_field(info, "fetched_at", fetched_at)


def _share_texts(raw: dict[str, Any]) -> None:
    """Put other jobs' equal texts in the place of this one's."""
    for name, value in raw.items():
        if type(value) is str and len(value) < _SHARED:
            raw[name] = sys.intern(value)


def _is_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether answers are equal, their fields' types too: to `==` 1, 1.0 and true are the same."""
    if one is other:
        return True
    return one == other and list(map(type, one.values())) == list(map(type, other.values()))


def _is_too_deep(raw: Mapping[str, Any]) -> bool:
    level = [value for value in raw.values() if value.__class__ in _CONTAINERS and value]
    for _ in range(_MOST_LEVELS):
        if not level:
            return False
        level = [
            value
            for container in level
            for value in (container.values() if container.__class__ is dict else container)
            if value.__class__ in _CONTAINERS and value
        ]
    return True


def _fresh_copy(value: Any) -> Any:
    # Through JSON, where the value came from: one C call deep, however deep the value.
    return json.loads(json.dumps(value, default=dict))  # what is no dict is some other mapping
