"""Whom a request goes to, and what it carries there."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobinfo_cache.dashboard import DashboardClient
from jobinfo_cache.errors import BadResponse, DashboardUnavailable
from jobinfo_cache.testing import FaultServer
from jobinfo_cache.testing.peer import BODY, Peer, answering
from tests.http.certificate import CERTIFICATE

ENVIRONMENT = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy or CA bundle of the machine that runs the tests."""
    for name in (*ENVIRONMENT, "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def tunnels(peer: Peer) -> None:
    """A proxy's CONNECT: passes bytes both ways."""
    request = peer.request()
    assert request is not None
    host, _, port = request.line.split()[1].partition(":")
    with socket.create_connection((host, int(port))) as target:
        peer.send(b"HTTP/1.1 200 OK\r\n\r\n")
        back = threading.Thread(target=_pass_on, args=(target, peer.sock), daemon=True)
        back.start()
        _pass_on(peer.sock, target)
        back.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def proxy() -> Iterator[FaultServer]:
    """A proxy that answers plain requests by itself."""
    with FaultServer(answering()) as server:
        yield server


def test_a_proxy_of_the_environment_is_used(
    proxy: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked for the whole URL, and its connection is kept."""
    monkeypatch.setenv("HTTP_PROXY", proxy.url)
    with DashboardClient("http://ray.invalid:8265/a") as client:
        client.get_job_info("x")
        client.get_job_info("x")
    lines = [request.line for request in proxy.requests]
    assert lines == ["GET http://ray.invalid:8265/a/api/jobs/x HTTP/1.1"] * 2
    assert proxy.connections == 1


def test_the_environment_is_looked_up_once(
    proxy: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later change is not seen by a client that has been used."""
    monkeypatch.setenv("HTTP_PROXY", proxy.url)
    with DashboardClient("http://ray.invalid:8265") as client:
        client.get_job_info("x")
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
        assert client.get_job_info("x").status == "RUNNING"


def test_no_proxy_is_honoured(proxy: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hosts in it are asked directly."""
    monkeypatch.setenv("HTTP_PROXY", proxy.url)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with FaultServer(answering()) as server, DashboardClient(server.url) as client:
        client.get_job_info("x")
        assert len(server.requests) == 1
    assert proxy.requests == []


def test_no_proxies_means_none(proxy: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """`proxies={}` ignores the environment."""
    monkeypatch.setenv("HTTP_PROXY", proxy.url)
    with FaultServer(answering()) as server, DashboardClient(server.url, proxies={}) as client:
        client.get_job_info("x")
        assert len(server.requests) == 1
    assert proxy.requests == []


def test_given_proxies_are_used_with_their_password() -> None:
    """The password goes to the proxy in its own header, and is in no error."""

    def script(peer: Peer) -> None:
        peer.request()
        peer.answer(b"no", "407 Proxy Authentication Required")

    with FaultServer(script) as proxy:
        url = proxy.url.replace("//", "//me:pa55w0rd@")
        with DashboardClient("http://ray.invalid", proxies={"http": url}) as client:
            with pytest.raises(BadResponse) as caught:
                client.get_job_info("x")
            assert "pa55w0rd" not in f"{caught.value} {client!r}"
        assert proxy.requests[0].headers["proxy-authorization"] == "Basic bWU6cGE1NXcwcmQ="


def test_https_goes_through_a_tunnel() -> None:
    """The proxy sees CONNECT and no token; the connection through it is kept."""
    with (
        FaultServer(answering(), tls=CERTIFICATE) as server,
        FaultServer(tunnels) as proxy,
        DashboardClient(
            server.url, token="secret", proxies={"https": proxy.url}, verify=str(CERTIFICATE)
        ) as client,
    ):
        client.get_job_info("x")
        client.get_job_info("x")
        (request,) = proxy.requests
        assert request.line.startswith(f"CONNECT 127.0.0.1:{server.port} ")
        assert "secret" not in repr(proxy.requests)
        assert len(server.requests) == 2


def test_https_goes_through_a_tunnel_of_an_https_proxy() -> None:
    """TLS within TLS."""
    with (
        FaultServer(answering(), tls=CERTIFICATE) as server,
        FaultServer(tunnels, tls=CERTIFICATE) as proxy,
        DashboardClient(
            server.url, proxies={"https": proxy.url}, verify=str(CERTIFICATE)
        ) as client,
    ):
        assert client.get_job_info("x").status == "RUNNING"
        assert len(proxy.requests) == len(server.requests) == 1


def test_a_proxy_that_refuses_the_tunnel_is_unavailable() -> None:
    """Its status is told."""

    def script(peer: Peer) -> None:
        peer.request()
        peer.answer(b"no", "407 Proxy Authentication Required")

    with (
        FaultServer(script) as proxy,
        DashboardClient("https://ray.invalid", proxies={"https": proxy.url}) as client,
        pytest.raises(DashboardUnavailable, match="407 Proxy Authentication Required"),
    ):
        client.get_job_info("x")


@pytest.mark.parametrize("proxy", ["socks5://me:pa55w0rd@127.0.0.1:1", "http://me:pa55w0rd@[::"])
def test_a_proxy_of_the_environment_that_cannot_be_used_is_unavailable(
    proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told without its password."""
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(DashboardUnavailable, match="proxy") as caught:
        DashboardClient("http://ray.invalid").list_jobs()
    assert "pa55w0rd" not in f"{caught.value} {caught.value.__cause__!r}"


def test_redirects_are_not_followed() -> None:
    """A login page elsewhere sees neither the request nor the token."""
    with FaultServer(answering()) as elsewhere:
        location = f"Location: {elsewhere.url}/login"
        with (
            FaultServer(answering(b"", "302 Found", location)) as server,
            DashboardClient(server.url, token="secret") as client,
            pytest.raises(BadResponse, match="302 Found"),
        ):
            client.get_job_info("x")
        assert elsewhere.requests == []


def test_netrc_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither is its password sent, nor does it replace the token."""
    netrc = tmp_path / "netrc"
    netrc.write_text("default login me password pa55w0rd\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    with FaultServer(answering()) as server:
        for token in ("secret", None):
            with DashboardClient(server.url, token=token) as client:
                client.get_job_info("x")
        sent = [request.headers.get("authorization") for request in server.requests]
    assert sent == ["Bearer secret", None]


def test_cookies_are_never_sent_back() -> None:
    """Not even to the server that set them."""
    with (
        FaultServer(answering(BODY, "200 OK", "Set-Cookie: session=1; Path=/")) as server,
        DashboardClient(server.url) as client,
    ):
        client.get_job_info("x")
        client.get_job_info("x")
        assert [request.headers.get("cookie") for request in server.requests] == [None, None]


def test_an_unknown_certificate_is_refused() -> None:
    """And the reason is told."""
    with (
        FaultServer(answering(), tls=CERTIFICATE) as server,
        DashboardClient(server.url) as client,
        pytest.raises(DashboardUnavailable, match="certificate verify failed"),
    ):
        client.get_job_info("x")


def test_a_certificate_of_another_host_is_refused() -> None:
    """The authority alone is not enough."""
    with FaultServer(answering(), tls=CERTIFICATE) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        client = DashboardClient(url, verify=str(CERTIFICATE), proxies={})
        with client, pytest.raises(DashboardUnavailable, match="certificate is not valid for"):
            client.get_job_info("x")
        assert server.requests == []


@pytest.mark.parametrize("name", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
def test_a_ca_bundle_of_the_environment_is_honoured(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As requests does."""
    monkeypatch.setenv(name, str(CERTIFICATE))
    with FaultServer(answering(), tls=CERTIFICATE) as server, DashboardClient(server.url) as client:
        assert client.get_job_info("x").status == "RUNNING"


def test_verification_can_be_turned_off() -> None:
    """Without a warning: the caller has said so."""
    with (
        FaultServer(answering(), tls=CERTIFICATE) as server,
        DashboardClient(server.url, verify=False) as client,
    ):
        assert client.get_job_info("x").status == "RUNNING"


def test_a_ca_bundle_that_is_not_there_is_told() -> None:
    """With its path."""
    with pytest.raises(DashboardUnavailable, match="no CA certificates in /nowhere/ca"):
        DashboardClient("https://127.0.0.1:1", verify="/nowhere/ca.pem").list_jobs()
