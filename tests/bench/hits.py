"""What a read costs when the answer is there: this library beside the literal design.

As a program it prints its figures as one line of JSON. The literal design is a method that joins
the key's parts, takes an RLock, looks into an lru-dict, and checks for an error.
"""

from __future__ import annotations

import functools
import itertools
import json
import random
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from statistics import median
from typing import Any, NamedTuple, cast

from lru import LRU

from jobinfo_cache import Cluster, DashboardClient, JobInfo, JobInfoCache, Settings
from tests.bench.fleet import record

__all__ = ["hit_figures"]

CLUSTERS = 100
JOBS = 100  # of each cluster
READS = 100_000  # of all threads together, a round
ROUNDS = 7
BUSY_SECONDS = 3.0
BUSY_WORKERS = 8
BUSY_ROUNDS = 5

Read = Callable[[str], object]


class Design(NamedTuple):
    """What is compared: a read for each cluster, and what keeps a worker busy."""

    reads: list[Read]
    work: Callable[[int, str], object] | None = None  # None: it has busy workers of its own


class FakeDashboard:
    """Answers without a network."""

    url = "http://127.0.0.1:1"

    def get_job_info(self, job_id: str) -> JobInfo:
        return info_of(record(job_id, "RUNNING"))


@dataclass(frozen=True)
class Cached:
    """What the literal design's storage holds."""

    info: JobInfo
    error: Exception | None
    updated_at: float


class LiteralClient:
    """The original's client of one cluster; all share the storage and its lock."""

    def __init__(self, name: str, storage: LRU[str, Cached], lock: threading.RLock) -> None:
        self._namespace = "namespace"
        self._name = name
        self._storage = storage
        self._lock = lock

    def get_job_info(self, job_id: str) -> JobInfo:
        with self._lock:
            cached = self._storage.get(self.key(job_id))
            if cached is None:
                raise KeyError(job_id)
            if cached.error is not None:
                raise cached.error
            return cached.info

    def key(self, job_id: str) -> str:
        return self._namespace + "/" + self._name + "/" + job_id

    def store(self, job_id: str) -> None:
        info = info_of(record(job_id, "RUNNING"))
        with self._lock:
            self._storage[self.key(job_id)] = Cached(info, None, time.monotonic())


def info_of(body: bytes) -> JobInfo:
    return JobInfo(json.loads(body), fetched_at=datetime.now(timezone.utc))


def literal() -> Design:
    storage: LRU[str, Cached] = LRU(CLUSTERS * JOBS)
    lock = threading.RLock()
    clients = [LiteralClient(f"cluster-{n}", storage, lock) for n in range(CLUSTERS)]
    for client in clients:
        for job_id in job_ids():
            client.store(job_id)
    return Design(
        [client.get_job_info for client in clients],
        lambda number, job_id: clients[number].store(job_id),
    )


def library(cache: JobInfoCache) -> Design:
    """Clients of the cache, all of whose jobs have been polled once."""
    dashboard = cast(DashboardClient, FakeDashboard())
    clients = [cache.client(dashboard, Cluster("ns", str(n), "uid")) for n in range(CLUSTERS)]
    for client in clients:
        for job_id in job_ids():
            client.lookup(job_id)
    for client in clients:
        for job_id in job_ids():
            client.wait(job_id, timeout=60.0, until=lambda info: True)
    return Design([client.get_job_info for client in clients])


def job_ids() -> list[str]:
    return [f"job-{number:03}" for number in range(JOBS)]


def choices(count: int) -> list[tuple[int, str]]:
    ids = job_ids()
    return [(random.randrange(CLUSTERS), random.choice(ids)) for _ in range(count)]


def hit_seconds(design: Design, threads: int) -> float:
    """Seconds of a hit, over all threads."""
    barrier = threading.Barrier(threads + 1)
    chosen = [choices(READS // threads) for _ in range(threads)]

    def run(mine: list[tuple[int, str]]) -> None:
        reads = design.reads
        barrier.wait()
        for number, job_id in mine:
            reads[number](job_id)
        barrier.wait()

    for mine in chosen:
        threading.Thread(target=run, args=(mine,), daemon=True).start()
    barrier.wait()
    began = time.perf_counter()
    barrier.wait()
    return (time.perf_counter() - began) / (READS // threads * threads)


def busy_percentiles(design: Design) -> tuple[float, float]:
    """Seconds of the 99th and of the 99.9th percentile of hits beside busy workers."""
    closing = threading.Event()

    def run(work: Callable[[int, str], object], mine: list[tuple[int, str]]) -> None:
        for number, job_id in itertools.cycle(mine):
            if closing.is_set():
                return
            work(number, job_id)

    workers = [
        threading.Thread(target=run, args=(design.work, choices(1000)), daemon=True)
        for _ in range(BUSY_WORKERS if design.work else 0)
    ]
    for worker in workers:
        worker.start()
    took = sorted(timed_hits(design, time.monotonic() + BUSY_SECONDS))
    closing.set()
    for worker in workers:
        worker.join()
    return took[int(len(took) * 0.99)], took[int(len(took) * 0.999)]


def timed_hits(design: Design, until: float) -> list[float]:
    took = []
    reads, clock = design.reads, time.perf_counter
    for number, job_id in itertools.cycle(choices(10_000)):
        began = clock()
        reads[number](job_id)
        ended = clock()
        took.append(ended - began)
        if time.monotonic() > until:
            return took
    return took


def compare(
    measure: Callable[[Design], float], ours: Design, theirs: Design, rounds: int
) -> dict[str, float]:
    """Both measured in turns."""
    return medians([(measure(ours), measure(theirs)) for _ in range(rounds)])


def medians(pairs: list[tuple[float, float]]) -> dict[str, float]:
    """Medians of the library's and the literal design's seconds, in µs, and of the ratio."""
    return {
        "library_us": median(own for own, _ in pairs) * 1e6,
        "literal_us": median(other for _, other in pairs) * 1e6,
        "ratio": median(own / other for own, other in pairs),
    }


def hit_figures() -> dict[str, Any]:
    """Hits by one thread, by 16, and beside busy workers; takes half a minute."""
    calm = Settings(poll_interval=3600.0, expiry=36_000.0, max_age=None, max_backoff=3600.0)
    # More is due at any time than eight workers can do.
    busy = Settings(workers=BUSY_WORKERS, poll_interval=0.05, max_age=None, batching=False)
    theirs = literal()
    with JobInfoCache(calm) as cache:
        ours = library(cache)
        figures = {
            f"hit, {threads} threads": compare(
                functools.partial(hit_seconds, threads=threads), ours, theirs, ROUNDS
            )
            for threads in (1, 16)
        }
    pairs = []
    for _ in range(BUSY_ROUNDS):
        with JobInfoCache(busy) as cache:
            own = busy_percentiles(library(cache))
        pairs.append((own, busy_percentiles(theirs)))
    for place, name in enumerate(("p99", "p99.9")):
        both = [(own[place], other[place]) for own, other in pairs]
        figures[f"hit {name}, 8 busy workers"] = medians(both)
    return figures


if __name__ == "__main__":
    sys.stdout.write(json.dumps(hit_figures()) + "\n")
