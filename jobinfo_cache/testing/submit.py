"""The check of a submit request's fields, as Ray does it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["complaint_about"]

_Types = tuple[type, ...]
_TYPES: dict[str, tuple[_Types, str]] = {
    "entrypoint": ((str,), "a string"),
    "submission_id": ((str,), "a string if provided"),
    "job_id": ((str,), "a string if provided"),
    "runtime_env": ((dict,), "a dict"),
    "metadata": ((dict,), "a dict"),
    "entrypoint_num_cpus": ((int, float), "a number"),
    "entrypoint_num_gpus": ((int, float), "a number"),
    "entrypoint_memory": ((int,), "an integer"),
    "entrypoint_resources": ((dict,), "a dict"),
    "entrypoint_label_selector": ((dict,), "a dict"),
}
_VALUE_TYPES: dict[str, tuple[_Types, str]] = {
    "metadata": ((str,), "strings"),
    "entrypoint_resources": ((int, float), "numbers"),
    "entrypoint_label_selector": ((str,), "strings"),
}


def complaint_about(fields: Mapping[str, Any]) -> str | None:
    """What is wrong with the fields of a submission, or None. Fields that are null are absent."""
    call = "JobSubmitRequest.__init__()"
    for name in fields:
        if name not in _TYPES:
            return f"{call} got an unexpected keyword argument '{name}'"
    if "entrypoint" not in fields:
        return f"{call} missing 1 required positional argument: 'entrypoint'"
    for name, (types, words) in _TYPES.items():
        if name in fields and not isinstance(fields[name], types):
            return f"{name} must be {words}, got {type(fields[name])}"
    return _complaint_about_values(fields)


def _complaint_about_values(fields: Mapping[str, Any]) -> str | None:
    for name, (types, words) in _VALUE_TYPES.items():
        for value in fields.get(name, {}).values():
            if not isinstance(value, types):
                return f"{name} values must be {words}, got {type(value)}"
    return None
