"""Tests of the queue of keys, without threads."""

from __future__ import annotations

from collections.abc import Hashable

import pytest

from jobinfo_cache.work_queue import WorkQueue


@pytest.fixture
def line() -> WorkQueue:
    return WorkQueue()


def drain(line: WorkQueue) -> list[Hashable]:
    """Handle all that waits; returns it in its order."""
    keys = []
    while (key := line.take()) is not None:
        keys.append(key)
        line.done(key, None)
    return keys


class TestWaiting:
    """Keys that are to be handled now."""

    def test_first_come_first_served(self, line: WorkQueue) -> None:
        """Keys come out in the order in which they were added."""
        for key in "bac":
            line.add(key)

        assert drain(line) == ["b", "a", "c"]

    def test_key_waits_once(self, line: WorkQueue) -> None:
        """However often a key is added, it is handled once."""
        for key in "abaab":
            line.add(key)
        assert line.waiting == 2

        assert drain(line) == ["a", "b"]

    def test_nothing_waits(self, line: WorkQueue) -> None:
        """An empty queue has nothing to take, and does not wait for it."""
        assert line.take() is None
        assert (line.waiting, line.delayed, line.running) == (0, 0, 0)

    def test_forgotten_key_is_not_taken(self, line: WorkQueue) -> None:
        """A key that was forgotten while it waited is gone; the others are not."""
        for key in "abc":
            line.add(key)
        line.forget("b")

        assert drain(line) == ["a", "c"]

    def test_forgotten_key_may_come_back(self, line: WorkQueue) -> None:
        """A key that is added again after it was forgotten is handled once."""
        line.add("a")
        line.forget("a")
        line.add("a")

        assert drain(line) == ["a"]

    @pytest.mark.parametrize("key", [0, "", False, (), frozenset()], ids=repr)
    def test_any_hashable_is_a_key(self, line: WorkQueue, key: Hashable) -> None:
        """A key that is false is a key like any other."""
        line.add(key)

        assert line.take() == key
        assert line.running == 1


class TestRunning:
    """Keys that are being handled."""

    def test_is_not_taken_again(self, line: WorkQueue) -> None:
        """A key that is added while it is handled does not wait before that is done."""
        line.add("a")
        assert line.take() == "a"
        line.add("a")
        assert line.take() is None
        line.done("a", None)

        assert drain(line) == ["a"]

    def test_many_adds_meanwhile_are_one(self, line: WorkQueue) -> None:
        """Whatever is added while it is handled, it is handled once more."""
        line.add("a")
        line.take()
        for _ in range(3):
            line.add("a")
        line.done("a", 500.0)

        assert drain(line) == ["a"]
        assert line.release(1000.0) is None
        assert drain(line) == []

    def test_due_of_done(self, line: WorkQueue) -> None:
        """A key that is done with a due time is delayed until then; with None it is gone."""
        for key in "ab":
            line.add(key)
            line.take()
        line.done("a", 5.0)
        line.done("b", None)

        assert (line.delayed, line.running) == (1, 0)
        assert line.release(4.9) == 5.0
        assert line.release(5.0) is None
        assert drain(line) == ["a"]

    @pytest.mark.parametrize(("added", "done"), [(3.0, 7.0), (7.0, 3.0), (3.0, None)])
    def test_earlier_due_wins(self, line: WorkQueue, added: float, done: float | None) -> None:
        """Of what was asked while it was handled and what done says, the earlier counts."""
        line.add("a")
        line.take()
        line.add_at("a", added)
        line.done("a", done)

        assert line.release(0.0) == 3.0
        assert line.delayed == 1

    def test_forgotten_is_not_requeued(self, line: WorkQueue) -> None:
        """A key that is forgotten while it is handled is gone, whatever done says."""
        line.add("a")
        line.take()
        line.add("a")
        line.forget("a")
        line.done("a", 1.0)

        assert (line.waiting, line.delayed, line.running) == (0, 0, 0)
        assert line.release(10.0) is None

    def test_forgotten_and_added_again(self, line: WorkQueue) -> None:
        """An add after that has it handled once more; done's own due time does not count."""
        line.add("a")
        line.take()
        line.forget("a")
        line.add_at("a", 9.0)
        line.done("a", 1.0)

        assert line.release(0.0) == 9.0

    def test_forgetting_lasts_for_one_run(self, line: WorkQueue) -> None:
        """The next time the key is handled, done's due time counts again."""
        line.add("a")
        line.take()
        line.forget("a")
        line.done("a", 1.0)
        line.add("a")
        line.take()
        line.done("a", 2.0)

        assert line.release(0.0) == 2.0


class TestDelayed:
    """Keys that wait for their time."""

    def test_come_in_the_order_of_their_times(self, line: WorkQueue) -> None:
        """Keys are released as their time comes, and wait in that order."""
        for key, due in (("c", 3.0), ("a", 1.0), ("b", 2.0), ("d", 4.0)):
            line.add_at(key, due)

        assert line.release(0.5) == 1.0
        assert drain(line) == []
        assert line.release(3.0) == 4.0
        assert drain(line) == ["a", "b", "c"]

    @pytest.mark.parametrize("times", [(5.0, 2.0), (2.0, 5.0), (2.0, 2.0)])
    def test_earlier_of_two_wins(self, line: WorkQueue, times: tuple[float, float]) -> None:
        """A key that is added twice is due at the earlier time, once."""
        for due in times:
            line.add_at("a", due)

        assert line.release(0.0) == 2.0
        assert line.release(5.0) is None
        assert drain(line) == ["a"]

    def test_now_is_earlier(self, line: WorkQueue) -> None:
        """A delayed key that is added waits at once, and does not come again later."""
        line.add_at("a", 5.0)
        line.add("a")

        assert (line.waiting, line.delayed) == (1, 0)
        assert drain(line) == ["a"]
        assert line.release(5.0) is None
        assert drain(line) == []

    def test_later_is_not_for_what_waits(self, line: WorkQueue) -> None:
        """A key that waits for a worker is not due a second time."""
        line.add("a")
        line.add_at("a", 5.0)

        assert line.delayed == 0
        assert drain(line) == ["a"]
        assert line.release(5.0) is None

    def test_forgotten(self, line: WorkQueue) -> None:
        """A key that is forgotten while it is delayed never comes, and arms nothing."""
        line.add_at("a", 1.0)
        line.add_at("b", 2.0)
        line.forget("a")

        assert line.release(0.0) == 2.0
        assert line.release(3.0) is None
        assert drain(line) == ["b"]

    def test_outdated_times_do_not_pile_up(self, line: WorkQueue) -> None:
        """A key that is brought forward again and again costs no memory each time."""
        line.add_at("first", 0.5)
        for number in range(10_000):
            line.add_at("a", 1e9 - number)
            line.release(0.0)

        assert line.delayed == 2
        assert len(line._heap) < 200


class TestClose:
    """No key is left, and none comes in."""

    def test_drops_all(self, line: WorkQueue) -> None:
        """What waits and what is delayed is gone."""
        line.add("a")
        line.add_at("b", 1.0)
        line.close()

        assert line.take() is None
        assert line.release(2.0) is None
        assert (line.waiting, line.delayed) == (0, 0)

    def test_takes_nothing_in(self, line: WorkQueue) -> None:
        """Adding does nothing, nor does a due time of what was running."""
        line.add("a")
        line.take()
        line.close()
        line.add("b")
        line.add_at("c", 1.0)
        line.add("a")
        line.done("a", 1.0)

        assert line.take() is None
        assert line.release(2.0) is None
        assert (line.waiting, line.delayed, line.running) == (0, 0, 0)
