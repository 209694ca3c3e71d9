"""The guards of tests/conftest.py and setup.cfg catch what they are for."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import tests

pytest_plugins = ["pytester"]

ROOT = Path(tests.__file__).parents[1]
Run = Callable[[str], pytest.RunResult]


@pytest.fixture
def run(pytester: pytest.Pytester) -> Run:
    """Run the body of a test under the project's own configuration and guards."""
    shutil.copy(ROOT / "setup.cfg", pytester.path)
    conftest = (ROOT / "tests" / "conftest.py").read_text(encoding="utf-8")
    # A leak must not use up the whole grace here.
    pytester.makeconftest(conftest + "\nGRACE = 0.05\n")

    def run(body: str) -> pytest.RunResult:
        pytester.makepyfile("import threading, time, warnings, pytest\n" + body)
        # Without the plugin of Hypothesis, whose import takes a second in every run.
        return pytester.runpytest_inprocess("-p", "no:hypothesispytest", ".")

    return run


def test_a_clean_test_passes(run: Run) -> None:
    """A test that closes what it started passes, with a clock that starts at 1,000 seconds."""
    result = run("""
def test_clean(clock):
    thread = threading.Thread(target=clock.monotonic, name="jobinfo-worker_0")
    thread.start()
    thread.join()
    timer = threading.Timer(60, print)
    timer.start()
    timer.cancel()
    assert clock.monotonic() == 1000.0
""")
    result.assert_outcomes(passed=1)


def test_a_leaked_library_thread_fails_its_test(run: Run) -> None:
    """A thread of the library that outlives its test fails that test by name, and no later one."""
    result = run("""
gate = threading.Event()

def test_leak():
    threading.Thread(target=gate.wait, name="jobinfo-worker_7", daemon=True).start()

def test_next():
    pass

def test_end():
    gate.set()
""")
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(["*ERROR at teardown of test_leak*", "*behind: jobinfo-worker_7*"])


def test_a_foreign_thread_is_no_leak(run: Run) -> None:
    """A thread that is not the library's may outlive a test."""
    result = run("""
gate = threading.Event()

def test_foreign():
    threading.Thread(target=gate.wait, name="server", daemon=True).start()

def test_end():
    gate.set()
""")
    result.assert_outcomes(passed=2)


def test_an_armed_timer_fails_its_test(run: Run) -> None:
    """A timer that is still armed after its test fails that test, whatever its name."""
    result = run("""
timer = threading.Timer(60, print)

def test_armed():
    timer.start()

def test_end():
    timer.cancel()
""")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*ERROR at teardown of test_armed*", "*timers behind: Thread-*"])


def test_a_sleep_that_is_swallowed_fails_its_test(run: Run) -> None:
    """A call of `time.sleep` fails its test with the place, also when its error is caught."""
    result = run("""
def test_sleeps():
    with pytest.raises(RuntimeError, match="refused"):
        time.sleep(0)
""")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*time.sleep was called at *.py:5*"])


def test_sleep_is_real_again_after_a_test(run: Run) -> None:
    """The refusal ends with the test."""
    result = run("""
real_sleep = time.sleep

def test_refused():
    assert time.sleep is not real_sleep

@pytest.fixture(scope="module", autouse=True)
def after():
    yield
    assert time.sleep is real_sleep
""")
    result.assert_outcomes(passed=1)


def test_waiting_for_a_process_may_sleep() -> None:
    """`subprocess` may sleep while it waits for a process with a timeout."""
    code = "import sys; sys.stdin.read()"
    with (
        subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as process,
        pytest.raises(subprocess.TimeoutExpired),
    ):
        process.wait(0.01)


def test_a_warning_is_an_error(run: Run) -> None:
    """A warning fails the test that caused it."""
    result = run("""
def test_warns():
    warnings.warn("old", DeprecationWarning)
""")
    result.assert_outcomes(failed=1)


def test_an_exception_in_a_thread_is_an_error(run: Run) -> None:
    """An exception that ends a thread fails the test that started it."""
    result = run("""
def test_thread():
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
""")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*ZeroDivisionError*"])


def test_tests_of_a_real_ray_are_left_out(run: Run) -> None:
    """A test that needs a real Ray head does not run unless it is asked for."""
    result = run("""
@pytest.mark.ray
def test_ray():
    assert False
""")
    result.assert_outcomes(deselected=1)


def test_every_test_has_a_time_limit(pytestconfig: pytest.Config) -> None:
    """The project's configuration ends a test that hangs."""
    assert 0 < float(pytestconfig.getini("timeout")) <= 60
