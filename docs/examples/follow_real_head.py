"""The reference controller on a fake API server and a real Ray head: `python THIS_FILE URL`.

Prints how three RayJobs ended, as JSON. Exits with 1 when they do not end in time.
"""

from __future__ import annotations

import json
import sys
import threading
import time

from fake_api import FakeApi
from kubernetes import client
from rayjob_controller.controller import DASHBOARD_URL, Controller

_LIMIT = 180.0  # seconds
_ENTRYPOINTS = {"succeeds": "echo hello", "fails": "exit 3", "takes-time": "sleep 3"}


def main(url: str) -> int:
    with FakeApi() as api:
        annotations = {DASHBOARD_URL: url}
        api.create("rayclusters", "RayCluster", "one", metadata={"annotations": annotations})
        for name, entrypoint in _ENTRYPOINTS.items():
            selector = {"ray.io/cluster": "one"}
            spec = {"entrypoint": entrypoint, "clusterSelector": selector}
            api.create("rayjobs", "RayJob", name, spec=spec)
        deadline, pause = time.monotonic() + _LIMIT, threading.Event()
        with Controller(client.ApiClient(client.Configuration(host=api.url)), resync=2.0):
            while True:
                statuses = {
                    name: job.get("status", {}) for name, job in api.list("rayjobs").items()
                }
                ends = {name: _end(status) for name, status in statuses.items()}
                if all(end[0] in ("Complete", "Failed") for end in ends.values()):
                    break
                if time.monotonic() > deadline:
                    print(statuses, file=sys.stderr)
                    return 1
                pause.wait(0.5)
    print(json.dumps(ends))
    return 0


def _end(status: dict[str, str]) -> list[str]:
    return [status.get("jobDeploymentStatus", ""), status.get("jobStatus", "")]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
