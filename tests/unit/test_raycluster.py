"""What is read from a RayCluster, whatever is missing or null in it."""

from __future__ import annotations

from typing import Any

import pytest

from jobinfo_cache import Cluster
from jobinfo_cache.raycluster import (
    asks_for_token,
    cluster_of,
    dashboard_url,
    head_service,
    secret_name,
)

METADATA = {"namespace": "ns", "name": "one", "uid": "u1"}


@pytest.mark.parametrize(
    "resource",
    [
        {},
        {"spec": None, "status": None},
        {"spec": {}, "status": {}},
        {"spec": {"headGroupSpec": None, "authOptions": None}, "status": {"head": None}},
        {"status": {"head": {"serviceName": None}, "endpoints": None}},
        {"status": {"head": {"serviceName": ""}, "endpoints": {"dashboard": ""}}},
        {"spec": {"headGroupSpec": {"template": {"spec": {"containers": None}}}}},
        {"spec": {"headGroupSpec": {"template": {"spec": {"containers": [{"ports": None}]}}}}},
        {"spec": {"headGroupSpec": {"template": {"spec": {"containers": [None]}}}}},
        {"spec": {"headGroupSpec": {"template": {"spec": {"containers": [{"ports": [None]}]}}}}},
    ],
)
def test_what_is_missing_or_null_is_as_the_operator_will_make_it(resource: dict[str, Any]) -> None:
    """Without a status the service has the generated name, and Ray's own port."""
    resource = {"metadata": METADATA, **resource}
    assert dashboard_url(resource) == "http://one-head-svc.ns.svc:8265"
    assert not asks_for_token(resource)
    assert cluster_of(resource) == Cluster("ns", "one", "u1")


@pytest.mark.parametrize(
    "metadata", [None, {}, {"namespace": "ns", "name": None}, {"namespace": "", "name": "one"}]
)
def test_cluster_without_a_name_is_refused(metadata: dict[str, Any] | None) -> None:
    """No empty part ever becomes an identity."""
    with pytest.raises(ValueError, match="is empty"):
        cluster_of({"metadata": metadata})


def test_status_is_believed_before_any_rule() -> None:
    """What the operator wrote down is the service's name and the dashboard's port."""
    status = {"head": {"serviceName": "svc"}, "endpoints": {"dashboard": "9000"}}
    resource = {"metadata": METADATA, "status": status}
    assert dashboard_url(resource) == "http://svc.ns.svc:9000"


def test_own_service_name_and_port_are_taken_from_the_spec() -> None:
    """Without a status the spec's head service and the container's port count."""
    ports = [{"name": "gcs", "containerPort": 6379}, {"name": "dashboard", "containerPort": 8266}]
    spec = {
        "headGroupSpec": {
            "headService": {"metadata": {"name": "mine"}},
            "template": {"spec": {"containers": [{"ports": ports}]}},
        }
    }
    assert dashboard_url({"metadata": METADATA, "spec": spec}) == "http://mine.ns.svc:8266"


@pytest.mark.parametrize("name", ["a" + "x" * 62, "x" * 42, "1st"])
def test_changed_service_name_is_never_guessed(name: str) -> None:
    """Two names may become the same: without a status there is no address, not a wrong one."""
    metadata = {"namespace": "ns", "name": name}
    with pytest.raises(ValueError, match="cannot be told from others"):
        head_service({"metadata": metadata})
    status = {"head": {"serviceName": "svc"}}
    assert head_service({"metadata": metadata, "status": status}) == "svc"


def test_port_that_is_none_is_refused() -> None:
    """A port that is no number is a ValueError that names the cluster."""
    resource = {"metadata": METADATA, "status": {"endpoints": {"dashboard": "http"}}}
    with pytest.raises(ValueError, match="RayCluster ns/one"):
        dashboard_url(resource)


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("one", "one"),
        ("1st", "rst"),
        ("a" * 50, "a" * 50),
        ("b" + "a" * 50, "a" * 50),
        ("b" * 13 + "-" + "a" * 49, "r" + "a" * 49),
    ],
)
def test_secret_has_the_name_that_the_operator_gives_it(name: str, secret: str) -> None:
    """The last 50 characters, with a letter to begin with."""
    assert secret_name(name) == secret
