"""What a request costs the client: this library's beside `requests.Session().get(...).json()`.

As a program it prints its figures as one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from statistics import median

import requests

from jobinfo_cache import DashboardClient
from tests.bench.fleet import Fleet, FleetPlan

__all__ = ["http_figures"]

REQUESTS = 400  # a round
ROUNDS = 9


def http_figures() -> dict[str, float]:
    """CPU of a request, in microseconds and as a ratio; in turns, takes ten seconds."""
    with Fleet(FleetPlan(1, 1, latency=0.0)) as fleet:
        url = fleet.urls[0]
        client = DashboardClient(url)
        session = requests.Session()

        def ours() -> object:
            return client.get_job_info("job-000000")

        def theirs() -> object:
            return session.get(f"{url}/api/jobs/job-000000", timeout=2.0).json()

        pairs = [(cpu_of(ours), cpu_of(theirs)) for _ in range(ROUNDS)]
        client.close()
        session.close()
    return {
        "library_us": median(own for own, _ in pairs) * 1e6,
        "session_us": median(other for _, other in pairs) * 1e6,
        "ratio": median(own / other for own, other in pairs),
    }


def cpu_of(request: Callable[[], object]) -> float:
    request()
    began = time.process_time()
    for _ in range(REQUESTS):
        request()
    return (time.process_time() - began) / REQUESTS


if __name__ == "__main__":
    sys.stdout.write(json.dumps(http_figures()) + "\n")
