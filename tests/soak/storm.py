"""Ten thousand requests that go wrong, one after another in a few threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from jobinfo_cache import DashboardClient
from jobinfo_cache.errors import DashboardError
from tests.soak.fleet import CERTIFICATE, Fleet
from tests.soak.ledger import Ledger

_FAULTS = ("stall-handshake", "hang", "drip-headers", "drip-body", "long-length", "truncate")
_THREADS = 8
_TIMEOUT = 0.05
_GRACE = 0.5  # seconds beyond the deadline that a request may take
_ASKS: Sequence[Callable[[DashboardClient], object]] = (
    lambda client: client.get_job_info("x"),
    lambda client: client.list_jobs(),
    lambda client: client.submit_job("true"),
    lambda client: client.stop_job("x"),
    lambda client: client.get_job_log("x"),
)


def storm(fleet: Fleet, requests: int, ledger: Ledger) -> None:
    """Send so many, half of them over TLS, none of which may outlast its deadline."""
    share = requests // len(_FAULTS) // _THREADS
    for fault in _FAULTS:
        for number in (0, 1):
            fleet.order(number, "fault", fault)
        threads = [
            threading.Thread(target=_send, args=(fleet.urls[number % 2], share, ledger))
            for number in range(_THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for number in (0, 1):
        fleet.order(number, "fault", None)


def _send(url: str, count: int, ledger: Ledger) -> None:
    with DashboardClient(url, timeout=_TIMEOUT, verify=str(CERTIFICATE), proxies={}) as client:
        for number in range(count):
            began = time.monotonic()
            try:
                _ASKS[number % len(_ASKS)](client)
            except DashboardError as error:
                ledger.count(f"storm: {error.kind}")
            else:
                ledger.violation("a request of the storm got an answer")
            took = time.monotonic() - began
            ledger.took(f"request of the storm (deadline {_TIMEOUT * 1000:.0f} ms)", took)
            ledger.check(took < _TIMEOUT + _GRACE, f"a request of the storm took {took:.2f} s")
