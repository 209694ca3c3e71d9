"""Tests that pin what users may rely on: names, signatures, fields, the tree of errors."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import inspect
import json
from typing import Any

import pytest

import jobinfo_cache
from jobinfo_cache import (
    CachedDashboardClient,
    Cluster,
    DashboardClient,
    JobChange,
    JobInfo,
    JobInfoCache,
    JobInfoCacheError,
    JobSnapshot,
    JobStatus,
    Settings,
    Stats,
    WorkerPool,
)
from tests.support import START

NAMES = [
    "BadResponse",
    "CacheClosed",
    "CachedDashboardClient",
    "Cluster",
    "DashboardAuthError",
    "DashboardClient",
    "DashboardError",
    "DashboardUnavailable",
    "InvalidJobId",
    "JobChange",
    "JobConflict",
    "JobInfo",
    "JobInfoCache",
    "JobInfoCacheError",
    "JobNotFound",
    "JobSnapshot",
    "JobStatus",
    "Settings",
    "Stats",
    "TryAgain",
    "WaitTimeout",
    "WorkerPool",
    "__version__",
]

TREE = {
    "JobInfoCacheError": "Exception",
    "TryAgain": "JobInfoCacheError",
    "CacheClosed": "JobInfoCacheError",
    "WaitTimeout": "JobInfoCacheError TimeoutError",
    "InvalidJobId": "JobInfoCacheError ValueError",
    "DashboardError": "JobInfoCacheError",
    "JobNotFound": "DashboardError",
    "DashboardUnavailable": "DashboardError",
    "DashboardAuthError": "DashboardError",
    "JobConflict": "DashboardError",
    "BadResponse": "DashboardError",
}

REQUESTS = {
    "list_jobs": "()",
    "submit_job": "(entrypoint, *, submission_id=None, runtime_env=None, metadata=None,"
    " entrypoint_num_cpus=None, entrypoint_num_gpus=None, entrypoint_memory=None,"
    " entrypoint_resources=None)",
    "get_job_log": "(job_id)",
    "stop_job": "(job_id)",
    "delete_job": "(job_id)",
    "get_serve_details": "()",
    "get_multi_application_status": "()",
    "update_deployments": "(config)",
    "get_version": "()",
    "close": "()",
}

METHODS: dict[type, dict[str, str]] = {
    JobInfoCache: {
        "__init__": "(settings=None, *, on_change=None, clock=None)",
        "client": "(dashboard, cluster)",
        "forget": "(namespace, name, job_id=None)",
        "stats": "()",
        "close": "(timeout=None)",
    },
    CachedDashboardClient: {
        **REQUESTS,
        "get_job_info": "(job_id, *, max_age=None, newer_than=None)",
        "lookup": "(job_id, *, max_age=None, newer_than=None)",
        "peek": "(job_id)",
        "forget": "(job_id)",
        "wait": "(job_id, *, timeout, until=None)",
    },
    DashboardClient: {
        **REQUESTS,
        "__init__": "(url, *, token=None, headers=None, timeout=2.0, verify=True, proxies=None,"
        " max_response_bytes=33554432, json_loads=loads)",
        "get_job_info": "(job_id)",
    },
    WorkerPool: {
        "add": "(key)",
        "add_after": "(key, delay)",
        "forget": "(key)",
        "close": "(timeout=None)",
        "stats": "()",
    },
    Settings: {"from_env": "(environ=environ)"},
    JobInfo: {"to_dict": "()"},
    Cluster: {"__new__": "(namespace, name, uid='')"},
}

FIELDS: dict[Any, str] = {
    JobSnapshot: "job_id cluster info error fresh fetched_at age failures failing_since"
    " retry_after",
    JobChange: "cluster job_id old new error",
    Stats: "entries live placeholders workers workers_busy queued delayed reads_hit"
    " reads_pending reads_stale reads_failed polls_ok polls_failed requests_single"
    " requests_list evicted expired forgotten stale_replies_dropped callbacks_failed"
    " oldest_age capacity_exceeded",
    Settings: "workers poll_interval cache_size expiry cleanup_interval max_age max_backoff"
    " jitter batching request_timeout close_timeout async_job_info_query",
}

JOB_INFO = (
    "job_id submission_id type status entrypoint message error_type start_time end_time metadata"
    " runtime_env driver_info driver_agent_http_address driver_node_id driver_exit_code raw"
    " fetched_at"
)


def parameters(function: Any) -> str:
    """The signature without self and annotations; of a default that is an object, its name."""
    signature = inspect.signature(function)
    shown = [
        parameter.replace(annotation=parameter.empty)
        for name, parameter in signature.parameters.items()
        if name not in ("self", "cls")
    ]
    text = str(signature.replace(parameters=shown, return_annotation=signature.empty))
    for name, parameter in signature.parameters.items():
        if name == "json_loads":
            text = text.replace(repr(parameter.default), "loads")
        if name == "environ":
            text = text.replace(repr(parameter.default), "environ")
    return text


def test_names() -> None:
    """The package exports these names, and each is there."""
    assert sorted(jobinfo_cache.__all__) == NAMES
    assert all(hasattr(jobinfo_cache, name) for name in NAMES)


def test_version_is_that_of_the_distribution() -> None:
    """`__version__` is what the installer says."""
    assert jobinfo_cache.__version__ == importlib.metadata.version("jobinfo-cache")


@pytest.mark.parametrize(
    ("owner", "method", "text"),
    [
        (owner, method, text)
        for owner, methods in METHODS.items()
        for method, text in methods.items()
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else value.partition("(")[0],
)
def test_signature(owner: type, method: str, text: str) -> None:
    """A method takes these parameters, with these defaults."""
    assert parameters(getattr(owner, method)) == text


def test_pool_begins_with_its_documented_parameters() -> None:
    """A pool is made from a handler; what else it takes is by keyword."""
    text = parameters(WorkerPool)

    assert text.startswith("(handler, *, workers=8, name='jobinfo', clock=None")


@pytest.mark.parametrize("owner", [JobInfoCache, CachedDashboardClient])
def test_no_further_methods(owner: type) -> None:
    """There is nothing else that users could come to rely on."""
    public = {name for name in vars(owner) if not name.startswith("_")}

    assert public - {"cluster"} == {name for name in METHODS[owner] if not name.startswith("_")}


@pytest.mark.parametrize("method", [*REQUESTS, "get_job_info", "lookup", "peek", "forget", "wait"])
def test_every_method_says_what_it_does(method: str) -> None:
    """Each method of the cached client has a docstring that says whether it blocks."""
    text = inspect.getdoc(getattr(CachedDashboardClient, method)) or ""
    text = text.lower()

    assert any(word in text for word in ("block", "does nothing")), text


@pytest.mark.parametrize(("owner", "names"), FIELDS.items(), ids=lambda value: "")
def test_fields(owner: Any, names: str) -> None:
    """The records have these fields, in this order, and are frozen."""
    assert [field.name for field in dataclasses.fields(owner)] == names.split()
    assert owner.__dataclass_params__.frozen


def test_attributes_of_job_info() -> None:
    """An answer has these attributes, and `to_dict` all of them but `raw`."""
    info = JobInfo({"status": "RUNNING"}, fetched_at=START)

    assert all(hasattr(info, name) for name in JOB_INFO.split())
    assert sorted(info.to_dict()) == sorted(set(JOB_INFO.split()) - {"raw"})
    assert isinstance(JobSnapshot.known, property)


def test_statuses() -> None:
    """There are five statuses."""
    known = [name for name in vars(JobStatus) if name.isupper()]

    assert sorted(known) == ["FAILED", "PENDING", "RUNNING", "STOPPED", "SUCCEEDED"]


@pytest.mark.parametrize(("name", "bases"), TREE.items(), ids=TREE)
def test_tree_of_errors(name: str, bases: str) -> None:
    """Each error has its place in the tree, and a docstring."""
    error = getattr(jobinfo_cache, name)

    assert [base.__name__ for base in error.__bases__] == bases.split()
    assert error.__doc__


def test_all_errors_are_in_the_tree() -> None:
    """No error of the library is outside the tree, and none is hidden."""

    def names(error: type[JobInfoCacheError]) -> set[str]:
        found = {error.__name__}
        for child in error.__subclasses__():
            found |= names(child)
        return found

    assert names(JobInfoCacheError) == set(TREE)


def test_json_loads_is_that_of_the_standard_library() -> None:
    """What parses answers by default is `json.loads`."""
    default = inspect.signature(DashboardClient).parameters["json_loads"].default

    assert default is json.loads
