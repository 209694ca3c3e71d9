"""Tests of the view of one cluster: direct requests, and what they do to what is cached."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jobinfo_cache import (
    BadResponse,
    CacheClosed,
    CachedDashboardClient,
    Cluster,
    DashboardAuthError,
    DashboardError,
    DashboardUnavailable,
    InvalidJobId,
    JobConflict,
    JobNotFound,
    WaitTimeout,
)
from jobinfo_cache.testing import FakeClock
from tests.support import CLUSTER, Core, ScriptedDashboard, make_info, not_found, unavailable

REQUESTS: dict[str, tuple[Any, ...]] = {
    "list_jobs": (),
    "submit_job": ("true",),
    "get_job_log": ("a",),
    "stop_job": ("a",),
    "delete_job": ("a",),
    "get_serve_details": (),
    "get_multi_application_status": (),
    "update_deployments": ({},),
    "get_version": (),
}


def answer_with(core: Core, method: str, outcome: Any) -> list[tuple[Any, Any]]:
    """Have a direct request return or raise that; returns the calls it gets."""
    calls: list[tuple[Any, Any]] = []

    def request(*args: Any, **kwargs: Any) -> Any:
        calls.append((args, kwargs))
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    setattr(core.dashboard, method, request)
    return calls


class TestDirectRequests:
    """All but `get_job_info` go straight to the dashboard."""

    @pytest.mark.parametrize("method", REQUESTS)
    def test_is_handed_through(self, clock: FakeClock, method: str) -> None:
        """The dashboard is asked in the caller's thread, and its answer handed back."""
        core = Core(clock)
        outcome = None if method in ("delete_job", "update_deployments") else object()
        calls = answer_with(core, method, outcome)

        if method == "submit_job":
            calls = answer_with(core, method, "raysubmit_9")
            assert core.client.submit_job("true") == "raysubmit_9"
            return
        assert getattr(core.client, method)(*REQUESTS[method]) is outcome
        assert calls == [(REQUESTS[method], {})]
        assert core.cache.stats().entries == 0

    def test_submit_hands_all_arguments_through(self, clock: FakeClock) -> None:
        """Nothing that describes the job is lost."""
        core = Core(clock)
        calls = answer_with(core, "submit_job", "a")
        described: dict[str, Any] = {
            "submission_id": "a",
            "runtime_env": {"pip": ["x"]},
            "metadata": {"k": "v"},
            "entrypoint_num_cpus": 1.5,
            "entrypoint_num_gpus": 2,
            "entrypoint_memory": 3,
            "entrypoint_resources": {"special": 0.5},
        }
        core.client.submit_job("true", **described)

        assert calls == [(("true",), described)]

    @pytest.mark.parametrize("method", REQUESTS)
    def test_error_comes_unchanged(self, clock: FakeClock, method: str) -> None:
        """What the dashboard client raises is raised."""
        core = Core(clock)
        error = BadResponse("odd", status_code=501)
        answer_with(core, method, error)
        with pytest.raises(BadResponse) as raised:
            getattr(core.client, method)(*REQUESTS[method])

        assert raised.value is error

    @pytest.mark.parametrize("method", REQUESTS)
    def test_is_refused_once_closed(self, clock: FakeClock, method: str) -> None:
        """After close no request is sent."""
        core = Core(clock)
        calls = answer_with(core, method, None)
        core.cache.close()
        with pytest.raises(CacheClosed):
            getattr(core.client, method)(*REQUESTS[method])

        assert calls == []

    @pytest.mark.parametrize("method", ["stop_job", "delete_job"])
    def test_id_is_checked_first(self, clock: FakeClock, method: str) -> None:
        """An impossible id is refused before anything is sent."""
        core = Core(clock)
        calls = answer_with(core, method, None)
        with pytest.raises(InvalidJobId):
            getattr(core.client, method)("..")

        assert calls == []

    def test_close_does_nothing(self, clock: FakeClock) -> None:
        """Closing a view closes neither the cache nor a connection."""
        core = Core(clock)
        core.add("a")
        core.client.close()
        core.poll()

        assert core.read().status == "RUNNING"
        assert core.dashboard.closed == 0


