"""The cache against the truth, in any order of events: a machine that looks for a lie.

Store, schedule, work queue, pool, poller, reader and both clients are the real ones. A poll is
begun, answered and finished in steps of their own, and anything may happen in between.
"""

from __future__ import annotations

import itertools
import logging
import os
import random
from collections.abc import Iterator
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from jobinfo_cache import (
    CacheClosed,
    CachedDashboardClient,
    Cluster,
    DashboardError,
    JobConflict,
    JobInfo,
    Settings,
    TryAgain,
)
from jobinfo_cache.entry import Entry
from jobinfo_cache.testing import FakeClock
from tests.stateful import steps
from tests.stateful.steps import SteppedCache, due_of
from tests.stateful.watch import TOLERANCE, Key, Watch
from tests.stateful.world import DRIVER_ID, TERMINAL, Request, World, client_of

CLUSTERS = [Cluster("ns", "one", "u1"), Cluster("ns", "one", "u2"), Cluster("ns", "two")]
KEYS = [(cluster, job_id) for cluster in CLUSTERS for job_id in ("a", "b", DRIVER_ID)]
FAULTS = ("reset", "raise", "503", "500", "403", "404", "501")
SLOT = 0.01 + TOLERANCE  # due times are rounded up to it

clusters = st.sampled_from(CLUSTERS)
keys = st.sampled_from(KEYS)
max_ages = st.sampled_from([None, None, 0.0, 1.0, 5.0])
newer_thans = st.sampled_from([None, None, -2.0, 0.0, 1.0])
meanwhiles = st.sampled_from(["", "", "begin", "finish", "serve"])
is_open = precondition(lambda self: not self.watch.is_closed)


