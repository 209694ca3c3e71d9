"""The table of `jobinfo-cache watch`, and the progress of `smoke`, in a real terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobinfo_cache.testing import SimulatedDashboard
from tests.apps.tmux import COMMAND, Tmux, tmux

pytestmark = pytest.mark.apps


@pytest.fixture
def dashboard() -> Iterator[SimulatedDashboard]:
    """A dashboard without jobs."""
    with SimulatedDashboard() as dashboard:
        yield dashboard


@pytest.fixture
def window(tmp_path: Path) -> Iterator[Tmux]:
    """A terminal of 80 columns and 24 lines."""
    with tmux(tmp_path) as window:
        window.enter("export JOBINFO_CACHE_POLL_INTERVAL=0.5")
        yield window


def _add_jobs(dashboard: SimulatedDashboard, number: int) -> None:
    """One that failed, one that succeeded, and others that run."""
    dashboard.add_job("failed", status="FAILED")
    dashboard.add_job("succeeded", status="SUCCEEDED")
    for n in range(number - 2):
        dashboard.add_job(f"raysubmit_{n:016d}", status="RUNNING")


def _watch(window: Tmux, dashboard: SimulatedDashboard) -> None:
    window.command("watch", "--url", dashboard.url)


def _has_run(running: int) -> Callable[[list[str]], bool]:
    """Whether the table knows that so many jobs run."""
    return lambda lines: f"{running} RUNNING" in lines[2]


@pytest.mark.parametrize("columns", [80, 200])
def test_three_jobs(columns: int, window: Tmux, dashboard: SimulatedDashboard) -> None:
    """Three jobs are three rows, what went wrong first, and the hint right under them."""
    _add_jobs(dashboard, 3)
    window.resize(columns, 24)
    _watch(window, dashboard)
    lines = window.wait_until(_has_run(1))
    assert lines[0].startswith(f"{dashboard.url}  well, answered ")
    assert lines[2].endswith("2 of 3 ended: 1 FAILED, 1 RUNNING, 1 SUCCEEDED")
    assert lines[3].split() == ["JOB", "STATUS", "DURATION", "AGE", "FAILS", "MESSAGE"]
    assert [line.split()[:2] for line in lines[4:7]] == [
        ["failed", "FAILED"],
        ["raysubmit_0000000000000000", "RUNNING"],
        ["succeeded", "SUCCEEDED"],
    ]
    assert lines[7:] == ["q quits", *[""] * 16]


@pytest.mark.parametrize("columns", [80, 200])
def test_five_hundred_jobs(columns: int, window: Tmux, dashboard: SimulatedDashboard) -> None:
    """Of 500 jobs those rows are shown that fit, and the others are counted."""
    _add_jobs(dashboard, 500)
    window.resize(columns, 24)
    _watch(window, dashboard)
    lines = window.wait_until(_has_run(498))
    assert lines[4].split()[:2] == ["failed", "FAILED"]
    assert {line.split()[1] for line in lines[5:22]} == {"RUNNING"}
    assert lines[22:] == ["482 more: 481 RUNNING, 1 SUCCEEDED", "q quits"]


def test_terminal_that_changes_its_size(window: Tmux, dashboard: SimulatedDashboard) -> None:
    """The table fits the terminal again after the next drawing, and nothing old is left."""
    _add_jobs(dashboard, 500)
    _watch(window, dashboard)
    window.wait_for("482 more")
    for columns, height in ((200, 50), (60, 12), (80, 24)):
        window.resize(columns, height)
        lines = window.wait_for(f"{500 - (height - 6)} more")
        assert lines[-1] == "q quits"
        assert sum("q quits" in line for line in lines) == 1
        assert sum("JOB" in line for line in lines) == 1


def test_dashboard_that_goes_away_and_comes_back(
    window: Tmux, dashboard: SimulatedDashboard
) -> None:
    """While the dashboard is away the table says so, and the error; afterwards all is well."""
    _add_jobs(dashboard, 3)
    _watch(window, dashboard)
    window.wait_for("well, answered")
    dashboard.fault("refuse")
    lines = window.wait_for("away for ", "asked again in ")
    assert lines[1] == "Connection refused"
    assert [line.split()[1] for line in lines[4:7]] == ["FAILED", "RUNNING", "SUCCEEDED"]
    dashboard.fault(None)
    lines = window.wait_for("well, answered")
    assert lines[1] == ""
    dashboard.set_status("raysubmit_0000000000000000", "SUCCEEDED")
    lines = window.wait_for("code=1")
    assert any("3 of 3 ended" in line for line in lines)
    assert any(line.startswith("WARNING jobinfo_cache") for line in lines)


@pytest.mark.parametrize(("key", "code"), [("q", 130), ("C-c", 130)], ids=["q", "ctrl-c"])
def test_terminal_afterwards(
    key: str, code: int, window: Tmux, dashboard: SimulatedDashboard
) -> None:
    """After the end the shell's page is back, with the last table on it, and so are its modes."""
    _add_jobs(dashboard, 3)
    window.enter("before=$(stty -g)")
    _watch(window, dashboard)
    window.wait_until(_has_run(1))
    window.press(key)
    lines = window.wait_for(f"code={code}")
    assert any("1 RUNNING" in line for line in lines)
    assert not any("q quits" in line for line in lines)
    window.enter('clear; [ "$before" = "$(stty -g)" ] && echo the same')
    assert "the same" in window.wait_until(lambda lines: lines[0] == "the same")
    assert window.run("display-message", "-p", "#{cursor_flag}#{alternate_on}") == "10\n"


