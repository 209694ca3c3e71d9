"""Controllers: threads that follow jobs through the cache, as an operator's reconcile does."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence

from jobinfo_cache import JobInfo
from jobinfo_cache.errors import DashboardError, JobConflict, JobNotFound, TryAgain
from tests.soak.clusters import SECRET, Site
from tests.soak.ledger import Ledger

_RANKS = {"PENDING": 0, "RUNNING": 1}
_TERMINAL = 2


class Slot:
    """One job after another on one cluster; at the end the last one must be terminal."""

    def __init__(self, site: Site, number: int, ledger: Ledger) -> None:
        self.site = site
        self.job_id = ""
        self.is_over = False
        self._name = f"job-{number}"
        self._ledger = ledger
        self._tries = 0
        self._submitted = False
        self._head = -1
        self._rank = 0
        self._not_before = 0.0
        self._next()

    def reconcile(self, dice: random.Random, draining: bool) -> None:
        """Look after the job once: submit it, or read its state. May block for one request."""
        if time.monotonic() < self._not_before or (self.is_over and draining):
            return
        if self.is_over:
            self._delete(dice)
            self._next()
        if not self._submitted:
            self._submit()
            return
        info = self._read()
        if info is None:
            return
        self._check(info)
        if self.is_over:
            return
        if info.status == "RUNNING" and dice.random() < 0.001:
            self._act("stop", lambda: self.site.client.stop_job(self.job_id))
        if dice.random() < 0.002:
            self._ledger.count("forgotten")
            self.site.client.forget(self.job_id)

    def _next(self) -> None:
        self._tries += 1
        self.job_id = f"{self._name}-{self._tries}"
        self._submitted = self.is_over = False
        self._rank = 0

    def _delete(self, dice: random.Random) -> None:
        """Now and then as a user does; behind the scenes otherwise, so that lists stay short."""
        if dice.random() < 0.3:
            self._act("delete", lambda: self.site.client.delete_job(self.job_id))
        self.site.remove(self.job_id)

    def _submit(self) -> None:
        self._head = self.site.heads
        environment = {"env_vars": {"PASSWORD": SECRET}}
        self._submitted = self._act(
            "submit",
            lambda: self.site.client.submit_job(
                "true", submission_id=self.job_id, runtime_env=environment
            ),
        )

    def _act(self, what: str, act: Callable[[], object]) -> bool:
        """A request of the caller's thread; True if it was, or had been, carried out."""
        try:
            act()
        except JobConflict:
            self._ledger.count(f"{what} that had been carried out unseen")
            return True
        except DashboardError as error:
            self._ledger.count(f"{what} failed, {error.kind}")
            self._ledger.check(SECRET not in f"{error}{error!r}", "a secret in an error")
            self._not_before = time.monotonic() + 1.0
            return False
        self._ledger.count(f"{what} carried out")
        return True

    def _read(self) -> JobInfo | None:
        began = time.perf_counter()
        try:
            return self.site.client.get_job_info(self.job_id)
        except TryAgain as error:
            self._ledger.count(f"read: {error.reason}")
        except JobNotFound:
            self._lost()
        except DashboardError as error:
            self._ledger.count(f"read: {error.kind}")
            self._ledger.check(SECRET not in f"{error}{error!r}", "a secret in an error")
        finally:
            self._ledger.took("read", time.perf_counter() - began)
        return None

    def _lost(self) -> None:
        """The job is unknown: that must be true, and the head must be another one by now."""
        self._ledger.count("read: not_found")
        status = self.site.truth(self.job_id)
        restarted = self.site.heads > self._head
        self._ledger.check(
            status is None and restarted,
            f"{self.job_id} was said to be unknown; it is {status}, restarted: {restarted}",
        )
        self._next()

    def _check(self, info: JobInfo) -> None:
        """States only go forward; a terminal one is the true one."""
        rank = _RANKS.get(info.status, _TERMINAL)
        self._ledger.count("read: ok")
        self._ledger.check(rank >= self._rank, f"{self.job_id} went back to {info.status}")
        self._rank = rank
        if not info.status.is_terminal:
            return
        self.is_over = True
        self._ledger.count(f"ended {info.status}")
        truth = self.site.truth(self.job_id)
        lost = truth is None and self.site.heads > self._head
        self._ledger.check(
            lost or truth == info.status, f"{self.job_id} is {info.status}; in truth {truth}"
        )


class Controller(threading.Thread):
    """Looks after its slots again and again, until all are over and it is told to drain."""

    def __init__(self, slots: Sequence[Slot], seed: int, ledger: Ledger) -> None:
        super().__init__(name=f"controller-{seed}")
        self.draining = threading.Event()
        self.given_up = threading.Event()
        self._slots = slots
        self._dice = random.Random(seed)
        self._ledger = ledger

    def run(self) -> None:
        while not self.given_up.wait(0.05):
            draining = self.draining.is_set()
            for slot in self._slots:
                try:
                    slot.reconcile(self._dice, draining)
                except Exception as fault:
                    self._ledger.violation(f"a reconcile raised {type(fault).__name__}: {fault}")
                    slot.is_over = True
            if draining and all(slot.is_over for slot in self._slots):
                return
