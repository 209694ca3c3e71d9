"""Faults, rotations and restarts, at random, from a seed."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence

from jobinfo_cache import JobInfoCache
from tests.soak.clusters import Site
from tests.soak.fleet import Fleet
from tests.soak.ledger import Ledger

_TICK = 0.25  # seconds
_FAULTS = (
    "refuse",
    "stall-handshake",
    "reset-before-headers",
    "reset-after-headers",
    "truncate",
    "drip-headers",
    "drip-body",
    "hang",
    "html",
    "login-redirect",
    "401",
    "403",
    "404",
    "500",
    "502",
    "huge-body",
    "gzip-bomb",
    "long-length",
    "short-length",
    "close",
)
_DELAYS = (None, "1", "2", "99999999999", "soon", "Fri, 31 Dec 1999 23:59:59 GMT")
_OUTCOMES = ("SUCCEEDED", "SUCCEEDED", "FAILED")


class Chaos:
    """Changes one thing about one cluster at each tick. For one thread."""

    def __init__(
        self, fleet: Fleet, sites: Sequence[Site], cache: JobInfoCache, ledger: Ledger, seed: int
    ) -> None:
        self._fleet = fleet
        self._sites = sites
        self._cache = cache
        self._ledger = ledger
        self._dice = random.Random(seed)
        self._pause = threading.Event()
        self._tokens: dict[int, str] = {}  # those that the dashboards want and nobody sends yet
        for site in sites:
            self._script(site)

    def tick(self) -> None:
        """One change; blocks for a tick and for what the change takes."""
        site = self._dice.choice(self._sites)
        change = self._dice.choices(
            (self._fault, self._well, self._script, self._rotate, self._restart, self._forget),
            weights=(40, 40, 10, 8, 2, 2),
        )[0]
        change(site)
        self._pause.wait(_TICK)

    def end(self) -> None:
        """All is well from now on."""
        for site in self._sites:
            self._well(site)
            if site.number in self._tokens:
                site.take_token(self._tokens.pop(site.number))

    def _fault(self, site: Site) -> None:
        if self._dice.random() < 0.2:
            delay = self._dice.choice(_DELAYS)
            status = self._dice.choice(("429", "503"))
            self._fleet.order(site.number, "fault", status, retry_after=delay)
        else:
            self._fleet.order(site.number, "fault", self._dice.choice(_FAULTS))
        self._ledger.count("faults")

    def _well(self, site: Site) -> None:
        self._fleet.order(site.number, "fault", None)

    def _script(self, site: Site) -> None:
        """What the jobs to come do there."""
        dice = self._dice
        self._fleet.order(
            site.number,
            "script",
            pending=dice.uniform(0.0, 3.0),
            running=dice.uniform(0.0, 15.0),
            outcome=dice.choice(_OUTCOMES),
        )

    def _rotate(self, site: Site) -> None:
        """The dashboard's token first; its source learns of it at the next turn."""
        if site.number in self._tokens:
            site.take_token(self._tokens.pop(site.number))
            return
        self._ledger.count("token rotations")
        self._tokens[site.number] = site.change_token()
        for number in [each for each in self._tokens if each != site.number]:
            self._sites[number].take_token(self._tokens.pop(number))

    def _restart(self, site: Site) -> None:
        self._ledger.count("head restarts")
        site.restart()

    def _forget(self, site: Site) -> None:
        self._ledger.count("clusters forgotten")
        self._cache.forget(site.cluster.namespace, site.cluster.name)