def test_suspended_and_taken_up_again(window: Tmux, dashboard: SimulatedDashboard) -> None:
    """Ctrl-Z gives the terminal back to the shell, and `fg` brings the table back."""
    _add_jobs(dashboard, 3)
    _watch(window, dashboard)
    window.wait_until(_has_run(1))
    window.press("C-z")
    window.wait_for("code=148")
    window.enter("clear; echo $((6 * 7)) of them")
    window.wait_until(lambda lines: lines[0] == "42 of them")
    window.enter("fg")
    window.wait_until(_has_run(1))
    window.press("q")
    lines = window.wait_until(lambda lines: lines[0] == "42 of them")
    assert any("1 RUNNING" in line for line in lines)


def test_in_the_background(window: Tmux, dashboard: SimulatedDashboard) -> None:
    """In the background it draws nothing over what the shell shows: there are lines."""
    dashboard.add_job("job", status="SUCCEEDED")
    window.enter(f"clear; {COMMAND} watch --url {dashboard.url} & wait; echo code=$?")
    lines = window.wait_for("code=0")
    assert any(line.split()[1:] == ["job", "SUCCEEDED"] for line in lines)
    assert not any("1 of 1 ended" in line for line in lines)


def test_hostile_texts(window: Tmux, dashboard: SimulatedDashboard) -> None:
    """Markup is shown as it is, and what a terminal would obey does not get there."""
    dashboard.add_job("[red]job[/]", status="RUNNING")
    dashboard.set_status("[red]job[/]", "RUNNING", message="a\x1b[2Jb\x1b]0;title\x07c\rd")
    _watch(window, dashboard)
    lines = window.wait_until(_has_run(1))
    assert lines[4].startswith("[red]job[/]  RUNNING")
    assert lines[4].endswith("a?[2Jb?]0;title?c d")
    assert "title" not in window.run("display-message", "-p", "#{pane_title}")


def test_progress_of_smoke(window: Tmux) -> None:
    """The progress is one line that is written over, and is gone at the end."""
    window.command("smoke", "--jobs", "5")
    window.wait_for("jobs have ended")
    lines = window.wait_for("code=0")
    assert not any("jobs have ended" in line for line in lines)
    assert lines[0] == "5 jobs on 2 clusters"
    assert lines[1].split()[0] == "jobs"
