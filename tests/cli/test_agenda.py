"""The controller's own queue of work."""

from __future__ import annotations

import math
import threading
import time

from jobinfo_cache.commands.agenda import Agenda

NOW = 0.0  # a deadline that has passed: take what is due, and do not wait
SOME_DAY = 1000.0  # seconds


def test_put_keys_are_due_in_order() -> None:
    """What was put is taken once, in the order in which it was put."""
    agenda: Agenda[str] = Agenda()
    for key in "aba":
        agenda.put(key)
    assert [agenda.take(NOW) for _ in range(2)] == ["a", "b"]


def test_nothing_is_due_before_its_time() -> None:
    """A key that is due later is not taken at a deadline before."""
    agenda: Agenda[str] = Agenda()
    agenda.add_after("later", SOME_DAY)
    assert agenda.take(NOW) is None


def test_earlier_moment_wins() -> None:
    """Of two moments of a key the earlier one counts, whichever came first, and counts once."""
    agenda: Agenda[str] = Agenda()
    agenda.add_after("sooner", SOME_DAY)
    agenda.add_after("sooner", 0.0)
    agenda.add_after("later", 0.0)
    agenda.add_after("later", SOME_DAY)
    assert {agenda.take(NOW), agenda.take(NOW)} == {"sooner", "later"}
    assert agenda.take(NOW) is None


def test_put_wakes_a_taker() -> None:
    """A key that another thread puts ends the wait for a later one."""
    agenda: Agenda[str] = Agenda()
    agenda.add_after("later", SOME_DAY)
    putter = threading.Thread(target=agenda.put, args=("now",))
    putter.start()
    assert agenda.take(math.inf) == "now"
    putter.join()


def test_wait_ends_at_the_deadline() -> None:
    """Without any key the wait ends when the deadline has come, and not before."""
    agenda: Agenda[str] = Agenda()
    deadline = time.monotonic() + 0.05
    assert agenda.take(deadline) is None
    assert time.monotonic() >= deadline
