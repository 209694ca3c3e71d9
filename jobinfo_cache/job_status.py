"""The status of a job."""

from __future__ import annotations

from typing import Any, ClassVar

__all__ = ["JobStatus"]


class JobStatus(str):
    """The status of a job: its text, as the dashboard sent it. Immutable.

    A text that Ray does not use today is kept and is not terminal. `str()`, `format()` and JSON
    give the bare text. An empty text is a `ValueError`.

    .. versionadded:: 0.1.0
    """

    __slots__ = ()

    PENDING: ClassVar[JobStatus]
    RUNNING: ClassVar[JobStatus]
    STOPPED: ClassVar[JobStatus]
    SUCCEEDED: ClassVar[JobStatus]
    FAILED: ClassVar[JobStatus]

    def __new__(cls, text: str) -> JobStatus:
        if not isinstance(text, str) or not text:
            raise ValueError(f"{text!r} is no status; it must be a text that is not empty")
        text = str.__str__(text)  # what it holds: an enum member, for one, says another text
        return _KNOWN.get(text) or super().__new__(cls, text)

    @property
    def is_terminal(self) -> bool:
        """True for STOPPED, SUCCEEDED and FAILED: the job has ended and changes no more."""
        return self in _TERMINAL

    def __repr__(self) -> str:
        return f"JobStatus({super().__repr__()})"

    def __copy__(self) -> JobStatus:
        return self

    def __deepcopy__(self, memo: object) -> JobStatus:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return JobStatus, (str(self),)


_KNOWN: dict[str, JobStatus] = {}
for _text in ("PENDING", "RUNNING", "STOPPED", "SUCCEEDED", "FAILED"):
    _KNOWN[_text] = JobStatus(_text)
    setattr(JobStatus, _text, _KNOWN[_text])
_TERMINAL = frozenset({"STOPPED", "SUCCEEDED", "FAILED"})
