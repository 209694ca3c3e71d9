"""The command line: `jobinfo-cache …`, which is `python -m jobinfo_cache …`."""

from __future__ import annotations

import argparse
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from jobinfo_cache import InvalidJobId, JobInfoCacheError
from jobinfo_cache._version import __version__
from jobinfo_cache.commands import simulate, smoke, watch
from jobinfo_cache.commands.exits import Exit, OutputError, UsageError, exit_for
from jobinfo_cache.commands.output import Output, one_line

__all__ = ["main"]

_EPILOG = """\
examples:
  jobinfo-cache smoke
  jobinfo-cache simulate --port 8265 --jobs 12
  jobinfo-cache watch --url http://127.0.0.1:8265

exit codes:
  0 all well          1 a job did not succeed, or the smoke check failed
  2 usage             3 job not found
  4 dashboard unavailable, or timed out
  5 token refused     6 stdout cannot be written
  130 Ctrl-C          143 SIGTERM

environment:
  JOBINFO_CACHE_POLL_INTERVAL and the like set what the cache does
  RAY_AUTH_TOKEN, RAY_AUTH_TOKEN_PATH give the dashboard's token
"""


class _Terminated(BaseException):
    """SIGTERM has come; the command ends, and closes what it holds."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, `sys.argv` by default, and return its exit code; blocks until its end.

    Raises `SystemExit` as `argparse` does. In the main thread SIGTERM ends the command.
    """
    try:
        with _sigterm_ends_it():
            return _run(arguments)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except _Terminated:
        return Exit.TERMINATED


def _run(arguments: Sequence[str] | None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    command: argparse.ArgumentParser = options.parser
    output = Output(as_json=options.output == "json")
    try:
        return int(options.run(options, output))
    except (UsageError, InvalidJobId) as error:
        command.error(str(error))
    except OutputError as error:
        output.note(f"{parser.prog}: {error}")
        return Exit.OUTPUT
    except JobInfoCacheError as error:
        output.note(f"{parser.prog}: {one_line(str(error), limit=1000)}")
        return exit_for(error)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jobinfo-cache",
        description="Follow the jobs of Ray dashboards through a cache that never waits.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in (smoke, watch, simulate):
        command.add_parser(commands)
    return parser


@contextmanager
def _sigterm_ends_it() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        raise _Terminated

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
