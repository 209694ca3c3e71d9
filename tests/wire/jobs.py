"""The jobs that several tests of the wire suite read, submitted once."""

from __future__ import annotations

import pytest

from tests.wire.wires import RUNS, SUCCEEDS, UNSCHEDULABLE, Job, Wire


class WithJobs:
    """The jobs that several tests of one class read."""

    @pytest.fixture(scope="class")
    @classmethod
    def succeeded(cls, wire: Wire) -> Job:
        job_id = wire.submit(SUCCEEDS, metadata={"owner": "mé"}, runtime_env={"unknown": 1})
        return wire.wait_for(job_id, "SUCCEEDED")

    @pytest.fixture(scope="class")
    @classmethod
    def running(cls, wire: Wire) -> Job:
        job_id = wire.submit(RUNS, runtime_env={"env_vars": {"SECRET": "s3cret"}})
        return wire.wait_for(job_id, "RUNNING")

    @pytest.fixture(scope="class")
    @classmethod
    def waiting(cls, wire: Wire) -> Job:
        return wire.wait_for(wire.submit(SUCCEEDS, **UNSCHEDULABLE), "PENDING")

    @pytest.fixture(scope="class")
    @classmethod
    def driver(cls, wire: Wire) -> Job:
        return wire.run_driver()
