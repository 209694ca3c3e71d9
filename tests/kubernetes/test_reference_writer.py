"""The writer of the reference controller meets conflicts, which its fake API server never has."""

from __future__ import annotations

import importlib
import sys
import threading
from pathlib import Path

import pytest

from tests.kubernetes.stub import CERTIFICATE, StubApiServer

official = pytest.importorskip("kubernetes.client", reason="needs the extra `kubernetes`")

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
PATIENCE = 20.0  # seconds; only a failing test uses them up


def test_conflict_is_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a 409 the same fields are sent once more, and nothing is reported before."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    writer_module = importlib.import_module("rayjob_controller.writer")
    written = threading.Event()
    with StubApiServer() as server:
        server.conflicts = 1
        configuration = official.Configuration(host=server.url, ssl_ca_cert=str(CERTIFICATE))
        configuration.api_key = {"BearerToken": f"Bearer {server.token}"}
        configuration.proxy = None
        objects = official.CustomObjectsApi(official.ApiClient(configuration))
        writer = writer_module.Writer(objects, "ns", lambda name: written.set())
        writer.put("a", "status", {"jobStatus": "RUNNING"})
        assert written.wait(PATIENCE)
        assert writer.close(PATIENCE)

    assert (server.conflicts, server.patches) == (0, [{"status": {"jobStatus": "RUNNING"}}])
