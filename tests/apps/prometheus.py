"""A real Prometheus on loopback, with the configuration, rules and alerts of the documentation."""

from __future__ import annotations

import contextlib
import json
import shutil
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.apps import found
from tests.net.boxes import Box, free_port

FILES = Path(__file__).parents[2] / "docs" / "examples" / "monitoring"
LIMIT = 60.0  # seconds; only a failure uses them up

_PAUSE = 0.1
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))

Sample = dict[str, Any]  # "metric": its labels; "value": [time, text]


class Prometheus:
    """One that runs; asked by HTTP."""

    def __init__(self, url: str) -> None:
        self._url = url

    def ask(self, path: str, **arguments: str) -> Any:
        """The data of an answer of its API; None while it is not ready."""
        try:
            text = get(f"{self._url}/api/v1/{path}?{urllib.parse.urlencode(arguments)}")
        except urllib.error.HTTPError as refusal:
            refusal.close()
            if refusal.code != 503:
                raise
            return None
        return json.loads(text)["data"]

    def query(self, expression: str) -> list[Sample]:
        """What the expression gives now, without what is not a number."""
        data = self.ask("query", query=expression)
        samples = data["result"] if data is not None else []
        return [sample for sample in samples if sample["value"][1] != "NaN"]

    def wait_for(self, expression: str) -> list[Sample]:
        """The samples of the expression once there are any; fails the test if none come."""
        samples: list[Sample] = until(lambda: self.query(expression), expression)
        return samples


def until(look: Callable[[], Any], what: str) -> Any:
    """What `look` gives, once that is not empty; fails the test if it stays so."""
    pause = threading.Event()
    for _ in range(int(LIMIT / _PAUSE)):
        if seen := look():
            return seen
        pause.wait(_PAUSE)
    return pytest.fail(f"after {LIMIT} s still nothing: {what}")


def get(url: str) -> str:
    """The body of an answer."""
    with _DIRECT.open(url, timeout=LIMIT) as answer:
        return str(answer.read(), "utf-8")


@contextlib.contextmanager
def prometheus(directory: Path, port: int) -> Iterator[Prometheus]:
    """One that asks the exporter at `port` each second."""
    program = found("prometheus")
    for name in ("recording.yml", "alerts.yml"):
        shutil.copy(FILES / name, directory)
    config = (FILES / "prometheus.yml").read_text(encoding="utf-8")
    config = config.replace(": 15s", ": 1s").replace("127.0.0.1:9464", f"127.0.0.1:{port}")
    (directory / "prometheus.yml").write_text(config)
    listens = free_port()
    command = [
        program,
        f"--config.file={directory}/prometheus.yml",
        f"--storage.tsdb.path={directory}/data",
        f"--web.listen-address=127.0.0.1:{listens}",
        "--log.level=warn",
    ]
    box = Box(command, listens, directory / "prometheus.log")
    box.start()
    try:
        yield Prometheus(box.url)
    finally:
        box.stop()
