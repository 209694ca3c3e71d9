"""The library broken on purpose, one line at a time, and which invariant notices."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["MACHINE", "MUTATIONS", "Mutation"]

MACHINE = "tests/stateful"


class Mutation(NamedTuple):
    """In `file` the text `old`, which occurs once, becomes `new`; `tests` must then fail."""

    file: str
    old: str
    new: str
    notices: str
    tests: str = MACHINE


MUTATIONS = [
    # 1. Per cluster: queued + delayed + running is at most one.
    Mutation(
        "work_queue.py",
        "        if key in self._running:\n"
        "            self._running[key] = min(self._running[key], due)\n"
        "            return False\n",
        "",
        "a cluster is in two places, and polled by two workers",
    ),
    Mutation(
        "work_queue.py",
        "            self._due.pop(key, None)\n            self._waiting.add(key)\n"
        "            return True\n",
        "            self._waiting.add(key)\n            return True\n",
        "a cluster is queued and delayed",
    ),
    # 2. Every live entry's cluster is queued, delayed, running or parked, and in time.
    Mutation(
        "work_queue.py",
        "again = min(again, due)",
        "again = max(again, due)",
        "a cluster is lost after its round",
    ),
    Mutation(
        "work_queue.py",
        "if due < self._due.get(key, _NEVER):",
        "if key not in self._due:",
        "a job brought forward waits for the old due time",
    ),
    Mutation(
        "work_queue.py",
        "            if key in self._waiting:\n                    self._waiting.remove(key)\n",
        "            if key in self._waiting:\n",
        "a running cluster still counts as queued",
    ),
    Mutation(
        "dispatcher.py",
        "if slot >= self._armed:",
        "if self._timer is not None:",
        "the timer stays armed for a later slot",
    ),
    Mutation(
        "dispatcher.py",
        "self._outstanding -= 1",
        "pass",
        "workers are never free again",
    ),
    Mutation(
        "schedule.py",
        "return None if due == math.inf else max(state.next_due - now, 0.0)",
        "return None if due == math.inf else max(state.next_due - now, 5.0)",
        "a job is asked too late",
    ),
    Mutation(
        "schedule.py",
        "            entry.due_at = min(entry.due_at, wanted)\n",
        "",
        "an answer newer than the poll under way, asked for, comes a round later",
        "tests/stateful tests/unit",
    ),
    Mutation(
        "engine.py",
        "            self.store.supersede(entry)\n        self._visit(state)",
        "            self.store.supersede(entry)",
        "a stopped job is due at once, and its cluster is lost or late",
    ),
    Mutation(
        "reader.py",
        "self._pool.add_after(entry.state.cluster, delay)",
        "pass",
        "a poll brought forward to a later moment is never scheduled",
    ),
    # 3. No more entries than the size; the order of reads holds what the clusters hold.
    Mutation(
        "read_order.py",
        "return self._size - len(self._lru)",
        "return self._size - len(self._lru) + 1",
        "the order drops an entry that its cluster keeps",
    ),
    Mutation(
        "store.py",
        "            self._order.put(new)\n",
        "",
        "the superseded entry stays in the order, and counts",
    ),
    Mutation(
        "store.py",
        "entry.state.entries.pop(entry.job_id, None)",
        "pass",
        "a removed entry is still read",
    ),
    Mutation(
        "store.py",
        "        self._order.discard(entry)\n        if",
        "        if",
        "a removed entry stays in the order",
    ),
    # 4. States are a subsequence of the true ones; late replies are dropped.
    Mutation(
        "entry.py",
        "return self.state.entries.get(self.job_id) is self",
        "return self.job_id in self.state.entries",
        "a late reply is stored into another entry",
    ),
    Mutation(
        "outcomes.py",
        "if not entry.is_current or _is_outdated(record, state.written):",
        "if not entry.is_current:",
        "a late reply is stored under the job's other id",
        "tests/stateful tests/unit",
    ),
    Mutation(
        "outcomes.py",
        "if not entry.is_current or _is_outdated(record, state.written):",
        "if _is_outdated(record, state.written):",
        "a late reply is stored after a stop",
    ),
    Mutation(
        "outcomes.py",
        "state.written.clear()",
        "pass",
        "a good reply is dropped for what was written before its request",
    ),
    Mutation(
        "store.py",
        "if state.is_asking:",
        "if False:",
        "a late reply is stored under the job's other id",
        "tests/stateful tests/unit",
    ),
    Mutation(
        "store.py",
        "not entry.is_current or not entry.is_live:",
        "not entry.is_current:",
        "a stop makes a terminal job be asked about again",
    ),
    Mutation(
        "schedule.py",
        "            entry.due_at = entry.joins_at = math.inf\n",
        "",
        "a terminal job is asked about again",
    ),
    Mutation(
        "entry.py",
        "superseded=True",
        "superseded=False",
        "an answer from before a stop is handed out as fresh",
    ),
    Mutation(
        "client.py",
        "now <= entry.readable_until",
        "entry.readable_info is not None",
        "an answer that is too old, or superseded, is returned",
    ),
    Mutation(
        "entry.py",
        "self.readable_until = min(self.readable_until, fresh_until)",
        "pass",
        "an answer is returned until the time of the one before",
        "tests/unit",
    ),
    Mutation(
        "poller.py",
        "record.listed != found.digest",
        "record.listed is None",
        "a list that has changed is taken for the one before",
        "tests/unit",
    ),
    Mutation(
        "reader.py",
        "return record.is_terminal or record.info_at >= oldest",
        "return True",
        "an answer that is too old is returned",
    ),
    Mutation(
        "reader.py",
        "        if record.error_at < oldest:\n            self._ask",
        "        if False:\n            self._ask",
        "a failure that is too old is raised",
    ),
    Mutation(
        "store.py",
        "            entry.told = record\n            return True",
        "            return True",
        "a failure is raised twice",
    ),
    Mutation(
        "store.py",
        "new.told = new.record  # a failure from before is not told any more",
        "pass",
        "a failure from before a stop is raised after it",
    ),
    Mutation(
        "answers.py",
        'body.get("error_type") == "JOB_SUPERVISOR_ACTOR_DIED"',
        'body.get("error_type") == "never"',
        "the ghost of a deleted record is shown as the job's end",
    ),
    Mutation(
        "read_order.py",
        "            if may_go(entry, since):\n",
        "            if True:\n",
        "an entry goes before its answer was handed out",
    ),
    Mutation(
        "poller.py",
        "                self._outcomes.missed(entry)",
        "                pass",
        "a job that a list lacks is thought to be asked about, for ever",
        "tests/stateful tests/unit",
    ),
    # 5. Nothing is queued or stored after close.
    Mutation(
        "dispatcher.py",
        "        self.queue.close()\n        self._disarm()",
        "        self._disarm()",
        "clusters stay queued after close",
    ),
    Mutation(
        "dispatcher.py",
        "        self.queue.close()\n        self._disarm()",
        "        self.queue.close()",
        "a timer stays armed after close",
    ),
    Mutation(
        "store.py",
        "            for state in self.clusters():\n                state.entries.clear()",
        "            pass",
        "entries are there after close",
        # The machine has no reader that is inside the store while `close` begins.
        "tests/threads",
    ),
    Mutation(
        "notifier.py",
        "if change is None or self._store.is_closed:",
        "if change is None:",
        "on_change is called after close",
        "tests/threads tests/unit",
    ),
    # 6. At most one armed timer.
    Mutation(
        "dispatcher.py",
        "            self._timer.cancel()\n",
        "",
        "two timers are armed",
    ),
    # 7. Age is never negative, and never shrinks between two polls.
    Mutation(
        "entry.py",
        "return Record(info=info, info_at=sent_at,",
        "return Record(info=info, info_at=sent_at + 1.0,",
        "the age of an answer is less than that of its request",
    ),
    Mutation(
        "poller.py",
        "self._notifier.tell(entry, self._outcomes.answer(entry, outcome, sent))",
        "self._notifier.tell(entry, self._outcomes.answer(entry, outcome, self._clock.now()))",
        "fetched_at is when the reply came",
    ),
    # 8. Every removal has one cause.
    Mutation(
        "store.py",
        "        self.counts[cause] += 1\n",
        "",
        "a removal without a cause",
    ),
    Mutation(
        "store.py",
        "return max(entry.read_at, entry.terminal_at) <= deadline",
        "return False",
        "an unread entry stays",
    ),
    # More jobs than places: every job gets its answers
    Mutation(
        "store.py",
        "or not may_go(entry, now - self._patience):",
        "or False:",
        "a job that is due gives way before its answer was handed out",
    ),
    Mutation(
        "read_order.py",
        "return entry.read_at <= since and not entry.is_placeholder",
        "return False",
        "jobs that nobody comes back for hold their places for the whole expiry",
        "tests/unit/test_store.py",
    ),
    Mutation(
        "read_order.py",
        " and not entry.is_placeholder",
        "",
        "a job goes that was never asked about",
        "tests/unit/test_store.py",
    ),
    Mutation(
        "store.py",
        "read_at <= now - self._patience:",
        "read_at <= now - self._settings.expiry:",
        "jobs that nobody comes back for get places before those that are read",
        "tests/unit/test_store.py",
    ),
    Mutation(
        "store.py",
        "            self._waiting.drop_unread(now - self._patience)\n",
        "",
        "jobs wait for ever when nobody reads any",
        "tests/unit/test_store.py",
    ),
    Mutation(
        "store.py",
        "if self._order.free and job_id not in state.entries:",
        "if False:",
        "a job is refused while places are free",
        "tests/unit/test_store.py",
    ),
    Mutation(
        "store.py",
        "min(state.next_due, state.asked_at + self._settings.poll_interval)",
        "state.next_due",
        "a new job waits for the end of another job's backoff",
        "tests/unit/test_store.py",
    ),
    Mutation(
        "store.py",
        "entry.due_at = max(now, next_round)",
        "pass",
        "coming and going costs requests",
        "tests/unit/test_rhythm.py tests/unit/test_store.py",
    ),
    Mutation(
        "store.py",
        "        return self._exceeded_untold\n",
        "        return False\n",
        "a refusal is never said when no job is polled",
        "tests/unit/test_store.py",
    ),
    Mutation(
        "outcomes.py",
        "return self._store.give_way(due)",
        "return due",
        "a job is refused for ever that is read when nothing may go",
        "tests/unit/test_rhythm.py",
    ),
    Mutation(
        "store.py",
        "visit = self._place_waiting(now)",
        "visit = set[Cluster]()",
        "a new job takes the place that others wait for",
        "tests/unit/test_store.py",
    ),
    Mutation(
        "waiting_list.py",
        "self._jobs.popitem(last=False)",
        "self._jobs.popitem(last=True)",
        "a place goes to the job refused last, and others wait for ever",
        "tests/unit/test_rhythm.py tests/properties/test_fairness.py",
    ),
    # on_change, counters, and the rhythm
    Mutation(
        "entry.py",
        "if type(new.error) is type(self.error):",
        "if False:",
        "on_change says the same failure twice",
    ),
    Mutation(
        "entry.py",
        "            self.error is None\n            and self.info is not None",
        "            self.info is not None",
        "on_change is silent about a recovery",
    ),
    Mutation(
        "schedule.py",
        "            entry.due_at = entry.asked_at + self._interval * (1.0 - entry.state.share)\n",
        "            entry.due_at = entry.asked_at + self._interval / 4\n",
        "a job is asked again before its time",
    ),
    Mutation(
        "schedule.py",
        "        if now < state.not_before:\n            return []\n",
        "",
        "a round is made during a dashboard's backoff",
    ),
    Mutation(
        "schedule.py",
        "state.not_before = now + max(delay, min(named or 0.0, self._max_backoff))",
        "state.not_before = now + min(named or 0.0, self._max_backoff)",
        "a failing dashboard is asked without end",
    ),
    Mutation(
        "schedule.py",
        "delay = self._backoff(record.failures) * (1.0 - entry.state.share)",
        "delay = self._backoff(1) / 4",
        "an unknown job is asked again before its time",
    ),
    Mutation(
        "lanes.py",
        "            if self._parked and len(self._inside) < self._limit:\n"
        "                resumed = next(iter(self._parked))",
        "            if False:\n                resumed = next(iter(self._parked))",
        "a parked cluster is lost",
    ),
    # Noticed by other tests: the machine has no threads, and no controller
    Mutation(
        "pool.py",
        "except BaseException as fault:  # a worker outlives whatever its handler raises",
        "except ValueError as fault:",
        "a worker dies of what its handler raises",
        "tests/unit",
    ),
    Mutation(
        "pool.py",
        "if not delay >= 0:",
        "if delay < 0:",
        "a delay of nan is taken",
        "tests/unit",
    ),
    Mutation(
        "work_queue.py",
        "                self._running[key] = _NEVER\n                self._forgotten.add(key)",
        "                self._running[key] = _NEVER",
        "a forgotten key that is running is requeued",
        "tests/unit tests/properties",
    ),
]
