"""The page of the command line says what `--help` says, and what the commands print."""

from __future__ import annotations

import argparse
import json
import os

import pytest

from jobinfo_cache import (
    BadResponse,
    DashboardAuthError,
    DashboardError,
    DashboardUnavailable,
    JobNotFound,
)
from jobinfo_cache.cli import _parser, main
from jobinfo_cache.commands.exits import Exit, exit_for
from jobinfo_cache.commands.summary import Summary
from jobinfo_cache.testing import SimulatedDashboard
from tests.docs.tables import codes, page, plain, table

TEXT = page("reference/cli")


def _commands() -> dict[str, argparse.ArgumentParser]:
    for action in _parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    raise LookupError("there are no commands")


COMMANDS = _commands()


def _options(parser: argparse.ArgumentParser) -> dict[str, str]:
    """What the table of a command should hold: each option, and its help."""
    formatter = parser._get_formatter()
    rows = {}
    for action in parser._actions:
        if action.option_strings:
            shown = formatter._format_args(action, str(action.dest).upper())
            names = [f"{name} {shown}".strip() for name in action.option_strings]
        else:
            names = [str(action.metavar)]
        needed = " (required)" if action.required and action.option_strings else ""
        rows[", ".join(f"`{name}`" for name in names)] = formatter._expand_help(action) + needed
    return rows


def _told(heading: str) -> dict[str, str]:
    return {row["option"]: plain(row["meaning"]) for row in table(TEXT, heading)}


@pytest.mark.parametrize("command", COMMANDS)
def test_options(command: str) -> None:
    """The tables hold the options of the command, in the words of its help."""
    assert _told("## Every command") | _told(f"## `{command}`") == _options(COMMANDS[command])


def test_every_command_is_there() -> None:
    """Each command has its section."""
    assert [name for name in COMMANDS if f"\n## `{name}`\n" not in TEXT] == []


def test_exit_codes() -> None:
    """The table has all exit codes by their names."""
    rows = table(TEXT, "## Exit codes")

    assert {plain(row["name"]): int(row["code"]) for row in rows} == {
        code.name: code.value for code in Exit
    }


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (JobNotFound("", job_id="x"), 3),
        (DashboardAuthError(""), 5),
        (DashboardUnavailable(""), 4),
        (BadResponse(""), 4),
    ],
    ids=lambda value: type(value).__name__,
)
def test_exit_code_of_an_error(error: DashboardError, code: int) -> None:
    """An error ends a command with the code whose row names it."""
    rows = {int(row["code"]): row["when"] for row in table(TEXT, "## Exit codes")}
    named = type(error) if code in (3, 5) else DashboardError

    assert exit_for(error) == code
    assert named.__name__ in codes(rows[code])


def test_fields_of_smoke() -> None:
    """The table has the fields of the summary."""
    summary = Summary({}, 0, None, None, 0.0, 0, 0, 0, None, [], 0.0, [])

    assert _fields("smoke") == sorted(summary.fields())


def test_fields_of_watch(capsys: pytest.CaptureFixture[str]) -> None:
    """The table has the fields of a line that `watch -o json` prints."""
    with SimulatedDashboard() as dashboard:
        dashboard.add_job("x", status="SUCCEEDED")
        assert main(["watch", "--url", dashboard.url, "-o", "json"]) == Exit.OK

    assert _fields("watch") == sorted(json.loads(capsys.readouterr().out))


def test_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token of the environment's, in either variable, is used, and without one it is 5."""
    for name in list(os.environ):
        if name.startswith(("JOBINFO_CACHE_", "RAY_AUTH_")):
            monkeypatch.delenv(name)
    named = [plain(row["variable"]) for row in table(TEXT, "## Environment")]
    assert named[:3] == ["JOBINFO_CACHE_…", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"]
    with SimulatedDashboard(token="abc") as dashboard:
        dashboard.add_job("x", status="SUCCEEDED")
        arguments = ["watch", "--url", dashboard.url, "-o", "json"]
        assert main(arguments) == Exit.AUTH
        monkeypatch.setenv("RAY_AUTH_TOKEN", "abc")
        assert main(arguments) == Exit.OK


def _fields(command: str) -> list[str]:
    """The fields that the page names for a command's JSON."""
    section = TEXT.partition(f"\n## `{command}`\n")[2].partition("\n## ")[0]
    _, _, fields = section.partition("With `-o json`")
    return sorted(plain(row["field"]) for row in table("\n# x\n" + fields, "# x"))