class TestWrites:
    """What is cached after a request that failed."""

    def test_refused_submit_changes_nothing(self, clock: FakeClock) -> None:
        """An id that is in use keeps its entry, and its poll is not outdated."""
        core = Core(clock, "SUCCEEDED")
        core.add("a")
        core.poll()
        answer_with(core, "submit_job", JobConflict("in use", job_id="a", status_code=500))
        with pytest.raises(JobConflict):
            core.client.submit_job("true", submission_id="a")

        assert core.read().status == "SUCCEEDED"
        assert core.cache.stats().forgotten == 0

    @pytest.mark.parametrize("error", [unavailable(), KeyboardInterrupt()], ids=repr)
    def test_submit_that_may_have_worked_drops_the_entry(
        self, clock: FakeClock, error: BaseException
    ) -> None:
        """If nobody knows whether the job was submitted, what was known before is gone."""
        core = Core(clock, "SUCCEEDED")
        core.add("a")
        core.poll()
        answer_with(core, "submit_job", error)
        with pytest.raises(type(error)):
            core.client.submit_job("true", submission_id="a")

        assert core.client.peek("a") is None

    @pytest.mark.parametrize("method", ["stop_job", "delete_job"])
    @pytest.mark.parametrize("error", [unavailable(), KeyboardInterrupt()], ids=repr)
    def test_write_that_may_have_worked_makes_stale(
        self, clock: FakeClock, method: str, error: BaseException
    ) -> None:
        """If nobody knows whether the job was stopped or deleted, a live answer is stale."""
        core = Core(clock, "RUNNING")
        core.add("a")
        core.poll()
        answer_with(core, method, error)
        with pytest.raises(type(error)):
            getattr(core.client, method)("a")

        assert core.reason() == "stale"
        core.poll()
        assert core.read().status == "RUNNING"

    @pytest.mark.parametrize("method", ["stop_job", "delete_job"])
    def test_failed_write_leaves_what_has_ended(self, clock: FakeClock, method: str) -> None:
        """A terminal entry survives a stop or a delete that failed."""
        core = Core(clock, "FAILED")
        core.add("a")
        core.poll()
        answer_with(core, method, unavailable())
        with pytest.raises(DashboardUnavailable):
            getattr(core.client, method)("a")

        assert core.read().status == "FAILED"

    @pytest.mark.parametrize("method", ["stop_job", "delete_job"])
    def test_reply_during_a_write_that_failed_is_dropped(
        self, clock: FakeClock, method: str
    ) -> None:
        """A poll that was under way when the request raised is outdated as well."""
        core = Core(clock, "RUNNING", "RUNNING", "STOPPED")
        core.add("a")
        core.poll()
        answer_with(core, method, unavailable())

        def write() -> None:
            with pytest.raises(DashboardUnavailable):
                getattr(core.client, method)("a")

        core.dashboard.during = write
        clock.advance(3.0)
        core.poll()
        core.dashboard.during = lambda: None

        assert core.cache.stats().stale_replies_dropped == 1
        assert core.reason() == "stale"
        core.poll()
        assert core.read().status == "STOPPED"


class TestSignsOfLife:
    """Any proof that the dashboard answers ends its backoff."""

    @pytest.mark.parametrize(
        "error",
        [not_found(), BadResponse("odd", status_code=404), JobConflict("no", job_id="a")],
        ids=["not_found", "bad_response", "conflict"],
    )
    def test_error_that_is_an_answer(self, clock: FakeClock, error: DashboardError) -> None:
        """A dashboard that refuses a request is there."""
        core = Core(clock, unavailable())
        core.add("a")
        core.poll()
        core.pool.take()
        error.status_code = error.status_code or 400
        answer_with(core, "get_job_log", error)
        with pytest.raises(DashboardError):
            core.client.get_job_log("a")

        assert (CLUSTER, 0.0) in core.pool.take()

    @pytest.mark.parametrize(
        "error",
        [
            unavailable(),
            DashboardUnavailable("no", status_code=503),
            DashboardUnavailable("no", status_code=429),
        ],
        ids=["refused", "503", "429"],
    )
    def test_error_that_is_none(self, clock: FakeClock, error: DashboardError) -> None:
        """A request that fails as well proves nothing: the backoff goes on."""
        core = Core(clock, unavailable())
        core.add("a")
        core.poll()
        core.pool.take()
        answer_with(core, "get_job_log", error)
        with pytest.raises(DashboardUnavailable):
            core.client.get_job_log("a")
        core.poll()

        assert core.pool.take() == []
        assert len(core.dashboard.asked) == 1

    def test_refused_credentials_prove_nothing_to_refused_polls(self, clock: FakeClock) -> None:
        """A direct request whose credentials are refused like those of polls changes nothing."""
        error = DashboardAuthError("no", status_code=401)
        core = Core(clock, error)
        core.add("a")
        core.poll()
        core.pool.take()
        answer_with(core, "get_version", error)
        with pytest.raises(DashboardAuthError):
            core.client.get_version()

        assert core.pool.take() == []


