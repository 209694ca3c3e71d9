"""What a dashboard client takes, and how it says no."""

from __future__ import annotations

import math
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from jobinfo_cache import JobNotFound
from jobinfo_cache.dashboard import DashboardClient
from jobinfo_cache.testing import SimulatedDashboard

GOOD_URLS = {
    "http://h": "http://h",
    "http://h/": "http://h",
    "https://h:8265": "https://h:8265",
    "http://h:8265/a/b/": "http://h:8265/a/b",
    "http://[::1]:8265": "http://[::1]:8265",
    "HTTP://head-svc.ns.svc.cluster.local:8265": "http://head-svc.ns.svc.cluster.local:8265",
    "http://h/%20a": "http://h/%20a",
}


@pytest.mark.parametrize("url", GOOD_URLS)
def test_urls(url: str) -> None:
    """With or without a port, a prefix, a trailing slash."""
    assert DashboardClient(url).url == GOOD_URLS[url]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "h",
        "h:8265",
        "//h",
        "ftp://h",
        "http://",
        "http:///a",
        "http://:8265",
        "http://h:",
        "http://h:0",
        "http://h:99999",
        "http://h:x",
        "http://[::1",
        "http://a b",
        " http://h",
        "http://h\n",
        "http://h\\a",
        "http://h/a b",
        "http://h/../a",
        "http://h?",
        "http://h?a=b",
        "http://h#a",
        "http://h#",
        "http://h/%zz",
        "http://ü",
    ],
)
def test_what_is_no_dashboards_url_is_a_value_error(url: str) -> None:
    """It says what would be one."""
    with pytest.raises(ValueError, match=r"url is .*; it(s prefix)? must be"):
        DashboardClient(url)


@pytest.mark.parametrize("zone", ["%eth0", "%25eth0"])
def test_an_ipv6_zone_is_refused(zone: str) -> None:
    """However it is written, no request could be sent there; it says what to use instead."""
    with pytest.raises(ValueError, match=r"holds an IPv6 zone; use a host name, or an address"):
        DashboardClient(f"http://[fe80::1{zone}]:8265")


@pytest.mark.parametrize(
    "url",
    [
        "http://me:pa55w0rd@h",
        "http://pa55w0rd@h",
        "http://me:a@pa55w0rd@h:1/x",
        "http://me:pa55w0rd?@h",
        "http://me:pa55w0rd#@h",
        "http://me:pa55w0rd/@h",
        "me:pa55w0rd@h",
        "http://me:pa55w0rd@",
        "http://h?token=pa55w0rd",
    ],
)
def test_a_password_in_a_url_is_refused_and_not_shown(url: str) -> None:
    """However the URL is malformed."""
    with pytest.raises(ValueError, match="url") as caught:
        DashboardClient(url)
    assert "pa55w0rd" not in str(caught.value)


def test_a_password_in_a_url_is_to_go_into_the_headers() -> None:
    """The error says so, and names the host."""
    with pytest.raises(ValueError, match="use headers") as caught:
        DashboardClient("http://me:pa55w0rd@head:8265")
    assert "@head:8265" in str(caught.value)