class CacheMachine(RuleBasedStateMachine):
    """Rules are what users, jobs, dashboards, time and the pool's threads may do next."""

    @initialize(
        seed=st.integers(0, 1000),
        workers=st.integers(1, 2),
        size=st.sampled_from([1, 2, 4, 9]),
        jitter=st.sampled_from([0.0, 0.1, 0.5]),
        max_age=st.sampled_from([None, 5.0, 60.0]),
        batching=st.booleans(),
    )
    def begin_cache(
        self,
        seed: int,
        workers: int,
        size: int,
        jitter: float,
        max_age: float | None,
        batching: bool,
    ) -> None:
        random.seed(seed)
        self.clock = FakeClock()
        self.settings = Settings(
            workers=workers,
            cache_size=size,
            expiry=20.0,
            max_age=max_age,
            max_backoff=12.0,
            jitter=jitter,
            batching=batching,
        )
        numbers = itertools.count(1)
        self.worlds = {cluster: World(self.clock, numbers) for cluster in CLUSTERS}
        self.watch = Watch(self.worlds, self.clock, self.settings)
        self.steps = SteppedCache(self.settings, self.clock, self.watch.changed)
        self.hosts = itertools.count()
        self.meanwhile = ""
        self.asked: Request | None = None
        self.known: dict[Key, Entry] = {}
        self.contacts: dict[Cluster, float] = {}
        self.removals = (0, 0, 0)
        self.clients = {cluster: self.connect(cluster) for cluster in CLUSTERS}

    def connect(self, cluster: Cluster, host: str = "w") -> CachedDashboardClient:
        world = self.worlds[cluster]
        dashboard = client_of(world, self.hold, token=world.token, host=host)
        return self.steps.cache.client(dashboard, cluster)

    def hold(self, world: World, request: Request) -> None:
        """Polls wait until the machine goes on; while a direct call is under way, others may."""
        steps.hold(world, request)
        if request.method == "GET" or not self.meanwhile:
            return
        if self.meanwhile == "serve":  # the dashboard has done it, and the caller knows not yet
            request.serve()
        meanwhile, self.meanwhile = self.meanwhile, ""
        self.steps.pump()
        if meanwhile == "finish" and self.steps.flights:
            self.go_on(self.steps.flights[0])
        elif self.steps.tasks:
            self.begin_task().serve()

    def begin_task(self) -> Request:
        flight = self.steps.begin()
        self.note_asked(flight)
        return flight.request or Request(0, "", "", self.clock.now(), 0.0, lambda: None)

    def go_on(self, flight: steps.Flight) -> None:
        self.steps.finish(flight)
        self.note_asked(flight)

    def note_asked(self, flight: steps.Flight) -> None:
        """What a flight has just asked is asked in time."""
        request, world = flight.request, flight.world
        if request is None:
            return
        cluster = next(each for each in CLUSTERS if self.worlds[each] is world)
        asking = [each for each in self.steps.flights if each.world is world]
        assert asking == [flight], f"two polls of {cluster} at a time"
        if request.job_id is not None:
            self.watch.asked((cluster, request.job_id), request)

    # The remote side

    @rule(key=keys, outcome=st.sampled_from(TERMINAL))
    def job_goes_on(self, key: Key, outcome: str) -> None:
        world = self.worlds[key[0]]
        name = "a" if key[1] == DRIVER_ID else key[1]
        job = world.find(name)
        steps_to = {None: "PENDING", "PENDING": "RUNNING", "RUNNING": outcome}
        status = steps_to.get(job.status if job else None)
        if status is not None:
            world.put(name, status)

    @rule(key=keys, submits=st.booleans())
    def record_is_lost(self, key: Key, submits: bool) -> None:
        world = self.worlds[key[0]]
        world.drop(key[1])
        if submits and key[1] != DRIVER_ID:
            world.put(key[1], "RUNNING")

    @rule(cluster=clusters, fault=st.sampled_from(FAULTS))
    def dashboard_fails(self, cluster: Cluster, fault: str) -> None:
        self.worlds[cluster].fault = fault

    @rule(cluster=clusters)
    def dashboard_recovers(self, cluster: Cluster) -> None:
        self.worlds[cluster].fault = None
        self.worlds[cluster].garbled.clear()

    @rule(key=keys)
    def record_is_garbled(self, key: Key) -> None:
        self.worlds[key[0]].garbled.add(key[1])

    @rule(cluster=clusters)
    def head_restarts(self, cluster: Cluster) -> None:
        self.worlds[cluster].restart()

    @rule(cluster=clusters)
    def token_changes(self, cluster: Cluster) -> None:
        self.worlds[cluster].token = f"t{next(self.hosts)}"

    # Readers

    @rule(key=keys, max_age=max_ages, newer=newer_thans)
    def read(self, key: Key, max_age: float | None, newer: float | None) -> None:
        newer_than = None if newer is None else self.clock.now() + timedelta(seconds=newer)
        before = self.entry(key)
        held = None if before is None else _copy(before)
        outcome: JobInfo | Exception
        try:
            outcome = self.clients[key[0]].get_job_info(
                key[1], max_age=max_age, newer_than=newer_than
            )
        except (TryAgain, DashboardError) as error:
            outcome = error
        except CacheClosed:
            assert self.watch.is_closed
            return
        assert not self.watch.is_closed, "a closed cache answers"
        self.watch.check_read(key, held, outcome, max_age, newer_than)
        if self.entry(key) is not None:
            assert self.entry(key).read_at == self.clock.monotonic()  # type: ignore[union-attr]
        self.steps.pump()

    @rule(key=keys, max_age=max_ages, newer=newer_thans)
    def look_up(self, key: Key, max_age: float | None, newer: float | None) -> None:
        newer_than = None if newer is None else self.clock.now() + timedelta(seconds=newer)
        try:
            shown = self.clients[key[0]].lookup(key[1], max_age=max_age, newer_than=newer_than)
        except CacheClosed:
            assert self.watch.is_closed
            return
        self.watch.check_snapshot(key, shown, None)
        if not shown.fresh:
            self.watch.may_be_early(key)
        self.steps.pump()

    # Writers

    @is_open
    @rule(key=keys, by_name=st.booleans())
    def forget(self, key: Key, by_name: bool) -> None:
        cluster, job_id = key
        if by_name:
            self.steps.cache.forget(cluster.namespace, cluster.name, job_id)
        else:
            self.clients[cluster].forget(job_id)
        forgotten = [each for each in KEYS if each[0][:2] == cluster[:2] and each[1] == job_id]
        for each in forgotten if by_name else [key]:
            assert self.entry(each) is None
            self.wrote(each)

    @is_open
    @rule(key=keys, meanwhile=meanwhiles)
    def stop(self, key: Key, meanwhile: str) -> None:
        self.meanwhile = meanwhile
        ids = self.worlds[key[0]].ids(key[1])
        try:
            self.clients[key[0]].stop_job(key[1])
        except (DashboardError, RuntimeError):
            self.not_reached(key)
        for job_id in ids:
            self.wrote((key[0], job_id))

    @is_open
    @rule(key=keys, meanwhile=meanwhiles, ghost=st.booleans())
    def delete(self, key: Key, meanwhile: str, ghost: bool) -> None:
        self.meanwhile = meanwhile
        world = self.worlds[key[0]]
        ids = world.ids(key[1])
        try:
            self.clients[key[0]].delete_job(key[1])
            assert self.entry(key) is None
            if ghost:
                world.ghosts.add("a" if key[1] == DRIVER_ID else key[1])
        except (DashboardError, RuntimeError):
            self.not_reached(key)
        for job_id in ids:
            self.wrote((key[0], job_id))

    @is_open
    @rule(cluster=clusters, job_id=st.sampled_from(["a", "b"]), meanwhile=meanwhiles)
    def submit(self, cluster: Cluster, job_id: str, meanwhile: str) -> None:
        self.meanwhile = meanwhile
        try:
            self.clients[cluster].submit_job("true", submission_id=job_id)
            assert self.entry((cluster, job_id)) is None
        except JobConflict:
            self.settle_direct(cluster)
            return
        except (DashboardError, RuntimeError):
            self.not_reached((cluster, job_id))
        self.wrote((cluster, job_id))

    def not_reached(self, key: Key) -> None:
        self.meanwhile = ""
        self.settle_direct(key[0])

    def wrote(self, key: Key) -> None:
        self.watch.written(key, self.entry(key))
        self.settle_direct(key[0])

    def settle_direct(self, cluster: Cluster) -> None:
        """A direct call that was answered ends an outage: all jobs may be polled at once."""
        for key in KEYS:
            if key[0] == cluster:
                self.watch.may_be_early(key)
        self.steps.pump()

    @is_open
    @rule(cluster=clusters, moved=st.booleans())
    def replace_dashboard(self, cluster: Cluster, moved: bool) -> None:
        self.clients[cluster] = self.connect(cluster, f"w{next(self.hosts)}" if moved else "w")
        self.settle_direct(cluster)

    # The pool's threads, and time

    @precondition(lambda self: self.steps.tasks)
    @rule()
    def worker_begins(self) -> None:
        self.begin_task()

    @precondition(lambda self: self.steps.flights)
    @rule(number=st.integers(0, 1))
    def dashboard_answers(self, number: int) -> None:
        """The reply is made now, and is under way until `reply_arrives`."""
        request = self.steps.flights[number % len(self.steps.flights)].request
        assert request is not None
        request.serve()

    @precondition(lambda self: self.steps.flights)
    @rule(number=st.integers(0, 1))
    def reply_arrives(self, number: int) -> None:
        self.go_on(self.steps.flights[number % len(self.steps.flights)])

    @rule(seconds=st.sampled_from([0.01, 0.3, 1.0, 3.0, 3.0, 6.5, 21.0]))
    def time_passes(self, seconds: float) -> None:
        self.steps.advance(seconds, self.check_all)

    @rule(rounds=st.integers(1, 3))
    def all_goes_well(self, rounds: int) -> None:
        """Every request is answered at once, for some intervals."""
        for _ in range(rounds):
            self.work_off()
            self.steps.advance(self.settings.poll_interval, self.work_off)

    def work_off(self) -> None:
        while self.steps.flights or self.steps.tasks:
            if self.steps.flights:
                self.go_on(self.steps.flights[0])
            else:
                self.begin_task()
            self.check_all()

    @rule()
    def cleanup_sweeps(self) -> None:
        self.steps.sweep()
        for entry in self.steps.entries():
            last = max(entry.read_at, entry.terminal_at)
            assert last > self.clock.monotonic() - self.settings.expiry, "an unread entry stays"

    @precondition(lambda self: not self.watch.is_closed and self.clock.monotonic() > 1020)
    @rule()
    def close(self) -> None:
        self.steps.cache.close(0.0)
        self.note_close()
        self.steps.pump()

    def note_close(self) -> None:
        self.watch.is_closed = True
        for key in self.known:
            self.watch.removed(key)
        self.known = {}

    # What holds after each step

    def entry(self, key: Key) -> Entry | None:
        return self.steps.state(key[0]).entries.get(key[1])

    @invariant()
    def holds(self) -> None:
        if hasattr(self, "steps"):
            self.check_all()

    def check_all(self) -> None:
        now = {(entry.state.cluster, entry.job_id): entry for entry in self.steps.entries()}
        self.note_removals(now)
        self.watch.check_problems([*now])
        self.check_size(now)
        for cluster in CLUSTERS:
            self.check_schedule(cluster)
        if self.watch.is_closed:
            assert not now
            assert self.steps.is_idle()
            assert not self.clock.pending()
            return
        for key, entry in now.items():
            shown = self.clients[key[0]].peek(key[1])
            assert shown is not None
            self.watch.check_snapshot(key, shown, entry)
        self.check_counts()

    def note_removals(self, now: dict[Key, Entry]) -> None:
        """Every removal has one cause; what is polled first, or first again, is drawn anew."""
        gone = self.known.keys() - now.keys()
        stats = self.steps.cache.stats()
        removals = (stats.evicted, stats.expired, stats.forgotten)
        assert sum(removals) - sum(self.removals) == len(gone)
        for key in gone:
            self.watch.removed(key)
            self.watch.may_be_early(key)
        self.known, self.removals = now, removals
        for cluster in CLUSTERS:
            contact = self.steps.state(cluster).contact_at
            if contact != self.contacts.get(cluster):
                self.contacts[cluster] = contact
                for key in now:
                    if key[0] == cluster:
                        self.watch.may_be_early(key)

    def check_size(self, now: dict[Key, Entry]) -> None:
        assert len(now) <= self.settings.cache_size
        assert sorted(self.steps.lru_keys()) == sorted((*key[0], key[1]) for key in now)
        assert self.steps.cache.stats().entries == len(now)

    def check_schedule(self, cluster: Cluster) -> None:
        """A cluster with live jobs is in one place, and comes up when the first job is due."""
        places = self.steps.places(cluster)
        assert len(places) <= 1, f"{cluster} is {places}"
        live = [entry for entry in self.steps.state(cluster).entries.values() if entry.is_live]
        assert places or not live or self.steps.is_parked(cluster), f"{cluster} is lost"
        timers = self.clock.pending()
        assert len(timers) <= 1, f"{len(timers)} timers are armed"
        if places == ["delayed"]:
            visit = self.steps.delayed_until(cluster)
            assert timers, "no timer is armed"
            assert timers[0].due <= visit + SLOT, "the timer is late"
            assert all(visit <= due_of(entry) + SLOT for entry in live), "a job is asked too late"

    def check_counts(self) -> None:
        stats = self.steps.cache.stats()
        placeholders = [e for e in self.steps.entries() if not (e.record.info or e.record.error)]
        assert stats.placeholders == len(placeholders)
        assert stats.live == sum(entry.is_live for entry in self.steps.entries())
        assert stats.callbacks_failed == 0
        assert stats.oldest_age is None or stats.oldest_age >= 0

    # The end

    def teardown(self) -> None:
        if not hasattr(self, "steps"):
            return
        try:
            if not self.watch.is_closed:
                self.converge()
        finally:
            self.note_close()
            self.steps.end()
        self.check_all()

    def converge(self) -> None:
        """With all well, every live entry shows the truth, no older than an interval."""
        for cluster in CLUSTERS:
            self.dashboard_recovers(cluster)
            self.clients[cluster] = self.connect(cluster)
        self.steps.pump()
        self.work_off()
        self.steps.advance(2 * self.settings.max_backoff, self.work_off)
        for (cluster, job_id), entry in self.known.items():
            job = self.worlds[cluster].find(job_id)
            info, error = entry.record.info, entry.record.error
            if info is not None and info.status.is_terminal:
                continue
            if job is None:
                assert error is not None
                assert error.kind == "not_found", f"{job_id} of {cluster} is not there: {error}"
                continue
            assert info is not None, f"{job_id} of {cluster} is never known"
            assert error is None, f"{job_id} of {cluster} recovers never: {error}"
            assert info.raw["metadata"]["version"] == job.version
            assert self.clock.monotonic() - entry.record.info_at <= self.settings.poll_interval


def _copy(entry: Entry) -> Entry:
    """What an entry holds before a read."""
    copy = Entry(entry.state, entry.job_id, entry.read_at, entry.read_number)
    copy.record = entry.record
    return copy


@pytest.fixture(autouse=True, scope="module")
def _no_logging() -> Iterator[None]:
    """Thousands of failing dashboards would fill the report."""
    logger = logging.getLogger("jobinfo_cache")
    before, logger.level = logger.level, logging.CRITICAL
    yield
    logger.setLevel(before)


settings.register_profile(
    "default",
    max_examples=150,
    stateful_step_count=40,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
settings.register_profile(
    "thorough", settings.get_profile("default"), max_examples=2000, stateful_step_count=80
)
settings.register_profile(
    "mutants", settings.get_profile("default"), phases=[Phase.generate], database=None
)
TestCache = pytest.mark.timeout(1200)(CacheMachine.TestCase)
TestCache.settings = settings.get_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
