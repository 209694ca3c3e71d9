"""How the commands are called: help, version, options, tokens, settings."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from jobinfo_cache import __version__
from jobinfo_cache.cli import main
from jobinfo_cache.commands import options
from jobinfo_cache.commands.exits import Exit, UsageError
from jobinfo_cache.testing import SimulatedDashboard
from tests.cli.programs import end_of, program


def _refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What stderr says when the command line refuses the arguments."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == Exit.USAGE
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


@pytest.mark.parametrize("command", [(), ("smoke",), ("watch",), ("simulate",)])
def test_help_shows_examples(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """`--help` of each command ends well and shows how it is called."""
    with pytest.raises(SystemExit) as ended:
        main([*command, "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert "examples:" in shown
    assert " ".join(["  jobinfo-cache", *command]) in shown


@pytest.mark.parametrize("command", [(), ("smoke",), ("watch",), ("simulate",)])
def test_version(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """`--version` shows the package's version, with a command and without."""
    with pytest.raises(SystemExit) as ended:
        main([*command, "--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"jobinfo-cache {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "COMMAND"),
        (["dance"], "dance"),
        (["smoke", "--jobs", "0"], "'0' is no whole number of at least 1"),
        (["smoke", "--jobs", "two"], "'two' is no whole number"),
        (["smoke", "--timeout", "0"], "'0' is no number of seconds above 0"),
        (["smoke", "--timeout", "inf"], "'inf' is no number of seconds"),
        (["smoke", "--timeout", "nan"], "'nan' is no number of seconds"),
        (["smoke", "--keep"], "--url"),
        (["smoke", "--entrypoint", "true"], "--url"),
        (["smoke", "--url", "ftp://127.0.0.1"], "ftp://127.0.0.1"),
        (["smoke", "-o", "xml"], "xml"),
        (["watch"], "--url"),
        (["watch", "--url", "127.0.0.1:8265"], "127.0.0.1:8265"),
        (["watch", "--url", "http://127.0.0.1:1", ".."], "'..'"),
        (["simulate"], "--port"),
        (["simulate", "--port", "65536"], "'65536' is no port"),
        (["simulate", "--port", "0", "--latency", "-1"], "'-1' is no number of seconds"),
        (["simulate", "--port", "0", "--fault", "fire"], "'fire'"),
    ],
)
def test_wrong_usage(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong call ends with 2, says what is wrong, and writes no data."""
    assert complaint in _refusal(capsys, *arguments)


def test_taken_port(capsys: pytest.CaptureFixture[str]) -> None:
    """A port that is taken is refused by its number."""
    with SimulatedDashboard() as dashboard:
        port = dashboard.url.rpartition(":")[2]
        assert f"--port {port}: Address already in use" in _refusal(
            capsys, "simulate", "--port", port
        )


@pytest.mark.parametrize("command", [["smoke"], ["watch", "--url", "http://127.0.0.1:1"]])
@pytest.mark.parametrize(("variable", "text"), [("WORKERS", "many"), ("MAX_AGE", "-1")])
def test_bad_setting_in_the_environment(
    command: list[str],
    variable: str,
    text: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A setting that cannot be is refused by the name of its variable."""
    monkeypatch.setenv(f"JOBINFO_CACHE_{variable}", text)
    assert f"JOBINFO_CACHE_{variable}" in _refusal(capsys, *command)


def test_own_poll_interval_gives_way_to_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command's own poll interval is used only where the environment names none."""
    assert options.environment_settings(0.3).poll_interval == 0.3
    monkeypatch.setenv("JOBINFO_CACHE_POLL_INTERVAL", "7")
    assert options.environment_settings(0.3).poll_interval == 7.0
    monkeypatch.setenv("JOBINFO_CACHE_POLL_INTERVAL", " ")
    assert options.environment_settings(0.3).poll_interval == 0.3


@pytest.mark.parametrize("content", [None, "", " \n"])
def test_useless_token_file(
    content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A token file that is missing or empty is a wrong call of every command."""
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)
    for command in (["smoke"], ["watch", "--url", "http://127.0.0.1:1"], ["simulate", "--port=0"]):
        assert str(path) in _refusal(capsys, *command, "--token-file", str(path))


def test_token_that_no_header_can_hold_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A token with a line end is refused, and its text is not shown."""
    monkeypatch.setenv("RAY_AUTH_TOKEN", "hush\nhush")
    assert "hush" not in _refusal(capsys, "watch", "--url", "http://127.0.0.1:1")


def test_order_of_the_tokens(tmp_path: Path) -> None:
    """The flag goes before RAY_AUTH_TOKEN, and that before RAY_AUTH_TOKEN_PATH."""
    flagged, named = tmp_path / "flagged", tmp_path / "named"
    for path in (flagged, named):
        path.write_text("from a file")
    environ = {"RAY_AUTH_TOKEN_PATH": str(named)}
    assert options.token(None, {}) is None
    assert options.token(None, environ) == named
    environ["RAY_AUTH_TOKEN"] = " from the environment\n"
    assert options.token(None, environ) == "from the environment"
    assert options.token(flagged, environ) == flagged


def test_token_path_that_cannot_be_read(tmp_path: Path) -> None:
    """The variable is named when its file cannot be read."""
    with pytest.raises(UsageError, match=r"RAY_AUTH_TOKEN_PATH: cannot read .*: Is a directory"):
        options.token(None, {"RAY_AUTH_TOKEN_PATH": str(tmp_path)})


def test_token_from_a_pipe_is_read_once(tmp_path: Path) -> None:
    """A pipe gives its token only once, so what it gave is what is used."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("secret\n",))
    writer.start()
    try:
        assert options.token(pipe, {}) == "secret"
    finally:
        writer.join()


def test_installed_as_a_module() -> None:
    """`python -m jobinfo_cache` is the command line, and passes its exit code on."""
    with program("watch") as process:
        code, stdout, stderr = end_of(process)
    assert (code, stdout) == (Exit.USAGE, "")
    assert "--url" in stderr