class TestIdentity:
    """Views are cheap and equal."""

    def test_equal_arguments_make_equal_clients(self, clock: FakeClock) -> None:
        """Two views of one cluster are equal, and hash alike; of two clusters they are not."""
        core = Core(clock)
        twin = core.cache.client(core.dashboard.client, CLUSTER)
        other = core.cache.client(core.dashboard.client, Cluster("ns", "two", "uid-1"))

        assert twin == core.client
        assert hash(twin) == hash(core.client)
        assert twin.cluster == CLUSTER
        assert other != core.client
        assert core.client != "client"
        assert len({core.client, twin, other}) == 2

    def test_views_share_their_entries(self, clock: FakeClock) -> None:
        """What one view has read the other knows."""
        core = Core(clock)
        core.add("a")
        core.poll()

        assert core.cache.client(core.dashboard.client, CLUSTER).get_job_info("a") == make_info()

    def test_another_dashboard_serves_later_polls(self, clock: FakeClock) -> None:
        """With a different dashboard later polls use the new one, for all views of the cluster."""
        core = Core(clock, "RUNNING")
        core.add("a")
        core.poll()
        new = ScriptedDashboard(clock, "SUCCEEDED")
        new.url = "http://127.0.0.1:2"
        core.cache.client(new.client, CLUSTER)
        core.poll_for(4.0)

        assert core.read().status == "SUCCEEDED"
        assert (len(core.dashboard.asked), new.asked) == (1, ["a"])
        assert core.dashboard.closed == 1

    def test_another_address_ends_a_backoff(self, clock: FakeClock) -> None:
        """A dashboard at a new address is asked at once, whatever the old one did."""
        core = Core(clock, unavailable(retry_after=60.0))
        core.add("a")
        core.poll()
        core.pool.take()
        new = ScriptedDashboard(clock, "RUNNING")
        new.url = "http://127.0.0.1:2"
        core.cache.client(new.client, CLUSTER)

        assert core.pool.take() == [(CLUSTER, 0.0)]
        core.poll()
        assert core.read().status == "RUNNING"

    def test_late_failure_of_the_old_address_is_not_the_new_ones(self, clock: FakeClock) -> None:
        """A poll of the old address that fails after the move holds up no poll of the new one."""
        core = Core(clock, unavailable(retry_after=60.0))
        core.add("a")
        new = ScriptedDashboard(clock, "RUNNING")
        new.url = "http://127.0.0.1:2"
        core.dashboard.during = lambda: core.cache.client(new.client, CLUSTER)
        core.poll()
        core.poll()

        assert core.client.lookup("a").info == make_info()

    def test_new_client_of_a_dead_address_keeps_the_interval(self, clock: FakeClock) -> None:
        """A client made anew in each reconcile does not have a dead dashboard asked each time."""
        core = Core(clock, unavailable(), poll_interval=3.0)
        core.add("a")
        core.poll()
        dashboards = [core.dashboard]
        for _ in range(20):
            dashboards.append(ScriptedDashboard(clock, unavailable()))
            core.cache.client(dashboards[-1].client, CLUSTER)
            core.poll()
            clock.advance(0.5)

        assert sum(len(dashboard.asked) for dashboard in dashboards) <= 5

    def test_repr_names_the_cluster(self, clock: FakeClock) -> None:
        """`repr` says which cluster it is a view of."""
        assert "Cluster(namespace='ns', name='one'" in repr(Core(clock).client)

    @pytest.mark.parametrize("cluster", [("ns", "one"), "ns/one", None], ids=repr)
    def test_what_is_no_cluster_is_refused(self, clock: FakeClock, cluster: Any) -> None:
        """A plain tuple or text is a TypeError that says what is right."""
        core = Core(clock)
        with pytest.raises(TypeError, match="Cluster"):
            core.cache.client(core.dashboard.client, cluster)

    def test_url_makes_a_dashboard_client(self, clock: FakeClock) -> None:
        """A URL is taken in place of a dashboard client, with the settings' deadline."""
        core = Core(clock, request_timeout=7.0)
        client = core.cache.client("http://127.0.0.1:9/", Cluster("ns", "two"))
        twin = core.cache.client("http://127.0.0.1:9", Cluster("ns", "two"))

        assert isinstance(client, CachedDashboardClient)
        assert client == twin
        assert client._state.dashboard.timeout == 7.0


