"""More jobs than a cache has places for, each with a reader of its own rhythm."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from jobinfo_cache import TryAgain
from jobinfo_cache.testing import FakeClock
from tests.unit.rounds import Rounds

__all__ = ["INTERVAL", "Crowd", "Reader"]

INTERVAL = 3.0


@dataclass(frozen=True)
class Reader:
    """Reads its job first at `phase` and then every `period` seconds.

    An obedient one comes back, after a read that told it when to, exactly then.
    """

    phase: float
    period: float = INTERVAL
    is_obedient: bool = False
    status: str = "RUNNING"


class Crowd:
    """Readers of one cache, each of a job of its own.

    `answered` has the moments of each reader's hits; `patience` is for how many seconds it may
    have none.
    """

    def __init__(
        self,
        clock: FakeClock,
        readers: Sequence[Reader],
        *,
        places: int,
        clusters: int = 1,
        jitter: float = 0.0,
    ) -> None:
        self._clock = clock
        self._readers = readers
        self.rounds = Rounds(clock, cache_size=places, jitter=jitter, poll_interval=INTERVAL)
        fleet = [self.rounds.cluster(str(number)) for number in range(clusters)]
        self._clients = [fleet[number % clusters][0] for number in range(len(readers))]
        self.dashboards = [dashboard for _, dashboard in fleet]
        for number, reader in enumerate(readers):
            self.dashboards[number % clusters].script(str(number), reader.status)
        # A place is given to the next job once its own was polled, and read after that. So nobody
        # waits for longer than it takes all the others to have one, and two more reads.
        turn = max(reader.period for reader in readers) + 2 * INTERVAL
        self.patience = turn * (len(readers) / places + 2)
        self._began = clock.monotonic()
        self._next = [(reader.phase, number) for number, reader in enumerate(readers)]
        heapq.heapify(self._next)
        self.answered: list[list[float]] = [[] for _ in readers]

    def read_for(self, seconds: float) -> None:
        """Have all readers read, and all rounds made, each at its moment."""
        while self._next[0][0] <= seconds:
            now, number = heapq.heappop(self._next)
            self.rounds.run_for(max(self._began + now - self._clock.monotonic(), 0.0))
            heapq.heappush(self._next, (now + self._read(number, now), number))

    def _read(self, number: int, now: float) -> float:
        """Read a job once; returns in how many seconds its reader comes back."""
        reader = self._readers[number]
        try:
            self._clients[number].get_job_info(str(number))
        except TryAgain as news:
            return news.retry_after if reader.is_obedient else reader.period
        self.answered[number].append(now)
        return reader.period

    def longest_wait(self, until: float) -> float:
        """The longest time that a reader has been without an answer, up to that moment."""
        waits = [
            later - earlier
            for moments in self.answered
            for earlier, later in zip([0.0, *moments], [*moments, until], strict=True)
        ]
        return max(waits)
