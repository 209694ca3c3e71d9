"""The recipes do what they are for, with stand-ins for the frameworks."""

from __future__ import annotations

import atexit
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import jobinfo_cache
from jobinfo_cache import Cluster, JobInfoCache
from jobinfo_cache.testing import SimulatedDashboard, settle

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "recipes.md"
CLUSTER = Cluster("ns", "one", "u1")


class ToBeRetriedError(Exception):
    """What a stand-in raises where its framework would come back later."""


class Stub:
    """Takes any arguments and keeps the named ones."""

    def __init__(self, *_: Any, **fields: Any) -> None:
        vars(self).update(fields)


@pytest.fixture
def dashboard() -> Iterator[SimulatedDashboard]:
    """A dashboard with a job "good" that has succeeded, and "live"; no other one."""
    with SimulatedDashboard() as dashboard:
        dashboard.add_job("good", status="SUCCEEDED")
        dashboard.add_job("live", status="RUNNING")
        yield dashboard


def load(title: str, **names: Any) -> dict[str, Any]:
    """The names of that recipe, with the library's own and the given ones around it."""
    _, _, section = PAGE.read_text(encoding="utf-8").partition(f"\n## {title}\n")
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert code is not None
    known = {name: getattr(jobinfo_cache, name) for name in jobinfo_cache.__all__}
    names = {**known, **names}
    exec(compile(code[1], title, "exec"), names)
    return names


def bare(*_: Any, **__: Any) -> Any:
    """A decorator with arguments that changes nothing."""
    return lambda function: function


@pytest.mark.parametrize(
    ("job_id", "ends"), [("good", "done"), ("live", "goes on"), ("missing", "fails")]
)
def test_airflow(dashboard: SimulatedDashboard, job_id: str, ends: str) -> None:
    """A poke is done with a job that succeeded, goes on for a live one, fails for none."""
    pokes: list[str] = []

    class Base:
        cache: JobInfoCache
        poke: Any

        def execute(self, _context: object) -> None:
            self.poke(None)
            settle(self.cache)
            try:
                pokes.append("done" if self.poke(None).is_done else "goes on")
            except ToBeRetriedError:
                pokes.append("fails")

    recipe = load(
        "Airflow",
        BaseSensorOperator=Base,
        PokeReturnValue=Stub,
        AirflowFailException=ToBeRetriedError,
    )
    recipe["RayJobSensor"](url=dashboard.url, cluster=CLUSTER, job_id=job_id).execute(None)

    assert pokes == [ends]


def test_prefect(dashboard: SimulatedDashboard) -> None:
    """The task is to be retried until the job has ended; then the flow has its status."""

    def task(**_: Any) -> Any:
        def retried(function: Any) -> Any:
            @functools.wraps(function)
            def run(client: Any, job_id: str) -> Any:
                with pytest.raises(RuntimeError, match="not yet"):
                    function(client, job_id)
                client.wait(job_id, timeout=20)
                return function(client, job_id)

            return run

        return retried

    recipe = load("Prefect", task=task, flow=lambda function: function)

    assert recipe["follow"](dashboard.url, CLUSTER, "good") == "SUCCEEDED"


@pytest.mark.parametrize(("job_id", "end"), [("good", "SUCCEEDED"), ("missing", None)])
def test_celery(dashboard: SimulatedDashboard, job_id: str, end: str | None) -> None:
    """The task is tried again while nothing is known, and ends also when there is no job."""
    recipe = load(
        "Celery",
        worker_process_init=SimpleNamespace(connect=lambda function: function),
        worker_process_shutdown=SimpleNamespace(connect=lambda function: function),
        app=SimpleNamespace(task=bare),
    )
    recipe["start"]()
    follow = functools.partial(
        recipe["follow"],
        SimpleNamespace(retry=lambda countdown: ToBeRetriedError(countdown)),
        dashboard.url,
        list(CLUSTER),
    )
    with pytest.raises(ToBeRetriedError):
        follow(job_id)
    settle(recipe["cache"])

    assert follow(job_id) == end
    recipe["stop"]()


@pytest.mark.parametrize(("job_id", "status"), [("good", 200), ("missing", 404)])
def test_django(
    dashboard: SimulatedDashboard, monkeypatch: pytest.MonkeyPatch, job_id: str, status: int
) -> None:
    """The first view knows nothing yet (202), a later one answers; no view waits."""
    at_exit: list[Any] = []
    monkeypatch.setattr(atexit, "register", at_exit.append)
    recipe = load(
        "Django",
        functools=functools,
        atexit=atexit,
        CLUSTER=CLUSTER,
        settings=SimpleNamespace(RAY_URL=dashboard.url),
        JsonResponse=lambda body, status=200, headers=None: (status, body),
    )
    assert recipe["job_status"](None, job_id)[0] == 202
    settle(recipe["the_cache"]())

    assert recipe["job_status"](None, job_id)[0] == status
    at_exit[0]()
