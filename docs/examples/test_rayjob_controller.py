"""The reference controller, on a fake API server and simulated dashboards."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from fake_api import FakeApi
from kubernetes import client
from rayjob_controller.controller import DASHBOARD_URL, Controller

from jobinfo_cache import DashboardClient, Settings
from jobinfo_cache.commands.pulse import LIMIT, Pulse
from jobinfo_cache.rayjob import Limits
from jobinfo_cache.testing import SimulatedDashboard

Wait = Callable[..., None]
QUICK = Settings(poll_interval=0.5, request_timeout=1.0, max_backoff=2.0)


@contextlib.contextmanager
def controlling(
    api: FakeApi, *, status_check_timeout: float = 300.0, resync: float = 2.0
) -> Iterator[list[tuple[float, float]]]:
    """A controller at work; yields when each reconcile began and ended."""
    reconciles: list[tuple[float, float]] = []
    configuration = client.Configuration(host=api.url)
    with Controller(
        client.ApiClient(configuration),
        settings=QUICK,
        limits=Limits(status_check_timeout=status_check_timeout),
        resync=resync,
        on_reconcile=lambda began, ended: reconciles.append((began, ended)),
    ):
        yield reconciles


def add_cluster(api: FakeApi, name: str, url: str) -> None:
    api.create("rayclusters", "RayCluster", name, metadata={"annotations": {DASHBOARD_URL: url}})


def add_job(api: FakeApi, name: str, cluster: str, **spec: object) -> None:
    selector = {"ray.io/cluster": cluster}
    spec = {"entrypoint": "true", "clusterSelector": selector, **spec}
    api.create("rayjobs", "RayJob", name, spec=spec)


def state_of(api: FakeApi, name: str) -> str:
    status = api.get("rayjobs", name).get("status") or {}
    return str(status.get("jobDeploymentStatus", ""))


@pytest.fixture
def dashboard() -> Iterator[SimulatedDashboard]:
    """The dashboard of cluster "one"."""
    with SimulatedDashboard() as dashboard:
        yield dashboard


def test_retry_gives_a_new_attempt(
    api: FakeApi, dashboard: SimulatedDashboard, eventually: Wait
) -> None:
    """A job that fails is submitted again under another id, `backoffLimit` times."""
    dashboard.script(outcome="FAILED", pending=0.0, running=0.0)
    add_cluster(api, "one", dashboard.url)
    add_job(api, "job", "one", backoffLimit=1)
    with controlling(api):
        eventually(lambda: state_of(api, "job") == "Failed")
    status = api.get("rayjobs", "job")["status"]

    assert (
        status["failed"],
        status["reason"],
        status["jobStatus"],
    ) == (2, "AppFailed", "FAILED")
    assert sum(request.method == "POST" for request in dashboard.requests) == 2


def test_refused_submission_ends_the_job(
    api: FakeApi, dashboard: SimulatedDashboard, eventually: Wait
) -> None:
    """What no later attempt can mend is a failed submission, and nothing is tried for ever."""
    dashboard.fault("garbage", method="POST")
    add_cluster(api, "one", dashboard.url)
    add_job(api, "job", "one")
    with controlling(api):
        eventually(lambda: state_of(api, "job") == "Failed")

    assert api.get("rayjobs", "job")["status"]["reason"] == "SubmissionFailed"
    assert sum(request.method == "POST" for request in dashboard.requests) == 1


def test_submissions_that_fail_for_long_end_the_job(
    api: FakeApi, dashboard: SimulatedDashboard, eventually: Wait
) -> None:
    """A dashboard that answers but never takes the job is given up after the limit."""
    dashboard.fault("500", method="POST")
    add_cluster(api, "one", dashboard.url)
    add_job(api, "job", "one")
    with controlling(api, status_check_timeout=2.0):
        eventually(lambda: state_of(api, "job") == "Failed")

    assert api.get("rayjobs", "job")["status"]["reason"] == "SubmissionFailed"


def test_other_controllers_jobs_are_left_alone(
    api: FakeApi, dashboard: SimulatedDashboard, eventually: Wait
) -> None:
    """A RayJob of another submission mode gets neither status nor finalizer."""
    add_cluster(api, "one", dashboard.url)
    add_job(api, "other", "one", submissionMode="K8sJobMode")
    add_job(api, "own", "one")
    with controlling(api):
        eventually(lambda: state_of(api, "own") == "Complete")
    other = api.get("rayjobs", "other")

    assert "status" not in other
    assert "finalizers" not in other["metadata"]


def test_cluster_that_is_not_ready_is_not_asked(
    api: FakeApi, dashboard: SimulatedDashboard, eventually: Wait
) -> None:
    """A cluster may take longer to start than a dashboard may be silent: no RayJob fails of it."""
    api.create("rayclusters", "RayCluster", "one", status={"state": "", "head": None})
    add_job(api, "job", "one")
    limit = 3.0
    with controlling(api, status_check_timeout=limit, resync=1.0) as reconciles:
        eventually(lambda: reconciles and reconciles[-1][0] - reconciles[0][1] > limit + 1.0)
        assert state_of(api, "job") == "Initializing"
        annotations = {DASHBOARD_URL: dashboard.url}
        api.patch("rayclusters", "one", {"metadata": {"annotations": annotations}})
        eventually(lambda: state_of(api, "job") == "Complete")


def test_two_controllers_at_once_submit_one_job(
    api: FakeApi, dashboard: SimulatedDashboard, eventually: Wait
) -> None:
    """While leadership changes hands both choose the same id, which a dashboard takes once."""
    dashboard.script(pending=0.0, running=math.inf)
    add_cluster(api, "one", dashboard.url)
    for number in range(5):
        add_job(api, f"job-{number}", "one")
    with controlling(api), controlling(api):
        eventually(lambda: all(state_of(api, f"job-{n}") == "Running" for n in range(5)))
    with DashboardClient(dashboard.url) as client:
        taken = {job.submission_id for job in client.list_jobs()}

    assert taken == {api.get("rayjobs", f"job-{n}")["status"]["jobId"] for n in range(5)}


def test_suspended_job_is_stopped_and_goes_on_later(
    api: FakeApi, dashboard: SimulatedDashboard, eventually: Wait
) -> None:
    """Suspending stops the Ray job; resuming submits a new one."""
    dashboard.script(pending=0.0, running=math.inf)
    add_cluster(api, "one", dashboard.url)
    add_job(api, "job", "one")
    with controlling(api):
        eventually(lambda: state_of(api, "job") == "Running")
        job_id = api.get("rayjobs", "job")["status"]["jobId"]
        api.patch("rayjobs", "job", {"spec": {"suspend": True}})
        eventually(lambda: state_of(api, "job") == "Suspended")
        assert dashboard.job(job_id)["status"] == "STOPPED"
        dashboard.script(pending=0.0, running=0.0)
        api.patch("rayjobs", "job", {"spec": {"suspend": False}})
        eventually(lambda: state_of(api, "job") == "Complete")


def test_deletion_stops_the_job_and_lets_it_go(
    api: FakeApi, dashboard: SimulatedDashboard, eventually: Wait
) -> None:
    """The finalizer goes when the Ray job was stopped, also when its dashboard is dead."""
    dashboard.script(pending=0.0, running=math.inf)
    add_cluster(api, "one", dashboard.url)
    add_job(api, "first", "one")
    add_job(api, "second", "one")
    with controlling(api):
        eventually(lambda: all(state_of(api, name) == "Running" for name in ("first", "second")))
        job_id = api.get("rayjobs", "first")["status"]["jobId"]
        api.delete("rayjobs", "first")
        eventually(lambda: not api.get("rayjobs", "first"))
        assert dashboard.job(job_id)["status"] == "STOPPED"
        dashboard.fault("hang")
        api.delete("rayjobs", "second")
        eventually(lambda: not api.get("rayjobs", "second"))
        dashboard.fault(None)


def test_job_that_vanished_with_its_head_has_failed(
    api: FakeApi, dashboard: SimulatedDashboard, eventually: Wait
) -> None:
    """A job that was there and is not known any more is not submitted again by itself."""
    dashboard.script(pending=0.0, running=math.inf)
    add_cluster(api, "one", dashboard.url)
    add_job(api, "job", "one")
    with controlling(api):
        eventually(lambda: state_of(api, "job") == "Running")
        dashboard.restart()
        eventually(lambda: state_of(api, "job") == "Failed")

    assert api.get("rayjobs", "job")["status"]["reason"] == "AppFailed"
    assert sum(request.method == "POST" for request in dashboard.requests) == 1


def test_new_controller_goes_on_where_the_old_one_ended(
    api: FakeApi, dashboard: SimulatedDashboard, eventually: Wait
) -> None:
    """All that must outlive the process is in the status: nothing is submitted twice."""
    dashboard.script(pending=0.0, running=math.inf)
    add_cluster(api, "one", dashboard.url)
    add_job(api, "job", "one")
    with controlling(api):
        eventually(lambda: state_of(api, "job") == "Running")
    dashboard.set_status(api.get("rayjobs", "job")["status"]["jobId"], "SUCCEEDED")
    with controlling(api):
        eventually(lambda: state_of(api, "job") == "Complete")

    assert sum(request.method == "POST" for request in dashboard.requests) == 1


@pytest.mark.timeout(300)
def test_two_hundred_jobs_on_twenty_clusters_of_which_two_hang(
    api: FakeApi, eventually: Wait
) -> None:
    """Every status comes out right, and no reconcile takes over 50 ms of its own.

    What the machine took is not counted: the time in which a thread that only wants to run every
    5 ms could not run either (`Pulse`). A reconcile that waits lets that thread run.
    """
    with contextlib.ExitStack() as stack:
        dashboards = [stack.enter_context(SimulatedDashboard()) for _ in range(20)]
        wanted: dict[str, tuple[str, str | None]] = {}
        for number, dashboard in enumerate(dashboards):
            add_cluster(api, f"c{number}", dashboard.url)
            end = script(dashboard, number)
            for index in range(10):
                name = f"job-{number}-{index}"
                add_job(api, name, f"c{number}")
                wanted[name] = end
        pulse = stack.enter_context(Pulse())
        with controlling(api, status_check_timeout=10.0, resync=30.0) as reconciles:
            # A look at all of them is work for the fake server.
            eventually(lambda: ended(api) == len(wanted), pause=1.0)
        found = {
            name: (job["status"]["jobDeploymentStatus"], job["status"].get("reason"))
            for name, job in api.list("rayjobs").items()
        }
        posts = [sum(r.method == "POST" for r in each.requests) for each in dashboards]
    own = [ended - began - pulse.stalled(began, ended) for began, ended in reconciles]
    print(f"{len(own)} reconciles, slowest {max(own) * 1000:.1f} ms")

    assert wanted == found
    assert Counter(posts) == {0: 2, 10: 18}
    assert max(own) < LIMIT


def ended(api: FakeApi) -> int:
    statuses = [job.get("status") or {} for job in api.list("rayjobs").values()]
    return sum(status.get("jobDeploymentStatus") in ("Complete", "Failed") for status in statuses)


def script(dashboard: SimulatedDashboard, number: int) -> tuple[str, str | None]:
    """What becomes of a dashboard's jobs; returns how their RayJobs end, and why."""
    outcome = ("SUCCEEDED", "FAILED")[number % 2]
    dashboard.script(pending=0.1, running=0.5, outcome=outcome)
    if number < 2:
        dashboard.fault("hang")
        return "Failed", "JobStatusCheckTimeoutExceeded"
    return ("Complete", None) if outcome == "SUCCEEDED" else ("Failed", "AppFailed")
