"""How a command ends: its exit codes, and the errors that lead to them."""

from __future__ import annotations

from enum import IntEnum

from jobinfo_cache import DashboardAuthError, JobInfoCacheError, JobNotFound

__all__ = ["Exit", "OutputError", "UsageError", "exit_for"]


class Exit(IntEnum):
    """The exit codes, the same for every command."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    UNAVAILABLE = 4
    AUTH = 5
    OUTPUT = 6
    INTERRUPTED = 130
    TERMINATED = 143


class UsageError(Exception):
    """The command was called in a way that cannot work; the message says what would be right."""


class OutputError(Exception):
    """The data cannot be written; the message says why. A reader that has gone is none."""


def exit_for(error: JobInfoCacheError) -> Exit:
    """The exit code for an error that ended a command."""
    if isinstance(error, JobNotFound):
        return Exit.NOT_FOUND
    if isinstance(error, DashboardAuthError):
        return Exit.AUTH
    # Whatever else answers there is no dashboard that can be used.
    return Exit.UNAVAILABLE
