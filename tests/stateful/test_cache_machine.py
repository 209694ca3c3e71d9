"""The cache against the truth, in any order of events: a machine that looks for a lie.

Store, schedule, work queue, pool, poller, reader and both clients are the real ones. A poll is
begun, answered and finished in steps of their own, and anything may happen in between.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from jobinfo_cache import (
    CacheClosed,
    Cluster,
    DashboardError,
    JobConflict,
    JobInfo,
    Settings,
    TryAgain,
)
from jobinfo_cache.entry import Entry
from tests.stateful.checks import CLUSTERS, KEYS, CheckedCache
from tests.stateful.watch import Key
from tests.stateful.world import DRIVER_ID, TERMINAL

FAULTS = (None, None, None, None, "reset", "raise", "503", "500", "403", "404", "501")

# Most steps are about one cluster, so that they meet.
clusters = st.sampled_from([*CLUSTERS[:1] * 4, *CLUSTERS[1:]])
keys = st.sampled_from([*KEYS[:1] * 8, *KEYS[2:3] * 6, *KEYS[1:2] * 2, *KEYS])
max_ages = st.sampled_from([None, None, None, 0.0, 1.0, 5.0])
newer_thans = st.sampled_from([None, None, None, -2.0, 0.0, 1.0])
meanwhiles = st.sampled_from(["", "", "begin", "finish", "serve"])
is_open = precondition(lambda self: not self.watch.is_closed)


class CacheMachine(CheckedCache):
    """Rules are what users, jobs, dashboards, time and the pool's threads may do next."""

    @initialize(
        seed=st.integers(0, 1000),
        workers=st.integers(1, 2),
        size=st.sampled_from([9, 4, 2, 1]),
        jitter=st.sampled_from([0.0, 0.1, 0.5]),
        max_age=st.sampled_from([None, 5.0, 60.0]),
        batching=st.booleans(),
        there=st.sampled_from([True, True, False]),
    )
    def begin_cache(
        self,
        seed: int,
        workers: int,
        size: int,
        jitter: float,
        max_age: float | None,
        batching: bool,
        there: bool,
    ) -> None:
        self.begin(
            Settings(
                workers=workers,
                cache_size=size,
                expiry=20.0,
                max_age=max_age,
                max_backoff=12.0,
                jitter=jitter,
                batching=batching,
            ),
            seed,
        )
        for world in self.worlds.values() if there else ():
            world.put("a", "RUNNING")
            world.put("b", "PENDING")

    # The remote side

    @rule(key=keys, outcome=st.sampled_from(TERMINAL))
    def job_goes_on(self, key: Key, outcome: str) -> None:
        world = self.worlds[key[0]]
        name = "a" if key[1] == DRIVER_ID else key[1]
        job = world.find(name)
        follows = {None: "PENDING", "PENDING": "RUNNING", "RUNNING": outcome}
        status = follows.get(job.status if job else None)
        if status is not None:
            world.put(name, status)

    @rule(key=keys, what=st.sampled_from(["lost", "replaced", "garbled", "mended"]))
    def record_changes(self, key: Key, what: str) -> None:
        """What nobody announces: others delete and submit, Ray writes nonsense."""
        world = self.worlds[key[0]]
        name = "a" if key[1] == DRIVER_ID else key[1]
        world.garbled.discard(name)
        if what == "garbled":
            world.garbled.add(name)
        elif what != "mended":
            world.drop(name)
        if what == "replaced":
            world.put(name, "RUNNING")

    @rule(cluster=clusters, fault=st.sampled_from(FAULTS))
    def dashboard_changes(self, cluster: Cluster, fault: str | None) -> None:
        self.worlds[cluster].fault = fault

    @is_open
    @rule(cluster=clusters, what=st.sampled_from(["restart", "token", "client", "moved"]))
    def head_changes(self, cluster: Cluster, what: str) -> None:
        """The head restarts or asks for another token; or the user brings another client."""
        number = next(self.hosts)
        if what == "restart":
            self.worlds[cluster].restart()
        elif what == "token":
            self.worlds[cluster].token = f"t{number}"
        else:
            self.clients[cluster] = self.connect(cluster, f"w{number}" if what == "moved" else "w")
            self.may_be_early(cluster)

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
        self.check_was_read(key)

    @rule(key=keys, max_age=max_ages, newer=newer_thans)
    def look_up(self, key: Key, max_age: float | None, newer: float | None) -> None:
        newer_than = None if newer is None else self.clock.now() + timedelta(seconds=newer)
        try:
            shown = self.clients[key[0]].lookup(key[1], max_age=max_age, newer_than=newer_than)
        except CacheClosed:
            assert self.watch.is_closed
            return
        assert not self.watch.is_closed, "a closed cache answers"
        self.watch.check_snapshot(key, shown, None)
        if not shown.fresh:
            self.watch.may_be_early(key, self.watch.oldest(max_age, newer_than))
        self.check_was_read(key)

    @precondition(lambda self: not self.watch.is_closed and not self.steps.flights)
    @rule(key=keys, rounds=st.integers(0, 2))
    def follow(self, key: Key, rounds: int) -> None:
        """Read a job as a controller does: until there is an answer, and after some intervals."""
        self.look_up(key, None, None)
        self.requests_are_quick(rounds)
        self.read(key, None, None)

    def check_was_read(self, key: Key) -> None:
        """The read has stamped the entry; there is one, unless the cache is full."""
        entry = self.entry(key)
        if entry is None:
            assert len(self.steps.entries()) == self.settings.cache_size
        else:
            assert entry.read_at == self.clock.monotonic()
        self.steps.pump()

    # Writers

    @is_open
    @rule(key=keys, by_name=st.booleans())
    def forget(self, key: Key, by_name: bool) -> None:
        cluster, job_id = key
        forgotten = [key]
        if by_name:
            self.steps.cache.forget(cluster.namespace, cluster.name, job_id)
            forgotten = [each for each in KEYS if each[0][:2] == cluster[:2] and each[1] == job_id]
        else:
            self.clients[cluster].forget(job_id)
        for each in forgotten:
            assert self.entry(each) is None, "a forgotten entry is still there"
            self.watch.written(each, None, each[1])
            # A reply under way about its other id is dropped, too, and that is asked again.
            self.may_be_early(each[0])

    @is_open
    @rule(key=keys, meanwhile=meanwhiles)
    def stop(self, key: Key, meanwhile: str) -> None:
        ids = self.ids_of(key)
        self.call(lambda: self.clients[key[0]].stop_job(key[1]), meanwhile)
        self.wrote(key, ids)

    @is_open
    @rule(key=keys, meanwhile=meanwhiles, ghost=st.booleans())
    def delete(self, key: Key, meanwhile: str, ghost: bool) -> None:
        world = self.worlds[key[0]]
        ids = self.ids_of(key)
        if self.call(lambda: self.clients[key[0]].delete_job(key[1]), meanwhile) is None:
            assert self.entry(key) is None, "the entry of a deleted job is still there"
            if ghost:
                world.ghosts.add("a" if key[1] == DRIVER_ID else key[1])
        self.wrote(key, ids)

    @is_open
    @rule(cluster=clusters, job_id=st.sampled_from(["a", "a", "b"]), meanwhile=meanwhiles)
    def submit(self, cluster: Cluster, job_id: str, meanwhile: str) -> None:
        before, evicted = self.entry((cluster, job_id)), self.steps.cache.stats().evicted
        client = self.clients[cluster]
        error = self.call(lambda: client.submit_job("true", submission_id=job_id), meanwhile)
        if isinstance(error, JobConflict):
            # A poll meanwhile may have had it give way to a job that waits for its place.
            is_unchanged = self.entry((cluster, job_id)) is before
            assert is_unchanged or self.steps.cache.stats().evicted > evicted, (
                "a refusal changes it"
            )
            self.may_be_early(cluster)
            return
        assert self.entry((cluster, job_id)) is None, "the old entry of a new job is still there"
        self.wrote((cluster, job_id), {job_id})

    def wrote(self, key: Key, ids: set[str]) -> None:
        """A call that was answered ends an outage, too: all jobs may be polled at once."""
        for job_id in ids:
            each = key[0], job_id
            self.watch.written(each, self.entry(each), key[1])
        self.may_be_early(key[0])

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

    @rule(rounds=st.integers(0, 3))
    def requests_are_quick(self, rounds: int) -> None:
        """Every request is answered at once, now and for some intervals."""
        self.work_off()
        self.steps.advance(rounds * self.settings.poll_interval, self.work_off)

    @rule()
    def cleanup_sweeps(self) -> None:
        self.steps.sweep()
        for entry in self.steps.entries():
            last = max(entry.read_at, entry.terminal_at)
            assert last > self.clock.monotonic() - self.settings.expiry, "an unread entry stays"

    @precondition(lambda self: not self.watch.is_closed and self.clock.monotonic() > 1030)
    @rule()
    def close(self) -> None:
        self.steps.cache.close(0.0)
        self.note_close()
        self.steps.pump()


def _copy(entry: Entry) -> Entry:
    """What an entry holds before a read."""
    copy = Entry(entry.state, entry.job_id, entry.read_at)
    copy.hold(entry.record, entry.readable_until)
    return copy


@pytest.fixture(autouse=True, scope="module")
def _no_logging() -> Iterator[None]:
    """Thousands of failing dashboards would fill the report."""
    logger = logging.getLogger("jobinfo_cache")
    before, logger.level = logger.level, logging.CRITICAL
    yield
    logger.setLevel(before)


# The same examples in each run: what fails is what was changed. `make stress` draws others.
settings.register_profile(
    "default",
    derandomize=True,
    max_examples=600,
    stateful_step_count=40,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
settings.register_profile("random", settings.get_profile("default"), derandomize=False)
settings.register_profile(
    "thorough", settings.get_profile("random"), max_examples=1000, stateful_step_count=100
)
settings.register_profile(
    "mutants", settings.get_profile("random"), phases=[Phase.generate], database=None
)
TestCache = pytest.mark.timeout(1200)(CacheMachine.TestCase)
TestCache.settings = settings.get_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