@pytest.mark.parametrize("timeout", [0, -1, math.nan, math.inf])
def test_a_timeout_that_is_no_time_is_a_value_error(timeout: float) -> None:
    """Positive and finite it must be."""
    with pytest.raises(ValueError, match=f"timeout is {timeout}; it must be above 0"):
        DashboardClient("http://h", timeout=timeout)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"url": 1}, TypeError, "url is a int"),
        ({"timeout": "1"}, TypeError, "timeout is '1'"),
        ({"timeout": True}, TypeError, "timeout is True"),
        ({"timeout": None}, TypeError, "timeout is None"),
        ({"verify": None}, TypeError, "verify is None"),
        ({"verify": ""}, TypeError, "verify is ''"),
        ({"proxies": "http://p"}, TypeError, "proxies is a str"),
        ({"proxies": {"http": "socks5://me:pw@p"}}, ValueError, "proxies['http'] is no URL"),
        ({"proxies": {"http": 1}}, ValueError, "proxies['http'] is no URL"),
        ({"max_response_bytes": 0}, ValueError, "max_response_bytes is 0"),
        ({"max_response_bytes": 1.5}, ValueError, "max_response_bytes is 1.5"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    """Each is named, with its value where that is no secret."""
    with pytest.raises(error) as caught:
        DashboardClient(**{"url": "http://h", **arguments})
    assert words in str(caught.value)
    assert "pw" not in str(caught.value)


def test_clients_of_equal_arguments_are_equal() -> None:
    """And hash alike; any other argument makes another client."""

    def token() -> str:
        return "t"

    same: list[dict[str, Any]] = [
        {},
        {"token": "t"},
        {"token": token},
        {"token": Path("/t")},
        {"headers": {"a": "b"}},
        {"timeout": 3},
        {"verify": False},
        {"verify": "/ca"},
        {"proxies": {}},
        {"proxies": {"http": "http://p"}},
        {"max_response_bytes": 5},
        {"json_loads": token},
    ]
    clients = [DashboardClient("http://h", **arguments) for arguments in same]
    again = [DashboardClient("http://h/", **arguments) for arguments in same]
    assert clients == again
    assert [hash(client) for client in clients] == [hash(client) for client in again]
    assert all(a != b for i, a in enumerate(clients) for b in clients[:i])
    assert clients[0] != DashboardClient("http://other")
    assert clients[0] != "http://h"


def test_repr_shows_no_secret() -> None:
    """The URL and the timeout are enough."""
    client = DashboardClient("http://h", token="secret", headers={"Cookie": "secret"})
    assert repr(client) == "DashboardClient('http://h', timeout=2.0)"
    assert client.timeout == 2.0


class Odd:
    """A value that JSON cannot hold; its repr gives a secret away."""

    def __repr__(self) -> str:
        return "pa55w0rd"


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"entrypoint": 1}, TypeError, "entrypoint is a int"),
        ({"entrypoint": " "}, ValueError, "entrypoint is ' '"),
        ({"runtime_env": "x"}, TypeError, "runtime_env is a str"),
        ({"runtime_env": {1: 2}}, TypeError, "runtime_env has the key 1"),
        ({"runtime_env": {"a": Odd()}}, TypeError, "runtime_env cannot be written as JSON"),
        ({"runtime_env": {"a": math.nan}}, ValueError, "runtime_env cannot be written as JSON"),
        ({"metadata": ["x"]}, TypeError, "metadata is a list"),
        ({"metadata": {"a": 1}}, TypeError, "metadata['a'] is a int"),
        ({"entrypoint_num_cpus": "1"}, TypeError, "entrypoint_num_cpus is '1'"),
        ({"entrypoint_num_cpus": True}, TypeError, "entrypoint_num_cpus is True"),
        ({"entrypoint_num_gpus": -1}, ValueError, "entrypoint_num_gpus is -1"),
        ({"entrypoint_num_gpus": math.nan}, ValueError, "entrypoint_num_gpus is nan"),
        ({"entrypoint_memory": 1.5}, ValueError, "entrypoint_memory is 1.5"),
        ({"entrypoint_resources": 1}, TypeError, "entrypoint_resources is a int"),
        ({"entrypoint_resources": {"a": "b"}}, TypeError, "entrypoint_resources['a'] is 'b'"),
    ],
)
def test_a_job_that_cannot_be_sent(
    arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    """Each argument is checked before anything is sent, and no runtime_env is shown."""
    with pytest.raises(error) as caught:
        DashboardClient("http://127.0.0.1:1").submit_job(**{"entrypoint": "true", **arguments})
    assert words in str(caught.value)
    assert "pa55w0rd" not in str(caught.value)


def test_an_endless_runtime_env_is_a_value_error() -> None:
    """One that holds itself."""
    env: dict[str, Any] = {}
    env["self"] = env
    with pytest.raises(ValueError, match="runtime_env cannot be written as JSON"):
        DashboardClient("http://127.0.0.1:1").submit_job("true", runtime_env=env)


@pytest.mark.parametrize("config", [None, "x", {"a": Odd()}])
def test_a_serve_config_that_cannot_be_sent(config: Any) -> None:
    """It is named, not shown."""
    with pytest.raises(TypeError, match="config") as caught:
        DashboardClient("http://127.0.0.1:1").update_deployments(config)
    assert "pa55w0rd" not in str(caught.value)


class Named(str, Enum):
    """As programs name their jobs."""

    A = "job-a"


def test_enum_member_that_is_not_there_is_not_found() -> None:
    """The dashboard's words name the content of the id, and not the member."""
    with SimulatedDashboard() as dashboard, DashboardClient(dashboard.url) as client:
        with pytest.raises(JobNotFound) as caught:
            client.get_job_info(Named.A)
        assert caught.value.job_id == "job-a"
