"""Watching on a terminal: the table, the keys, and the terminal afterwards."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobinfo_cache.commands.exits import Exit
from jobinfo_cache.testing import SimulatedDashboard
from tests.cli.terminals import Terminal, terminal

IN, OUT = "\x1b[?1049h", "\x1b[?1049l"  # the terminal's other page, and the way back
HIDDEN, SHOWN = "\x1b[?25l", "\x1b[?25h"  # the cursor
LINES = {  # what makes a terminal one for lines
    "no colours": {"NO_COLOR": "1"},
    "dumb terminal": {"TERM": "dumb"},
    "narrow encoding": {"PYTHONIOENCODING": "ascii"},
}


@pytest.fixture
def dashboard() -> Iterator[SimulatedDashboard]:
    """A dashboard with one job that runs."""
    with SimulatedDashboard() as dashboard:
        dashboard.add_job("job", status="RUNNING")
        yield dashboard


def _watch(dashboard: SimulatedDashboard, *arguments: str) -> list[str]:
    return ["watch", "--url", dashboard.url, *arguments]


def _assert_given_back(screen: Terminal, before: list[object]) -> None:
    """The terminal reads as before, shows its own page and its cursor, and the last table."""
    assert screen.mode() == before
    assert screen.text.count(IN) == screen.text.count(OUT) == 1
    assert screen.text.rindex(HIDDEN) < screen.text.rindex(SHOWN)
    assert "RUNNING" in screen.text.rpartition(OUT)[2]


@pytest.mark.parametrize("key", ["q", "\x03"], ids=["q", "ctrl-c"])
def test_keys_that_end_it(key: str, dashboard: SimulatedDashboard) -> None:
    """The keys q and Ctrl-C end it with 130, and the last table stays there."""
    with terminal(*_watch(dashboard), JOBINFO_CACHE_POLL_INTERVAL="0.1") as screen:
        before = screen.mode()
        screen.read_until("RUNNING")
        assert screen.mode() != before
        screen.press(key)
        assert screen.end() == Exit.INTERRUPTED
        _assert_given_back(screen, before)


def test_other_keys_do_nothing(dashboard: SimulatedDashboard) -> None:
    """Other keys are not shown and change nothing."""
    with terminal(*_watch(dashboard), JOBINFO_CACHE_POLL_INTERVAL="0.1") as screen:
        screen.read_until("RUNNING")
        screen.press("Z\x1b[A\r\xff")
        dashboard.set_status("job", "SUCCEEDED")
        assert screen.end() == Exit.OK
        assert "Z" not in screen.text


def test_sigterm_gives_the_terminal_back(dashboard: SimulatedDashboard) -> None:
    """SIGTERM ends it with 143, and the terminal is as before."""
    with terminal(*_watch(dashboard), JOBINFO_CACHE_POLL_INTERVAL="0.1") as screen:
        before = screen.mode()
        screen.read_until("RUNNING")
        screen.process.send_signal(signal.SIGTERM)
        assert screen.end() == Exit.TERMINATED
        _assert_given_back(screen, before)


def test_error_gives_the_terminal_back(dashboard: SimulatedDashboard) -> None:
    """A token that is refused ends it with 5; the error stands under the last table."""
    dashboard.set_token("right")
    variables = {"RAY_AUTH_TOKEN": "right", "JOBINFO_CACHE_POLL_INTERVAL": "0.1"}
    with terminal(*_watch(dashboard), **variables) as screen:
        before = screen.mode()
        screen.read_until("RUNNING")
        dashboard.set_token("another")
        assert screen.end() == Exit.AUTH
        _assert_given_back(screen, before)
        assert "403" in screen.text.rpartition("RUNNING")[2]


def test_time_that_is_up_gives_the_terminal_back(dashboard: SimulatedDashboard) -> None:
    """When the time is up that is said under the last table."""
    arguments = _watch(dashboard, "--timeout", "1.5")
    with terminal(*arguments, JOBINFO_CACHE_POLL_INTERVAL="0.1") as screen:
        before = screen.mode()
        assert screen.end() == Exit.UNAVAILABLE
        _assert_given_back(screen, before)
        assert "timed out; 1 jobs have not ended" in screen.text.rpartition("RUNNING")[2]


def test_warnings_come_after_the_table(dashboard: SimulatedDashboard) -> None:
    """While the table is there no line of the log disturbs it; they follow it."""
    with terminal(*_watch(dashboard), JOBINFO_CACHE_POLL_INTERVAL="0.1") as screen:
        screen.read_until("RUNNING")
        dashboard.fault("503")
        screen.read_until("away for")
        dashboard.fault(None)
        screen.read_until("well, answered")
        screen.press("q")
        assert screen.end() == Exit.INTERRUPTED
        during, _, after = screen.text.rpartition(OUT)
        assert "WARNING jobinfo_cache" not in during
        assert "WARNING jobinfo_cache" in after


@pytest.mark.parametrize("variables", LINES.values(), ids=LINES)
def test_terminal_for_lines(variables: dict[str, str], dashboard: SimulatedDashboard) -> None:
    """Without colours, on a dumb terminal, or in another encoding there are lines."""
    dashboard.set_status("job", "SUCCEEDED")
    with terminal(*_watch(dashboard), **variables) as screen:
        assert screen.end() == Exit.OK
        assert "\x1b" not in screen.text
        assert screen.text.split()[1:] == ["job", "SUCCEEDED"]


def test_no_rich(tmp_path: Path, dashboard: SimulatedDashboard) -> None:
    """Without rich there are lines, and no complaint."""
    hiding = "import sys\nsys.modules['rich'] = None\n"
    (tmp_path / "sitecustomize.py").write_text(hiding, encoding="utf-8")
    dashboard.set_status("job", "SUCCEEDED")
    with terminal(*_watch(dashboard), PYTHONPATH=str(tmp_path)) as screen:
        assert screen.end() == Exit.OK
        assert "\x1b" not in screen.text
        assert screen.text.split()[1:] == ["job", "SUCCEEDED"]


def test_json_on_a_terminal(dashboard: SimulatedDashboard) -> None:
    """In JSON form there is one object per change on a terminal too."""
    dashboard.set_status("job", "SUCCEEDED")
    with terminal(*_watch(dashboard, "-o", "json")) as screen:
        assert screen.end() == Exit.OK
        assert screen.text.startswith('{"time"')


def test_no_jobs_no_table(dashboard: SimulatedDashboard) -> None:
    """Without jobs there is no table."""
    dashboard.remove_job("job")
    with terminal(*_watch(dashboard)) as screen:
        assert screen.end() == Exit.OK
        assert screen.text == "there are no jobs\r\n"
