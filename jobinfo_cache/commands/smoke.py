"""`jobinfo-cache smoke`: a controller loop over dashboards, as a check of the whole."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from jobinfo_cache import Cluster, DashboardClient
from jobinfo_cache.commands import options
from jobinfo_cache.commands.exits import Exit, UsageError
from jobinfo_cache.commands.output import Output
from jobinfo_cache.commands.removal import remove_jobs
from jobinfo_cache.commands.trial import Trial
from jobinfo_cache.commands.workload import REAL, SIMULATED, custom_kinds, make_jobs
from jobinfo_cache.testing import SimulatedDashboard

__all__ = ["add_parser", "run"]

_SIMULATED_INTERVAL = 0.3  # seconds
_REAL_INTERVAL = 1.0
_PATIENCE = 30.0
_LATENCY = 0.06  # seconds of a simulated answer: over the limit, so no read can wait for one

_EXAMPLES = """\
examples:
  jobinfo-cache smoke
  jobinfo-cache smoke --jobs 200 --clusters 10 -o json
  jobinfo-cache smoke --url http://127.0.0.1:8265 --jobs 8
  jobinfo-cache smoke --url http://127.0.0.1:8265 --jobs 3 --entrypoint 'sleep 5' --keep
"""


def add_parser(commands: Any) -> None:
    """Add the command to the parser's commands."""
    parser = commands.add_parser(
        "smoke",
        help="run a controller loop over simulated dashboards or a real one",
        description="Submit jobs, follow them with the cached client from one thread until all "
        "have ended, and check what was promised: no read takes over 50 ms (less the time in "
        "which the machine let nothing of the program run; the first read, which starts the "
        "threads, has 1 s), no end is missed or changes, no "
        "thread is left, and the library prints nothing.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--url", help="a real dashboard (default: simulated ones)")
    parser.add_argument(
        "--clusters",
        type=options.count,
        metavar="N",
        help="simulated dashboards (default: 2); with --url: views of it (default: 1)",
    )
    parser.add_argument(
        "--jobs", type=options.count, default=20, metavar="N", help="how many (default: 20)"
    )
    parser.add_argument(
        "--entrypoint",
        metavar="COMMAND",
        help="with --url: what every job runs, and must succeed "
        "(default: eight kinds of jobs, some of which must fail)",
    )
    parser.add_argument(
        "--keep", action="store_true", help="with --url: do not delete the jobs at the end"
    )
    parser.add_argument(
        "--timeout",
        type=options.seconds,
        default=60.0,
        metavar="SECONDS",
        help="until all jobs must have ended (default: 60)",
    )
    options.add_shared(parser)
    parser.set_defaults(run=run, parser=parser)


def run(arguments: argparse.Namespace, output: Output) -> Exit:
    """Do it; blocks for at most the timeout, and some requests and clean-up."""
    token = options.token(arguments.token_file)
    if arguments.url is None:
        if arguments.entrypoint or arguments.keep:
            raise UsageError("--entrypoint and --keep are for a real dashboard; name it by --url")
        return _run_simulated(arguments, output, token)
    return _run_real(arguments, output, token)


def _run_simulated(arguments: argparse.Namespace, output: Output, token: str | Path | None) -> Exit:
    settings = options.environment_settings(_SIMULATED_INTERVAL)
    with ExitStack() as stack:
        simulators = {
            Cluster("simulated", f"cluster-{number}"): stack.enter_context(
                SimulatedDashboard(latency=_LATENCY, token=options.simulated_token(token))
            )
            for number in range(arguments.clusters or 2)
        }
        jobs = make_jobs(SIMULATED, list(simulators), arguments.jobs)
        for job in jobs:
            job.script(simulators[job.key.cluster])
        urls = {cluster: simulator.url for cluster, simulator in simulators.items()}
        dashboards = _dashboards(urls, token, settings.request_timeout)
        patient = _patient(urls, token, arguments.timeout, stack)
        return Trial(jobs, dashboards, patient, settings, output).run(arguments.timeout)


def _run_real(arguments: argparse.Namespace, output: Output, token: str | Path | None) -> Exit:
    settings = options.environment_settings(_REAL_INTERVAL)
    clusters = [Cluster("real", f"view-{number}") for number in range(arguments.clusters or 1)]
    kinds = REAL if arguments.entrypoint is None else custom_kinds(arguments.entrypoint)
    jobs = make_jobs(kinds, clusters, arguments.jobs)
    urls = dict.fromkeys(clusters, arguments.url)
    with ExitStack() as stack:
        dashboards = _dashboards(urls, token, settings.request_timeout)
        patient = _patient(urls, token, arguments.timeout, stack)
        trial = Trial(jobs, dashboards, patient, settings, output)
        if not arguments.keep:
            stack.callback(remove_jobs, trial.submitted, patient, output)
        return trial.run(arguments.timeout)


def _patient(
    urls: Mapping[Cluster, str], token: str | Path | None, timeout: float, stack: ExitStack
) -> dict[Cluster, DashboardClient]:
    """Clients for requests that may take long: a new head is slow to accept its first job."""
    clients = _dashboards(urls, token, min(timeout, _PATIENCE))
    for client in clients.values():
        stack.enter_context(client)
    return clients


def _dashboards(
    urls: Mapping[Cluster, str], token: str | Path | None, timeout: float
) -> dict[Cluster, DashboardClient]:
    return {cluster: options.dashboard_client(url, token, timeout) for cluster, url in urls.items()}