class TestWaitWithoutThreads:
    """`wait` where it needs not wait."""

    def test_terminal_job_is_returned_at_once(self, clock: FakeClock) -> None:
        """A job that has ended needs no poll, nor any time."""
        core = Core(clock, "FAILED")
        core.add("a")
        core.poll()

        assert core.client.wait("a", timeout=0.0).status == "FAILED"

    def test_until_is_asked(self, clock: FakeClock) -> None:
        """With `until` a live job will do, if the caller says so."""
        core = Core(clock, "RUNNING")
        core.add("a")
        core.poll()

        info = core.client.wait("a", timeout=0.0, until=lambda info: info.status == "RUNNING")
        assert info.status == "RUNNING"
        with pytest.raises(WaitTimeout) as raised:
            core.client.wait("a", timeout=0.0, until=lambda info: info.status == "PENDING")
        assert raised.value.last_info == make_info()

    def test_counts_as_reading(self, clock: FakeClock) -> None:
        """Waiting registers the job, and keeps it alive."""
        core = Core(clock, expiry=100.0)
        with pytest.raises(WaitTimeout):
            core.client.wait("a", timeout=0.0)
        clock.advance(60.0)
        with pytest.raises(WaitTimeout):
            core.client.wait("a", timeout=0.0)
        clock.advance(60.0)
        core.engine.cleanup.sweep()

        assert "a" in core.state.entries

    def test_failure_from_before_is_sat_out(self, clock: FakeClock) -> None:
        """A "not found" of a poll that began before the call is no answer to it."""
        core = Core(clock, not_found())
        core.add("a")
        core.poll()
        clock.advance(1.0)
        with pytest.raises(WaitTimeout):
            core.client.wait("a", timeout=0.0)

    def test_leaves_nothing_behind(self, clock: FakeClock) -> None:
        """Whoever waited is not waited for, however the wait ended."""
        core = Core(clock, "RUNNING")
        core.add("a")
        core.poll()

        def odd(info: object) -> bool:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            core.client.wait("a", timeout=1.0, until=odd)
        with pytest.raises(WaitTimeout):
            core.client.wait("a", timeout=0.0)
        core.cache.close()
        with pytest.raises(CacheClosed):
            core.client.wait("a", timeout=1.0)
        assert core.state.waiters == {}

    @pytest.mark.parametrize("timeout", [-1.0, float("nan")])
    def test_impossible_timeout_is_refused(self, clock: FakeClock, timeout: float) -> None:
        """A timeout that is negative or nan is a ValueError that shows it."""
        with pytest.raises(ValueError, match="timeout is"):
            Core(clock).client.wait("a", timeout=timeout)

    def test_impossible_id_is_refused(self, clock: FakeClock) -> None:
        """An id that can be no job's is not waited for."""
        core = Core(clock)
        with pytest.raises(InvalidJobId):
            core.client.wait("", timeout=10.0)
        assert core.state.waiters == {}


@pytest.mark.parametrize("outcome", [not_found(), DashboardAuthError("no", status_code=403)])
def test_wait_raises_what_a_poll_of_its_own_says(clock: FakeClock, outcome: DashboardError) -> None:
    """`wait` raises "not found" and refused credentials of a poll that began after the call."""
    core = Core(clock, outcome)
    wake: Callable[[], object] = core.poll
    event = clock.event

    class PollingEvent:
        """An event whose wait makes a round."""

        def __init__(self) -> None:
            self._event = event()
            self.set, self.clear = self._event.set, self._event.clear
            self.is_set = self._event.is_set

        def wait(self, timeout: float | None = None) -> bool:
            wake()
            return True

    clock.event = PollingEvent  # type: ignore[method-assign, assignment]
    with pytest.raises((JobNotFound, DashboardAuthError)) as raised:
        core.client.wait("a", timeout=10.0)

    assert type(raised.value) is type(outcome)
