"""Tests of logging and of counters."""

from __future__ import annotations

import logging
import subprocess
import sys
import textwrap
import threading

import pytest

from jobinfo_cache.instrumentation import Counter, get_logger


class TestLogging:
    """Records go to the standard loggers."""

    def test_fields_are_in_the_message_and_in_the_record(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Plain formatters show the fields, and structured ones find them as attributes."""
        get_logger("jobinfo_cache.test").warning("it broke", cluster="ns/one", failures=3)

        [record] = caplog.records
        assert record.name == "jobinfo_cache.test"
        assert record.levelno == logging.WARNING
        assert record.getMessage() == "it broke cluster='ns/one' failures=3"
        assert (vars(record)["cluster"], vars(record)["failures"]) == ("ns/one", 3)

    def test_per_cent_signs_are_harmless(self, caplog: pytest.LogCaptureFixture) -> None:
        """Text that looks like a format is shown as it is."""
        get_logger("jobinfo_cache.test").warning("100 % of %s", error="%d {x}")

        assert caplog.records[0].getMessage() == "100 % of %s error='%d {x}'"

    def test_exception_goes_along(self, caplog: pytest.LogCaptureFixture) -> None:
        """A fault is logged with its traceback."""
        fault = ValueError("odd")
        get_logger("jobinfo_cache.test").warning("it broke", exc_info=fault)

        exc_info = caplog.records[0].exc_info
        assert exc_info is not None
        assert exc_info[1] is fault

    def test_levels_are_those_of_the_application(self, caplog: pytest.LogCaptureFixture) -> None:
        """DEBUG is silent unless the application wants it."""
        log = get_logger("jobinfo_cache.test")
        log.debug("first")
        caplog.set_level(logging.DEBUG, "jobinfo_cache")
        log.debug("second")

        assert [record.getMessage() for record in caplog.records] == ["second"]

    @pytest.mark.parametrize("level", ["debug", "info", "warning"])
    def test_silent_without_configuration(self, level: str) -> None:
        """In a program that configured no logging nothing is printed, on stdout neither."""
        program = f"""
            import logging, jobinfo_cache
            from jobinfo_cache.instrumentation import get_logger
            get_logger("jobinfo_cache.pool").{level}("it broke", failures=3)
            assert not logging.getLogger().handlers
        """
        ended = subprocess.run(
            [sys.executable, "-W", "error", "-c", textwrap.dedent(program)],
            capture_output=True,
            timeout=20.0,
            check=True,
        )

        assert (ended.stdout, ended.stderr) == (b"", b"")


class TestCounter:
    """A number that only grows."""

    def test_counts(self) -> None:
        """Looking does not change the number, however often."""
        counter = Counter()
        assert [counter.value(), counter.value()] == [0, 0]
        for _ in range(3):
            counter.increment()

        assert [counter.value(), counter.value(), counter.value()] == [3, 3, 3]

    def test_loses_no_step(self) -> None:
        """Threads that count and look at once lose and add nothing."""
        counter = Counter()
        barrier = threading.Barrier(4, timeout=10.0)

        def count() -> None:
            barrier.wait()
            for number in range(2000):
                counter.increment()
                if number % 100 == 0:
                    counter.value()

        threads = [threading.Thread(target=count) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10.0)

        assert counter.value() == 8000
