"""Whether one list request or several single ones are cheaper, by what they have taken.

Ray builds a list from all records that it keeps, at about a ninth of a single request's cost
each (`GET /api/jobs/` of Ray 2.60: 0.7 ms of server time a record, against 6.5 ms for a single
request). So the list wins when many of the records are due, and loses with a long history.
"""

from __future__ import annotations

import math

__all__ = ["Costs"]

_SINGLE = 0.0065  # seconds; of a single request until one is measured
_RECORDS_PER_SINGLE = 9  # records in a list that cost as much as a single request
_LEAST = 1e-4  # seconds; below, a measurement says more about the clock than about the request
_WEIGHT = 0.3  # of the newest measurement in the moving averages
_TRY_OTHER = 64  # rounds after which the way that seemed dearer is measured again


class Costs:
    """Moving averages of the durations of a cluster's requests, in seconds.

    Not safe from several threads: the worker that handles the cluster uses it.
    """

    __slots__ = ("_list", "_rounds", "_single")

    def __init__(self) -> None:
        self._single: float | None = None
        self._list: float | None = None
        self._rounds = 0  # since the dearer way was last tried

    def prefers_list(self, due: int) -> bool:
        """True if one list is likely to be cheaper than `due` single requests."""
        if due < 2:
            return False
        single = _SINGLE if self._single is None else self._single
        expected = single * (1 + due / _RECORDS_PER_SINGLE)
        cheaper = (expected if self._list is None else self._list) < due * single
        self._rounds += 1
        if self._rounds % _TRY_OTHER == 0:
            if cheaper:
                self._single = None  # the next round measures one single request first
            else:
                self._list = None
                return True
        return cheaper

    @property
    def wants_single(self) -> bool:
        """True if a single request has to be measured, whatever way is taken."""
        return self._single is None

    def took_single(self, seconds: float) -> None:
        """A single request took so long."""
        self._single = _average(self._single, seconds)

    def took_list(self, seconds: float) -> None:
        """A list request took so long."""
        self._list = _average(self._list, seconds)

    def list_failed(self) -> None:
        """A list request failed: no more of them until the other way is tried again."""
        self._list = math.inf


def _average(old: float | None, new: float) -> float:
    new = max(new, _LEAST)
    if old is None or math.isinf(old):
        return new
    return old + _WEIGHT * (new - old)
