"""The example of a deployment fits the library and the reference controller."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from jobinfo_cache import Settings

HERE = Path(__file__).parent
KINDS = {
    part["kind"]: part
    for part in yaml.safe_load_all((HERE / "deployment.yaml").read_text(encoding="utf-8"))
}
POD = KINDS["Deployment"]["spec"]["template"]["spec"]
[CONTAINER] = POD["containers"]
ENVIRONMENT = {each["name"]: each["value"] for each in CONTAINER["env"]}


def verbs_for(resource: str) -> set[str]:
    rules: list[dict[str, Any]] = KINDS["ClusterRole"]["rules"]
    return {verb for rule in rules if resource in rule["resources"] for verb in rule["verbs"]}


def test_every_variable_is_known() -> None:
    """What it sets is read by the library, or by the reference controller's program."""
    program = (HERE / "rayjob_controller" / "__main__.py").read_text(encoding="utf-8")
    known = {f"JOBINFO_CACHE_{name.upper()}" for name in vars(Settings())}

    assert [name for name in ENVIRONMENT if name not in known and name not in program] == []
    assert all(isinstance(value, str) for value in ENVIRONMENT.values())


def test_there_is_time_to_close() -> None:
    """The pod is not killed before the cache, the queue and the writer have ended."""
    settings = Settings.from_env(ENVIRONMENT)

    others = 3 * 5.0  # seconds, in `Controller.__exit__`
    assert POD["terminationGracePeriodSeconds"] > settings.close_timeout + others


def test_probe_asks_where_the_status_page_listens() -> None:
    """The probed port is the container's, and the program's."""
    [port] = CONTAINER["ports"]

    assert CONTAINER["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": port["name"]}
    assert str(port["containerPort"]) == ENVIRONMENT["STATUS_PORT"]


def test_only_the_status_page_is_let_in_to() -> None:
    """The network policy is about the controller's pods, and opens one port to one namespace."""
    policy = KINDS["NetworkPolicy"]["spec"]
    [rule] = policy["ingress"]
    [source] = rule["from"]

    assert policy["policyTypes"] == ["Ingress"]
    assert policy["podSelector"] == KINDS["Deployment"]["spec"]["selector"]
    assert rule["ports"] == [{"port": CONTAINER["ports"][0]["name"]}]
    assert list(source) == ["namespaceSelector"]


@pytest.mark.parametrize(
    ("resource", "verbs"),
    [
        ("rayjobs", {"list", "watch", "patch"}),
        ("rayclusters", {"list", "watch"}),
        ("rayjobs/status", {"patch"}),
        ("secrets", {"get"}),
        ("services/proxy", {"get", "create", "update", "delete"}),
    ],
)
def test_account_may_do_what_the_controller_does(resource: str, verbs: set[str]) -> None:
    """Each verb that a controller needs is in the role, which is bound to its account."""
    [subject] = KINDS["ClusterRoleBinding"]["subjects"]

    assert verbs <= verbs_for(resource)
    assert subject["name"] == KINDS["ServiceAccount"]["metadata"]["name"]
    assert POD["serviceAccountName"] == subject["name"]
