"""What the state machine stands on: a cache, three clusters, and what holds after each step."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

from hypothesis.stateful import RuleBasedStateMachine, invariant

from jobinfo_cache import CachedDashboardClient, Cluster, DashboardError, Settings
from jobinfo_cache.entry import Entry
from jobinfo_cache.testing import FakeClock
from tests.stateful import steps
from tests.stateful.steps import SteppedCache, due_of, requests_in
from tests.stateful.watch import TOLERANCE, Key, Watch
from tests.stateful.world import DRIVER_ID, Request, World, client_of

CLUSTERS = [Cluster("ns", "one", "u1"), Cluster("ns", "one", "u2"), Cluster("ns", "two")]
KEYS = [(cluster, job_id) for cluster in CLUSTERS for job_id in ("a", "b", DRIVER_ID)]
MOST_STEPS = 500  # at one moment; there are nine jobs
SLOT = 0.01 + TOLERANCE  # due times are rounded up to it


class CheckedCache(RuleBasedStateMachine):
    """A real cache moved step by step, and the checks; the rules are in the machine itself."""

    def begin(self, settings: Settings, seed: int) -> None:
        """Make the cache; no thread runs."""
        random.seed(seed)
        self.clock = FakeClock()
        self.settings = settings
        numbers = itertools.count(1)
        self.worlds = {cluster: World(self.clock, numbers) for cluster in CLUSTERS}
        self.watch = Watch(self.worlds, self.clock, self.settings)
        self.steps = SteppedCache(self.settings, self.clock, self.watch.changed)
        self.hosts = itertools.count()
        self.meanwhile = ""
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

    def call(self, request: Callable[[], object], meanwhile: str) -> Exception | None:
        """Make a direct call, while `meanwhile` something else happens; returns what it raises."""
        self.meanwhile = meanwhile
        try:
            request()
        except (DashboardError, RuntimeError) as error:
            return error
        finally:
            self.meanwhile = ""
        return None

    def ids_of(self, key: Key) -> set[str]:
        """All ids of a job, as far as the dashboard or the cache knows them."""
        ids = self.worlds[key[0]].ids(key[1])
        for entry in self.steps.state(key[0]).entries.values():
            info = entry.record.info
            if info is not None and key[1] in (info.submission_id, info.job_id):
                ids.add(entry.job_id)
        return ids

    def may_be_early(self, cluster: Cluster) -> None:
        """All jobs of the cluster may be polled before their time, once."""
        for key in KEYS:
            if key[0] == cluster:
                self.watch.may_be_early(key)
        self.steps.pump()

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

    # What holds after each step

    def note_close(self) -> None:
        self.watch.is_closed = True
        for key in self.known:
            self.watch.removed(key)
        self.known = {}

    def entry(self, key: Key) -> Entry | None:
        return self.steps.state(key[0]).entries.get(key[1])

    @invariant()
    def holds(self) -> None:
        if hasattr(self, "steps"):
            self.check_all()

    def work_off(self) -> None:
        """Answer every request, until nothing is left to do now."""
        for _ in range(MOST_STEPS):
            if self.steps.flights:
                self.go_on(self.steps.flights[0])
            elif self.steps.tasks:
                self.begin_task()
            else:
                return
            self.check_all()
        raise AssertionError("there is always something to do at once")

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
        evictable = [key for key in gone if self.may_be_evicted(self.known[key])]
        assert len(evictable) >= stats.evicted - self.removals[0], "evicted before it was shown"
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
                        self.watch.contacted(key)

    def may_be_evicted(self, entry: Entry) -> bool:
        """Its newest outcome was shown, or there was one, and nobody came for it for long."""
        if entry.record.outcome is not None and entry.read_outcome is entry.record.outcome:
            return True
        unread = self.clock.monotonic() - entry.read_at
        patience = min(10 * self.settings.poll_interval, self.settings.expiry)
        return unread >= patience - TOLERANCE and bool(requests_in(entry.record))

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
            self.worlds[cluster].fault = None
            self.worlds[cluster].garbled.clear()
            self.clients[cluster] = self.connect(cluster)
            self.may_be_early(cluster)
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
