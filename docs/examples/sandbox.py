"""RayJobs without a Kubernetes cluster: `python sandbox.py KIND`, until Ctrl-C.

A fake API server, and a RayCluster with a simulated dashboard. KIND is what a controller finds
there: "submitted", RayJobs as KubeRay's operator leaves them, or "new" ones that nobody has
submitted. Writes `sandbox.kubeconfig`, and prints what becomes of the RayJobs.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from fake_api import FakeApi

from jobinfo_cache.testing import SimulatedDashboard

#: The submitted RayJobs, by how they end once a controller has seen them run; new ones succeed.
_ENDS = {"first": "SUCCEEDED", "second": "FAILED", "third": "STOPPED"}
_LASTING = 3.0  # seconds that a job runs
_PAUSE = 0.5  # seconds between two looks


def main(kind: str) -> None:
    if kind not in ("submitted", "new"):
        sys.exit(__doc__)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    kubeconfig = Path("sandbox.kubeconfig")
    with FakeApi() as api, SimulatedDashboard() as dashboard:
        try:
            api.kubeconfig(kubeconfig)
            _create(api, dashboard, kind == "submitted")
            print(f"ready: export KUBECONFIG={kubeconfig.resolve()}", flush=True)
            _watch(api, dashboard, kind == "submitted")
        finally:
            kubeconfig.unlink()


def _create(api: FakeApi, dashboard: SimulatedDashboard, submitted: bool) -> None:
    annotations = {"example.com/dashboard-url": dashboard.url}
    api.create("rayclusters", "RayCluster", "one", metadata={"annotations": annotations})
    dashboard.script(pending=1.0, running=_LASTING)
    for name in _ENDS:
        spec = {"entrypoint": "true", "clusterSelector": {"ray.io/cluster": "one"}}
        if submitted:
            dashboard.add_job(name, status="RUNNING")
            status = {"jobId": name, "rayClusterName": "one"}
            api.create("rayjobs", "RayJob", name, spec=spec, status=status)
        else:
            api.create("rayjobs", "RayJob", name, spec={**spec, "submissionMode": "HTTPMode"})


def _watch(api: FakeApi, dashboard: SimulatedDashboard, submitted: bool) -> None:
    """Print what changes, and end submitted jobs some time after they were seen to run."""
    shown: dict[str, str] = {}
    due: dict[str, float] = {}
    pause = threading.Event()
    while True:
        for name, job in api.list("rayjobs").items():
            state = _state(job)
            if state == shown.get(name, ""):
                continue
            shown[name] = state
            print(f"{name}: {state}", flush=True)
            if submitted and state == "RUNNING":
                due[name] = time.monotonic() + _LASTING
        for name in [name for name, moment in due.items() if moment < time.monotonic()]:
            del due[name]
            dashboard.set_status(name, _ENDS[name])
        pause.wait(_PAUSE)


def _state(job: dict[str, Any]) -> str:
    """What a controller wrote: the kopf operator an annotation, the reference the status."""
    status = job.get("status") or {}
    written = [
        (job["metadata"].get("annotations") or {}).get("example.com/ray-status"),
        status.get("jobDeploymentStatus"),
        status.get("jobStatus"),
    ]
    return " ".join(word for word in written if word)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main(sys.argv[1] if len(sys.argv) == 2 else "")
