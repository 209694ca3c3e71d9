"""Tests of the order in which refused jobs get a place, and of the bound on them."""

from __future__ import annotations

import pytest

from jobinfo_cache import Cluster
from jobinfo_cache.waiting_list import WaitingList
from tests.support import CLUSTER

OTHER = Cluster("ns", "other")


def waiting(size: int, *job_ids: str) -> WaitingList:
    waiting_list = WaitingList(size)
    for number, job_id in enumerate(job_ids):
        waiting_list.join((CLUSTER, job_id), float(number))
    return waiting_list


def pop_all(waiting_list: WaitingList) -> list[str]:
    return [waiting_list.pop()[0][1] for _ in range(len(waiting_list))]


def test_longest_wait_comes_first() -> None:
    """Jobs get their places in the order in which they were refused first."""
    assert pop_all(waiting(5, "c", "a", "d", "b")) == ["c", "a", "d", "b"]


def test_refused_again_keeps_its_turn() -> None:
    """A job that comes back while it waits is there once, and is known to be read still."""
    waiting_list = waiting(5, "a", "b", "a")
    assert len(waiting_list) == 2
    assert waiting_list.pop() == ((CLUSTER, "a"), 2.0)
    assert waiting_list.pop() == ((CLUSTER, "b"), 1.0)


def test_none_waits() -> None:
    """There is nobody to take from an empty list."""
    with pytest.raises(KeyError):
        waiting(5).pop()


def test_who_finds_it_full_has_no_turn() -> None:
    """Of more jobs than fit those wait that came first; they may still be read again."""
    waiting_list = waiting(2, "a", "b", "c", "a")
    assert waiting_list.pop() == ((CLUSTER, "a"), 3.0)
    assert pop_all(waiting_list) == ["b"]


def test_leaving() -> None:
    """A job that leaves is passed over; one that does not wait may leave as well."""
    waiting_list = waiting(3, "a", "b", "c")
    waiting_list.leave((CLUSTER, "b"))
    waiting_list.leave((CLUSTER, "x"))
    waiting_list.leave((OTHER, "a"))
    assert pop_all(waiting_list) == ["a", "c"]


def test_cluster_leaves() -> None:
    """All jobs of a cluster leave together, and no other's."""
    waiting_list = waiting(3, "a", "b")
    waiting_list.join((OTHER, "a"), 0.0)
    waiting_list.leave_all(CLUSTER)
    assert waiting_list.pop()[0] == (OTHER, "a")
    assert len(waiting_list) == 0


def test_unread_are_dropped() -> None:
    """Those go that were read then or earlier; the others keep their order."""
    waiting_list = waiting(5, "c", "b", "a", "c")
    waiting_list.drop_unread(1.0)
    assert pop_all(waiting_list) == ["c", "a"]


def test_who_leaves_makes_room() -> None:
    """However many come and go, there is room for `size` jobs, and for no more."""
    waiting_list = WaitingList(2)
    for number in range(100):
        waiting_list.join((CLUSTER, str(number)), 0.0)
        waiting_list.join((CLUSTER, f"{number} again"), 0.0)
        waiting_list.leave((CLUSTER, str(number)))
        if number % 3 == 0:
            waiting_list.pop()
    waiting_list.clear()
    for job_id in "abcd":
        waiting_list.join((CLUSTER, job_id), 0.0)
    assert pop_all(waiting_list) == ["a", "b"]
