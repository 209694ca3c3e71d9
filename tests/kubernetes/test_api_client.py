"""The proxy mode takes over what the API client is set to: TLS names, proxies, credentials."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobinfo_cache import (
    DashboardAuthError,
    DashboardClient,
    DashboardUnavailable,
    JobInfoCache,
    Settings,
)
from jobinfo_cache.kubernetes import DashboardClientProvider
from jobinfo_cache.testing import SimulatedDashboard
from tests.kubernetes.stub import CERTIFICATE, NAMED_CERTIFICATE, StubApiServer

official = pytest.importorskip("kubernetes.client", reason="needs the extra `kubernetes`")
config = pytest.importorskip("kubernetes.config", reason="needs the extra `kubernetes`")

CLUSTER = {
    "metadata": {"namespace": "ns", "name": "one", "uid": "u1"},
    "status": {"head": {"serviceName": "one-head-svc"}},
}
DEAD_PROXY = "http://127.0.0.1:1"  # refuses: nothing listens there


@pytest.fixture
def dashboard() -> Iterator[SimulatedDashboard]:
    """A dashboard with a job "a" that runs."""
    with SimulatedDashboard() as dashboard:
        dashboard.add_job("a", status="RUNNING")
        yield dashboard


@pytest.fixture
def server(dashboard: SimulatedDashboard) -> Iterator[StubApiServer]:
    """An API server for 127.0.0.1, with the dashboard behind its service proxy."""
    with StubApiServer() as server:
        server.services["ns/one-head-svc"] = dashboard.url
        yield server


@pytest.fixture
def named_server(dashboard: SimulatedDashboard) -> Iterator[StubApiServer]:
    """The same, whose certificate is for another name than its address."""
    with StubApiServer(certificate=NAMED_CERTIFICATE) as server:
        server.services["ns/one-head-svc"] = dashboard.url
        yield server


def make_provider(api_client: Any) -> DashboardClientProvider:
    cache = JobInfoCache(Settings(async_job_info_query=False, request_timeout=15))
    return DashboardClientProvider(cache, api_client=api_client, use_kubernetes_proxy=True)


def make_client(server: StubApiServer, **settings: Any) -> DashboardClient:
    """A client for the cluster, of an API client with these settings."""
    known = {"ssl_ca_cert": str(CERTIFICATE), "proxy": "", **settings}
    configuration = official.Configuration(host=server.url)
    for name, value in known.items():
        setattr(configuration, name, value)
    configuration.api_key = {"BearerToken": f"Bearer {server.token}"}
    client = make_provider(official.ApiClient(configuration)).client_for(CLUSTER)
    assert isinstance(client, DashboardClient)
    return client


@pytest.mark.parametrize(
    "settings",
    [
        {"tls_server_name": "kubernetes.test"},
        {"assert_hostname": "kubernetes.test"},
        {"assert_hostname": False},
        {"verify_ssl": False, "ssl_ca_cert": None},
    ],
    ids=["tls_server_name", "assert_hostname", "no name", "no verification"],
)
def test_certificate_is_checked_as_the_api_client_checks_it(
    named_server: StubApiServer, settings: dict[str, Any]
) -> None:
    """A certificate for another name than the address is accepted when the settings say so."""
    client = make_client(named_server, **{"ssl_ca_cert": str(NAMED_CERTIFICATE), **settings})

    assert client.get_job_info("a").status == "RUNNING"
    client.close()


@pytest.mark.parametrize("settings", [{}, {"tls_server_name": "other.test"}], ids=["none", "other"])
def test_certificate_for_another_name_is_refused(
    named_server: StubApiServer, settings: dict[str, Any]
) -> None:
    """Without a word, or with another name, there is no connection."""
    client = make_client(named_server, ssl_ca_cert=str(NAMED_CERTIFICATE), **settings)
    with pytest.raises(DashboardUnavailable, match=r"(?i)certificate"):
        client.get_job_info("a")


@pytest.mark.parametrize("no_proxy", ["127.0.0.1", "example.com, 127.0.0.0/8", "*"])
def test_proxy_is_passed_by_for_what_no_proxy_names(server: StubApiServer, no_proxy: str) -> None:
    """The API server's address in `no_proxy` is asked directly, by the API client's own rule."""
    client = make_client(server, proxy=DEAD_PROXY, no_proxy=no_proxy)

    assert client.get_job_info("a").status == "RUNNING"
    client.close()


@pytest.mark.parametrize("no_proxy", [None, "", "example.com"])
def test_proxy_is_used_for_all_else(server: StubApiServer, no_proxy: str | None) -> None:
    """A proxy that refuses is a dashboard that cannot be reached, and nobody goes around it."""
    client = make_client(server, proxy=DEAD_PROXY, no_proxy=no_proxy)
    with pytest.raises(DashboardUnavailable, match="refused"):
        client.get_job_info("a")
    assert server.asked == []


class TestExpiry:
    """A kubeconfig whose token comes from a program (`exec`) and expires."""

    @pytest.fixture
    def plugin(self, tmp_path: Path) -> Path:
        """A program that says what is in the file `answer`, and counts how often it ran."""
        program = tmp_path / "plugin.py"
        program.write_text(
            "import pathlib, sys\n"
            "place = pathlib.Path(sys.argv[0]).parent\n"
            "with (place / 'runs').open('a') as runs:\n"
            "    runs.write('x')\n"
            "print((place / 'answer').read_text())\n",
            encoding="utf-8",
        )
        return program

    def test_expired_token_is_replaced_by_the_same_client(
        self, server: StubApiServer, plugin: Path
    ) -> None:
        """The program is asked for a new token before the request that needs it."""
        self.answer(plugin, "first", expires="2020-01-01T00:00:00Z")
        server.token = "first"
        client = self.make_client(server, plugin)
        client.get_job_info("a")
        self.answer(plugin, "second", expires="2020-01-01T00:00:00Z")
        server.token = "second"

        assert client.get_job_info("a").status == "RUNNING"
        client.close()

    def test_good_token_is_not_asked_for_again(self, server: StubApiServer, plugin: Path) -> None:
        """Until it expires, requests do not run the program."""
        self.answer(plugin, "first", expires="2120-01-01T00:00:00Z")
        server.token = "first"
        client = self.make_client(server, plugin)
        client.get_job_info("a")
        client.get_job_info("a")

        assert (plugin.parent / "runs").read_text(encoding="utf-8") == "x"
        client.close()

    def test_plugin_that_fails_is_an_auth_error(self, server: StubApiServer, plugin: Path) -> None:
        """The old token is sent, refused, and neither it nor a traceback of the plugin shown."""
        self.answer(plugin, "first", "2020-01-01T00:00:00Z")
        server.token = "first"
        client = self.make_client(server, plugin)
        (plugin.parent / "answer").unlink()
        server.token = "second"

        with pytest.raises(DashboardAuthError) as raised:
            client.get_job_info("a")
        assert "first" not in str(raised.value)
        client.close()

    def test_hook_that_raises_is_an_auth_error(self, server: StubApiServer) -> None:
        """Whatever a refresh hook raises, the poll fails with what a controller knows."""

        def fail(_configuration: Any) -> None:
            raise RuntimeError("no more tokens")

        client = make_client(server, refresh_api_key_hook=fail)
        with pytest.raises(DashboardAuthError, match="Authorization raised RuntimeError"):
            client.get_job_info("a")
        assert server.asked == []

    @staticmethod
    def answer(plugin: Path, token: str, expires: str) -> None:
        kind = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
        status = {"token": token, "expirationTimestamp": expires}
        text = json.dumps({**kind, "status": status})
        (plugin.parent / "answer").write_text(text, encoding="utf-8")

    @staticmethod
    def make_client(server: StubApiServer, plugin: Path) -> DashboardClient:
        run = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": [str(plugin)],
            "interactiveMode": "Never",
        }
        cluster = {"server": server.url, "certificate-authority": str(CERTIFICATE)}
        kubeconfig = {
            "current-context": "it",
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "clusters": [{"name": "it", "cluster": cluster}],
            "users": [{"name": "it", "user": {"exec": run}}],
        }
        api_client = config.new_client_from_config_dict(kubeconfig)
        api_client.configuration.proxy = ""
        client = make_provider(api_client).client_for(CLUSTER)
        assert isinstance(client, DashboardClient)
        return client


class TestFiles:
    """The files of the TLS settings change while the controller runs."""

    def test_new_authorities_make_a_new_client(
        self, named_server: StubApiServer, tmp_path: Path
    ) -> None:
        """Authorities that are replaced are trusted from the next reconcile on."""
        authorities = tmp_path / "ca.crt"
        shutil.copy(CERTIFICATE, authorities)
        provider = self.make_provider(named_server, authorities)
        with pytest.raises(DashboardUnavailable, match=r"(?i)certificate"):
            provider.client_for(CLUSTER).get_job_info("a")
        shutil.copy(NAMED_CERTIFICATE, authorities)
        os.utime(authorities, ns=(1, 1))  # another time, however coarse the file system's clock

        client = provider.client_for(CLUSTER)
        assert client.get_job_info("a").status == "RUNNING"
        assert client is provider.client_for(CLUSTER)
        client.close()

    @pytest.mark.parametrize("content", [None, "half a certif"], ids=["gone", "half written"])
    def test_what_cannot_be_read_leaves_the_client_as_it_is(
        self, named_server: StubApiServer, tmp_path: Path, content: str | None
    ) -> None:
        """Files that are gone, or are being written, change nothing until they are good again."""
        authorities = tmp_path / "ca.crt"
        shutil.copy(NAMED_CERTIFICATE, authorities)
        provider = self.make_provider(named_server, authorities)
        client = provider.client_for(CLUSTER)
        authorities.unlink()
        if content is not None:
            authorities.write_text(content, encoding="utf-8")

        assert client is provider.client_for(CLUSTER)
        assert client.get_job_info("a").status == "RUNNING"
        client.close()

    def test_what_never_could_be_read_is_said(
        self, named_server: StubApiServer, tmp_path: Path
    ) -> None:
        """Without a first good file the error names it."""
        provider = self.make_provider(named_server, tmp_path / "ca.crt")
        with pytest.raises(OSError, match=r"ca\.crt"):
            provider.client_for(CLUSTER)

    @staticmethod
    def make_provider(server: StubApiServer, authorities: Path) -> DashboardClientProvider:
        configuration = official.Configuration(host=server.url)
        configuration.proxy = ""
        configuration.tls_server_name = "kubernetes.test"
        configuration.api_key = {"BearerToken": f"Bearer {server.token}"}
        api_client = official.ApiClient(configuration)
        configuration.ssl_ca_cert = str(authorities)
        return make_provider(api_client)
