"""The writer of the reference controller meets conflicts, which its fake API server never has."""

from __future__ import annotations

import importlib
import queue
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.stub import CERTIFICATE, StubApiServer

official = pytest.importorskip("kubernetes.client", reason="needs the extra `kubernetes`")

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
PATIENCE = 20.0  # seconds; only a failing test uses them up


@pytest.fixture
def server() -> Iterator[StubApiServer]:
    """An API server that knows conflicts."""
    with StubApiServer() as server:
        yield server


@pytest.fixture
def written() -> queue.SimpleQueue[str]:
    """The names of the RayJobs that the writer has told to be written."""
    return queue.SimpleQueue()


@pytest.fixture
def writer(
    server: StubApiServer, written: queue.SimpleQueue[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    """The reference controller's writer to that server."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    writer_module = importlib.import_module("rayjob_controller.writer")
    configuration = official.Configuration(host=server.url, ssl_ca_cert=str(CERTIFICATE))
    configuration.api_key = {"BearerToken": f"Bearer {server.token}"}
    configuration.proxy = None
    objects = official.CustomObjectsApi(official.ApiClient(configuration))
    writer = writer_module.Writer(objects, "ns", written.put)
    yield writer
    assert writer.close(PATIENCE)


def test_conflict_is_written_again(
    server: StubApiServer, writer: Any, written: queue.SimpleQueue[str]
) -> None:
    """After a 409 the same status is sent once more, and nothing is reported before."""
    server.conflicts = 1
    writer.put("a", "status", {"jobStatus": "RUNNING"})

    assert written.get(timeout=PATIENCE) == "a"
    assert (server.conflicts, server.patches) == (0, [{"status": {"jobStatus": "RUNNING"}}])


def test_outdated_list_of_finalizers_is_never_written(
    server: StubApiServer, writer: Any, written: queue.SimpleQueue[str]
) -> None:
    """After a 409 a list made of an old version is dropped, so that another's finalizer stays."""
    server.conflicts = 1
    writer.put("a", "metadata", {"finalizers": ["ours"], "resourceVersion": "1"})

    assert written.get(timeout=PATIENCE) == "a"
    assert (server.conflicts, server.patches) == (0, [])
    both = {"finalizers": ["theirs", "ours"], "resourceVersion": "2"}
    writer.put("a", "metadata", both)
    assert written.get(timeout=PATIENCE) == "a"
    assert server.patches == [{"metadata": both}]


def test_what_is_left_is_written_at_the_end(server: StubApiServer, writer: Any) -> None:
    """`close` writes what the threads did not get to."""
    writer._pool.close(PATIENCE)
    writer.put("a", "status", {"jobStatus": "RUNNING"})

    assert writer.close(PATIENCE)
    assert server.patches == [{"status": {"jobStatus": "RUNNING"}}]
