"""`jobinfo-cache simulate`: a simulated dashboard in the foreground."""

from __future__ import annotations

import argparse
import math
import threading
from typing import Any

from jobinfo_cache.commands import options
from jobinfo_cache.commands.exits import Exit, UsageError
from jobinfo_cache.commands.output import Output
from jobinfo_cache.testing import SimulatedDashboard

__all__ = ["add_parser", "run"]

_EXAMPLES = """\
examples:
  jobinfo-cache simulate --port 8265 --jobs 12
  jobinfo-cache simulate --port 0 --latency 0.2 -o json
  jobinfo-cache simulate --port 8265 --fault slow:3
"""

#: What becomes of the jobs, in turn.
_SCRIPTS: tuple[dict[str, Any], ...] = (
    {"pending": 2.0, "running": 20.0},
    {"pending": 5.0, "running": 40.0},
    {"pending": 1.0, "running": 10.0, "outcome": "FAILED", "exit_code": 3},
    {"pending": 2.0, "running": math.inf},
)


def add_parser(commands: Any) -> None:
    """Add the command to the parser's commands."""
    parser = commands.add_parser(
        "simulate",
        help="run a simulated dashboard in the foreground",
        description="Answer as a Ray dashboard does, on loopback, until Ctrl-C or SIGTERM. "
        "Its URL is printed when it listens. With a token (see --token-file) it asks for it.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--port", type=_port, required=True, metavar="P", help="where to listen; 0 takes any"
    )
    parser.add_argument(
        "--jobs",
        type=options.count_from_none,
        default=0,
        metavar="N",
        help="jobs that are there from the start: of each four, two succeed (after 22 and 45 s), "
        "one fails (after 11 s) and one runs until it is stopped (default: none)",
    )
    parser.add_argument(
        "--latency", type=options.delay, default=0.0, metavar="S", help="seconds per answer"
    )
    parser.add_argument(
        "--fault",
        metavar="KIND",
        help="what goes wrong with each request: hang, refuse, reset, garbage, a status such as "
        "500, or slow:S",
    )
    options.add_shared(parser)
    parser.set_defaults(run=run, parser=parser)


def run(arguments: argparse.Namespace, output: Output) -> Exit:
    """Serve until a signal ends it."""
    token = options.simulated_token(options.token(arguments.token_file))
    dashboard = SimulatedDashboard(port=arguments.port, token=token, latency=arguments.latency)
    for number in range(arguments.jobs):
        dashboard.add_job(f"job-{number + 1}", **_SCRIPTS[number % len(_SCRIPTS)])
    if arguments.fault is not None:
        _set_fault(dashboard, arguments.fault)
    try:
        dashboard.start()
    except OSError as error:
        raise UsageError(f"--port {arguments.port}: {error.strerror}") from error
    with dashboard:
        output.data(f"listening on {dashboard.url}", {"url": dashboard.url})
        threading.Event().wait()
    return Exit.OK


def _set_fault(dashboard: SimulatedDashboard, kind: str) -> None:
    try:
        dashboard.fault(kind)
    except ValueError as error:
        raise UsageError(f"--fault: {error}") from error


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port from 0 to 65535")
    return int(text)
