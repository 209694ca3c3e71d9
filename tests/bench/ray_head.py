"""The library on a real Ray head with 300 job records: list against single requests."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any

from jobinfo_cache import Cluster, DashboardClient, JobInfoCache, Settings
from tests.bench.report import table
from tests.ray.head import RayHead, ray_bin

__all__ = ["ray_figures"]

RECORDS = 300
SECONDS = 24.0

# Runs in Ray's own Python: the records go into the store that the dashboard reads.
FILL = """
import sys
from ray._raylet import GcsClient
from ray.dashboard.modules.job.common import JobInfo, JobStatus
import json
gcs = GcsClient(address=sys.argv[1])
for number in range(int(sys.argv[2])):
    info = JobInfo(status=JobStatus.RUNNING, entrypoint="python train.py", start_time=1764547200000)
    key = b"_ray_internal_job_info_bench-%03d" % number
    gcs.internal_kv_put(key, json.dumps(info.to_json()).encode(), True, b"job")
"""


def ray_figures() -> list[dict[str, Any]]:
    """Starts a head and fills it; takes two minutes. RAY_BIN names where Ray is."""
    figures = []
    with RayHead(ray_bin()) as head:
        address = f"127.0.0.1:{head._ports['--port']}"
        python = str(Path(ray_bin()) / "python")
        subprocess.run([python, "-c", FILL, address, str(RECORDS)], check=True)
        for jobs in (RECORDS, 20):
            for batching in (True, False):
                figures.append(follow(head, jobs, batching=batching))
    keys = [*figures[0]]
    rows = [[each[key] for key in keys] for each in figures]
    table(f"a real Ray head with {RECORDS} records", keys, rows)
    return figures


def follow(head: RayHead, jobs: int, *, batching: bool) -> dict[str, Any]:
    """Follow so many of the jobs for a while."""
    ids = [f"bench-{number:03}" for number in range(jobs)]
    with JobInfoCache(Settings(batching=batching)) as cache:
        client = cache.client(DashboardClient(head.url), Cluster("bench", "ray", "uid"))
        for job_id in ids:
            client.lookup(job_id)
        time.sleep(6.0)
        before, cpu, began = cache.stats(), cpu_of(head), time.monotonic()
        ages: list[float] = []
        while time.monotonic() < began + SECONDS:
            ages += [client.lookup(job_id).age or 0.0 for job_id in ids]
            time.sleep(0.2)
        after, used = cache.stats(), cpu_of(head) - cpu
    ages.sort()
    return {
        "jobs": jobs,
        "batching": str(batching),
        "singles an interval": (after.requests_single - before.requests_single) * 3.0 / SECONDS,
        "lists an interval": (after.requests_list - before.requests_list) * 3.0 / SECONDS,
        "failed": sum(after.polls_failed.values()),
        "head CPU": used / SECONDS,
        "age p50": ages[len(ages) // 2],
        "age p99": ages[int(len(ages) * 0.99)],
    }


def cpu_of(head: RayHead) -> float:
    """CPU seconds that the head's processes have used."""
    ticks = 0
    for pid in head.processes():
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # ended meanwhile
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
