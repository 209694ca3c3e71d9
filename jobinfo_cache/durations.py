"""How long requests take: a histogram that needs no lock."""

from __future__ import annotations

import threading
from bisect import bisect_left

__all__ = ["BOUNDS", "Durations"]

#: Upper bounds of the buckets, in seconds, each included. A dashboard nearby answers within
#: milliseconds; 0.5 is what the cache takes for slow, and 2 the default deadline: what is cut off
#: by it falls above. Up to 10 for those who allow more.
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0)

_SUM = len(BOUNDS) + 1  # on a sheet, behind one number for each bucket and one for all above


class Durations:
    """How many requests took how long, in seconds. Safe from any thread; nothing blocks.

    Each thread writes on a sheet of its own, so that no step is lost without a lock. A thread
    that has ended leaves its sheet to the one that gets its number.
    """

    def __init__(self) -> None:
        self._sheets: dict[int, list[float]] = {}

    def record(self, seconds: float) -> None:
        """Count one request."""
        thread = threading.get_ident()
        sheet = self._sheets.get(thread)
        if sheet is None:
            sheet = self._sheets[thread] = [0.0] * (_SUM + 1)
        sheet[bisect_left(BOUNDS, seconds)] += 1
        sheet[_SUM] += seconds

    def totals(self) -> tuple[list[int], float]:
        """How many there were in each bucket, those above all bounds last; and all their seconds.

        Neither ever becomes less. The seconds may lack a request that is just being counted.
        """
        sheets = list(self._sheets.values())
        counts = [int(sum(numbers)) for numbers in zip(*sheets, strict=True)][:_SUM]
        return counts or [0] * _SUM, sum(sheet[_SUM] for sheet in sheets)
