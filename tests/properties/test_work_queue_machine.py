"""The work queue against a model that does the same in the simplest way."""

from __future__ import annotations

import math
from collections.abc import Hashable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from jobinfo_cache.work_queue import WorkQueue

keys = st.sampled_from(["a", "b", "c", 0, None])
delays = st.integers(0, 8).map(float)


class WorkQueueMachine(RuleBasedStateMachine):
    """Each key is nowhere, waiting, delayed until a time, or running."""

    def __init__(self) -> None:
        super().__init__()
        self.line = WorkQueue()
        self.now = 100.0
        self.waiting: list[Hashable] = []
        self.due: dict[Hashable, float] = {}
        self.running: dict[Hashable, float] = {}  # with when to handle it once more
        self.forgotten: set[Hashable] = set()
        self.is_closed = False

    def _place(self, key: Hashable, due: float) -> None:
        if self.is_closed or due == math.inf or key in self.waiting:
            return
        if key in self.running:
            self.running[key] = min(self.running[key], due)
        elif due == -math.inf:
            self.due.pop(key, None)
            self.waiting.append(key)
        else:
            self.due[key] = min(due, self.due.get(key, math.inf))

    @rule(key=keys)
    def add(self, key: Hashable) -> None:
        self.line.add(key)
        self._place(key, -math.inf)

    @rule(key=keys, delay=delays)
    def add_at(self, key: Hashable, delay: float) -> None:
        self.line.add_at(key, self.now + delay)
        self._place(key, self.now + delay)

    @rule(key=keys)
    def forget(self, key: Hashable) -> None:
        self.line.forget(key)
        self.due.pop(key, None)
        if key in self.waiting:
            self.waiting.remove(key)
        if key in self.running:
            self.running[key] = math.inf
            self.forgotten.add(key)

    @precondition(lambda self: self.waiting)
    @rule()
    def take(self) -> None:
        key = self.line.take()
        assert key in self.waiting
        self.waiting.remove(key)
        self.running[key] = math.inf

    @precondition(lambda self: self.running)
    @rule(data=st.data(), delay=st.none() | delays)
    def done(self, data: st.DataObject, delay: float | None) -> None:
        key = data.draw(st.sampled_from(sorted(self.running, key=repr)))
        due = None if delay is None else self.now + delay
        self.line.done(key, due)
        again = self.running.pop(key)
        if key in self.forgotten:
            self.forgotten.discard(key)
        elif due is not None:
            again = min(again, due)
        self._place(key, again)

    @rule(seconds=delays)
    def release(self, seconds: float) -> None:
        self.now += seconds
        next_due = self.line.release(self.now)
        for key, due in sorted(self.due.items(), key=lambda item: item[1]):
            if due <= self.now:
                del self.due[key]
                self.waiting.append(key)
        assert next_due == min(self.due.values(), default=None)

    @precondition(lambda self: len(self.running) + len(self.waiting) > 3)
    @rule()
    def close(self) -> None:
        self.line.close()
        self.is_closed = True
        self.waiting.clear()
        self.due.clear()

    @invariant()
    def counts_agree(self) -> None:
        assert self.line.waiting == len(self.waiting)
        assert self.line.delayed == len(self.due)
        assert self.line.running == len(self.running)

    @invariant()
    def each_key_is_in_one_place(self) -> None:
        places = [*self.waiting, *self.due, *self.running]
        assert len(places) == len(set(places))

    def teardown(self) -> None:
        """What waits comes out, each key once, and nothing else."""
        rest = []
        for _ in range(len(self.waiting)):
            rest.append(self.line.take())
        assert sorted(rest, key=repr) == sorted(self.waiting, key=repr)
        assert self.line.waiting == 0


TestWorkQueue = WorkQueueMachine.TestCase
TestWorkQueue.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
