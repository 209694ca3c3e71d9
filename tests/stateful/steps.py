"""A cache whose threads move one step at a time, and what its tests look into.

All knowledge of the library's internals that the machine needs is here. The dispatcher's loop
runs in the test's own thread (`pump`); each task of the pool gets a thread that stands still
while its request is under way, until the test lets it go on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace

from jobinfo_cache import Cluster, JobChange, JobInfoCache, Settings, poller
from jobinfo_cache.dispatcher import _Kind
from jobinfo_cache.entry import ClusterState, Entry, Record
from jobinfo_cache.testing import FakeClock
from tests.stateful.world import Request, World

TIMEOUT = 10.0  # real seconds; only a bug uses them up
_flights = threading.local()


class Flight:
    """One task of the pool in a thread of its own. `request` is what it waits for, if anything."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._stands = threading.Semaphore(0)
        self._goes = threading.Semaphore(0)
        self.world: World | None = None
        self.request: Request | None = None
        self.fault: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="flight", daemon=True)
        self._thread.start()
        self._await_stand()

    @property
    def is_over(self) -> bool:
        return self.request is None

    def go_on(self) -> None:
        """Have the request answered; returns at the next request, or at the end of the task."""
        self._goes.release()
        self._await_stand()

    def hold(self, world: World, request: Request) -> None:
        """Called in the thread: stand still until the test says `go_on`."""
        self.world, self.request = world, request
        self._stands.release()
        assert self._goes.acquire(timeout=TIMEOUT), "the test let a flight down"
        self.request = None

    def _run(self) -> None:
        _flights.current = self
        try:
            self._work()
        except BaseException as fault:
            self.fault = fault
        self._stands.release()

    def _await_stand(self) -> None:
        assert self._stands.acquire(timeout=TIMEOUT), "a task neither asks nor ends"
        if self.is_over:
            self._thread.join(TIMEOUT)
        if self.fault is not None:
            raise self.fault


def hold(world: World, request: Request) -> None:
    """Make polls wait for the test; direct calls and look-ups of the session pass."""
    flight = getattr(_flights, "current", None)
    if flight is not None and request.path != "/api/version":
        flight.hold(world, request)


class _Executor:
    """Keeps the pool's tasks until the test begins them."""

    def __init__(self) -> None:
        self.tasks: list[Callable[[], None]] = []

    def submit(self, work: Callable[[], None]) -> None:
        self.tasks.append(work)

    def shutdown(self, *, wait: bool, cancel_futures: bool = False) -> None:
        if cancel_futures:
            self.tasks.clear()


class SteppedCache:
    """A real cache without threads of its own."""

    def __init__(
        self, settings: Settings, clock: FakeClock, on_change: Callable[[JobChange], object]
    ) -> None:
        self.clock = clock
        self.cache = JobInfoCache(settings, clock=clock, on_change=on_change)
        engine = self.cache._engine
        self.store = engine.store
        self._lanes = engine.lanes
        self._cleanup = engine.cleanup
        self._dispatcher = engine.pool._dispatcher
        self._executor = _Executor()
        self.flights: list[Flight] = []
        self._ended = False
        # Never started: the library takes them for threads that run already.
        self._dispatcher.thread = threading.Thread(name="stepped-dispatcher")
        self._cleanup.thread = threading.Thread(name="stepped-cleanup")
        self._dispatcher._executor = self._executor  # type: ignore[assignment]
        # The poller measures what requests cost in real time, which no test can repeat.
        self._real_time = vars(poller)["time"]
        vars(poller)["time"] = SimpleNamespace(monotonic=clock.monotonic)

    def end(self) -> None:
        """Close the cache, end all flights, and let go of the library."""
        self.cache.close(0.0)
        self.run()
        vars(poller)["time"] = self._real_time

    # Steps

    def pump(self) -> None:
        """Do what the dispatcher does with the messages that are there."""
        dispatcher = self._dispatcher
        while not self._ended and not dispatcher._inbox.empty():
            message = dispatcher._inbox.get_nowait()
            if message.kind is _Kind.CLOSE:
                dispatcher._end()
                self._ended = True
                return
            dispatcher._obey(message)
            dispatcher._arm(dispatcher.queue.release(self.clock.monotonic()))
            dispatcher._submit()

    @property
    def tasks(self) -> int:
        """Tasks that no thread has begun."""
        return len(self._executor.tasks)

    def begin(self) -> Flight:
        """Begin a task; returns when its request is under way, or when it is over."""
        flight = Flight(self._executor.tasks.pop(0))
        self._keep(flight)
        return flight

    def finish(self, flight: Flight) -> None:
        """Have the request of a flight answered."""
        self.flights.remove(flight)
        flight.go_on()
        self._keep(flight)

    def run(self) -> None:
        """Answer all requests, and begin all tasks, until nothing is left to do now."""
        self.pump()
        while self.flights or self.tasks:
            if self.flights:
                self.finish(self.flights[0])
            else:
                self.begin()

    def advance(self, seconds: float, after: Callable[[], None]) -> None:
        """Move the clock; at each moment when the timer fires, pump and call `after`."""
        target = self.clock.monotonic() + seconds
        while (timers := self.clock.pending()) and timers[0].due <= target:
            self.clock.advance(max(timers[0].due - self.clock.monotonic(), 0.0))
            self.pump()
            after()
        self.clock.advance(max(target - self.clock.monotonic(), 0.0))

    def sweep(self) -> None:
        """One run of the cleanup."""
        self._cleanup.sweep()
        self.pump()

    def _keep(self, flight: Flight) -> None:
        if not flight.is_over:
            self.flights.append(flight)
        self.pump()

    # A look inside

    def entries(self) -> list[Entry]:
        """The entries that reads find, of all clusters."""
        return [entry for state in self.store.clusters() for entry in state.entries.values()]

    def lru_keys(self) -> list[tuple[str, ...]]:
        return list(self.store._order._lru.keys())

    def state(self, cluster: Cluster) -> ClusterState:
        state = self.store.cluster(cluster)
        assert state is not None
        return state

    def places(self, cluster: Cluster) -> list[str]:
        """Where the cluster is in the work queue."""
        queue = self._dispatcher.queue
        where = {"queued": queue._waiting, "delayed": queue._due, "running": queue._running}
        return [name for name, keys in where.items() if cluster in keys]

    def is_parked(self, cluster: Cluster) -> bool:
        """The cluster waits until another one leaves its lane."""
        lanes = (self._lanes._trouble, self._lanes._first_contact)
        return any(cluster in lane._parked and lane._inside for lane in lanes)

    def delayed_until(self, cluster: Cluster) -> float:
        return self._dispatcher.queue._due[cluster]

    def is_idle(self) -> bool:
        """Nothing is queued, delayed or asked for."""
        queue = self._dispatcher.queue
        return not (queue._waiting or queue._due or queue._heap or self.tasks)


def due_of(entry: Entry) -> float:
    """When the entry is to be polled next."""
    return max(entry.due_at, entry.state.not_before)


def requests_in(record: Record) -> set[int]:
    """The numbers of the requests whose outcomes are in a record."""
    numbers: set[int] = set()
    if record.info is not None:
        numbers.add(record.info.raw["metadata"]["request"])
    if record.error is not None:
        numbers.add(request_of(record.error))
    return numbers


def request_of(error: BaseException) -> int:
    """The number of the request that failed."""
    text = f"{getattr(error, 'url', '')} {error.__cause__}"
    _, mark, rest = text.partition("#")
    assert mark, f"no request in {error!r}"
    return int(rest.split(maxsplit=1)[0])
