"""What operators see of an outage, in the formats that programs use."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog

from jobinfo_cache import Cluster, DashboardClient, JobInfoCache, Settings
from jobinfo_cache.testing import FakeClock, SimulatedDashboard, settle

Install = Callable[[logging.Formatter], io.StringIO]


@pytest.fixture
def install() -> Iterator[Install]:
    """Gives the library's records to a formatter, and returns where they are written."""
    logger = logging.getLogger("jobinfo_cache")
    handlers: list[logging.Handler] = []

    def installed(formatter: logging.Formatter) -> io.StringIO:
        stream = io.StringIO()
        handler = logging.StreamHandler(stream)
        handler.setFormatter(formatter)
        handlers.append(handler)
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
        return stream

    yield installed
    for handler in handlers:
        logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)


def outage(clock: FakeClock) -> None:
    """A job runs, the dashboard fails, and answers again."""

    def on_change(_change: object) -> None:
        raise ValueError("of the application")

    with (
        SimulatedDashboard(clock=clock) as dashboard,
        JobInfoCache(Settings(jitter=0.0), on_change=on_change, clock=clock) as cache,
    ):
        dashboard.add_job("a", status="RUNNING")
        client = cache.client(
            DashboardClient(dashboard.url, timeout=10.0, proxies={}), Cluster("ns", "one", "uid")
        )
        client.lookup("a")
        settle(cache)
        dashboard.fault("503")
        clock.advance(3.0)
        settle(cache)
        dashboard.fault(None)
        clock.advance(60.0)
        settle(cache)


def test_json_of_an_application_that_renders_events(install: Install, clock: FakeClock) -> None:
    """Structlog's `ProcessorFormatter` gets the fields, the level, and the fault as text."""
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.stdlib.ExtraAdder(),
        ],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
    )
    stream = install(formatter)
    outage(clock)
    events: list[dict[str, Any]] = [json.loads(line) for line in stream.getvalue().splitlines()]

    (failure,) = [event for event in events if event["event"].startswith("a dashboard fails")]
    assert (failure["level"], failure["logger"]) == ("warning", "jobinfo_cache.poller")
    assert (failure["cluster"], failure["failures"]) == ("ns/one (uid)", 1)
    assert "503 Service Unavailable" in failure["error"]

    (recovery,) = [event for event in events if event["event"].startswith("a dashboard answers")]
    assert (recovery["level"], recovery["cluster"]) == ("info", "ns/one (uid)")

    raised = [event for event in events if event["event"].startswith("on_change raised")]
    assert raised
    assert all("ValueError: of the application" in event["exception"] for event in raised)
    assert not structlog.is_configured()


def test_text_of_an_application_that_does_not(install: Install, clock: FakeClock) -> None:
    """A plain formatter shows the fields behind the sentence."""
    stream = install(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    outage(clock)
    assert (
        "WARNING jobinfo_cache.poller: a dashboard fails cluster='ns/one (uid)' failures=1 error="
        in stream.getvalue()
    )
    assert (
        "INFO jobinfo_cache.poller: a dashboard answers again cluster='ns/one (uid)'"
        in stream.getvalue()
    )
