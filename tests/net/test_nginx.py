"""The clients behind a real nginx."""

from __future__ import annotations

import base64
import select
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobinfo_cache import Cluster, DashboardClient, JobInfoCache, Settings, TryAgain
from jobinfo_cache.errors import (
    BadResponse,
    DashboardAuthError,
    DashboardUnavailable,
    JobNotFound,
)
from jobinfo_cache.testing import FakeClock, SimulatedDashboard, settle
from tests.http.certificate import CERTIFICATE
from tests.http.kinds import KINDS
from tests.net.boxes import Box, free_port, nginx

pytestmark = pytest.mark.net

GATE = "token-for-the-ingress"
TOKEN = "token-for-the-dashboard"
TIMEOUT = 20.0  # seconds; only a failure uses them up
CLUSTER = Cluster("ns", "one", "uid-1")
BASIC = "Basic " + base64.b64encode(b"me:pa55w0rd").decode()


@pytest.fixture
def box(tmp_path: Path, dashboard: SimulatedDashboard) -> Iterator[Box]:
    """An nginx with a way of each kind to the dashboard."""
    port = free_port()
    (tmp_path / "htpasswd").write_text("me:{PLAIN}pa55w0rd\n")
    with nginx(tmp_path, _servers(dashboard.url, port, tmp_path), port) as box:
        yield box


@pytest.fixture
def tls_url(tmp_path: Path, dashboard: SimulatedDashboard) -> Iterator[str]:
    """An nginx that speaks TLS, and closes each connection after two requests."""
    port = free_port()
    server = f"""
    server {{
        listen 127.0.0.1:{port} ssl;
        ssl_certificate {CERTIFICATE};
        ssl_certificate_key {CERTIFICATE};
        keepalive_requests 2;
        location / {{ proxy_pass {dashboard.url}; }}
    }}
    """
    with nginx(tmp_path, server, port):
        yield f"https://127.0.0.1:{port}"


def _servers(dashboard: str, port: int, directory: Path) -> str:
    return f"""
    limit_req_zone $binary_remote_addr zone=few:1m rate=1r/m;
    limit_req_status 429;
    gzip on;
    gzip_proxied any;
    gzip_types application/json;
    map $http_authorization $may_pass {{ default 0; "Bearer {GATE}" 1; }}
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    server {{
        listen 127.0.0.1:{port};
        location / {{ proxy_pass {dashboard}; }}
        location /bearer/ {{
            if ($may_pass = 0) {{ return 401; }}
            proxy_pass {dashboard}/;
        }}
        location /basic/ {{
            auth_basic "ray";
            auth_basic_user_file {directory}/htpasswd;
            proxy_set_header Authorization "";
            proxy_pass {dashboard}/;
        }}
        location /limited/ {{
            limit_req zone=few;
            error_page 429 @busy;
            proxy_pass {dashboard}/;
        }}
        location @busy {{ add_header Retry-After 7 always; return 429; }}
        location /sso/ {{ return 302 /login?next=$request_uri; }}
        location /signed-out/ {{ rewrite ^ /login last; }}
        location /login {{ default_type text/html; return 200 "<title>Sign in</title>"; }}
        location /impatient/ {{
            proxy_read_timeout 200ms;
            proxy_pass {dashboard}/;
        }}
    }}
    """


def client_of(url: str, **arguments: object) -> DashboardClient:
    return DashboardClient(url, timeout=TIMEOUT, proxies={}, **arguments)  # type: ignore[arg-type]


def test_everything_passes(box: Box, dashboard: SimulatedDashboard) -> None:
    """Each kind of request, on one connection."""
    with client_of(box.url) as client:
        for ask in KINDS.values():
            ask(client)
        assert client.get_version()["session_name"] == dashboard.session_name


@pytest.mark.parametrize("job_id", ["a b", "a?b", "a#b", "ü", "a%2Fb", "a+b", "a&b=c", "a;b"])
def test_odd_ids_pass(box: Box, dashboard: SimulatedDashboard, job_id: str) -> None:
    """Nothing of an id is lost or changed on the way."""
    dashboard.add_job(job_id, status="RUNNING")
    with client_of(box.url) as client:
        assert client.get_job_info(job_id).submission_id == job_id
        with pytest.raises(JobNotFound):
            client.get_job_info(f"{job_id}-")


def test_a_large_list_comes_compressed(box: Box, dashboard: SimulatedDashboard) -> None:
    """Nginx compresses it, chunk by chunk, and the client reads all of it."""
    for number in range(300):
        dashboard.add_job(f"job-{number}", status="RUNNING", entrypoint="x" * 500)
    with client_of(box.url) as client:
        assert len(client.list_jobs()) == 301


def test_bearer(box: Box) -> None:
    """A token opens the ingress; without it each kind of request is told so."""
    with client_of(f"{box.url}/bearer", token=GATE) as client:
        assert client.get_job_info("x").status == "RUNNING"
    for token in (None, "wrong"):
        with client_of(f"{box.url}/bearer", token=token) as client:
            for ask in KINDS.values():
                with pytest.raises(DashboardAuthError, match="401 Unauthorized, text/html"):
                    ask(client)


def test_a_token_that_is_rotated_at_the_ingress(box: Box) -> None:
    """The source is asked again after the 401, and the request passes."""
    tokens = iter(["old", GATE])
    with client_of(f"{box.url}/bearer", token=lambda: next(tokens, GATE)) as client:
        assert client.get_job_info("x").status == "RUNNING"


def test_basic_before_a_token(box: Box, dashboard: SimulatedDashboard) -> None:
    """The ingress takes the Authorization for itself, the token passes in the second header."""
    dashboard.set_token(TOKEN)
    url = f"{box.url}/basic"
    with client_of(url, token=TOKEN, headers={"Authorization": BASIC}) as client:
        assert client.get_job_info("x").status == "RUNNING"
    with (
        client_of(url, headers={"Authorization": BASIC}) as client,
        pytest.raises(DashboardAuthError, match="401 Unauthorized, text/plain"),
    ):
        client.get_job_info("x")
    with (
        client_of(url, token=TOKEN) as client,
        pytest.raises(DashboardAuthError, match="401 Unauthorized, text/html"),
    ):
        client.get_job_info("x")


def test_a_limit_of_requests(box: Box, dashboard: SimulatedDashboard) -> None:
    """429 is unavailable, with the delay that nginx names, and the cache keeps to it."""
    clock = FakeClock()
    with (
        client_of(f"{box.url}/limited") as client,
        JobInfoCache(Settings(jitter=0.0), clock=clock) as cache,
    ):
        client.get_job_info("x")
        with pytest.raises(DashboardUnavailable, match="429 Too Many Requests") as caught:
            client.get_job_info("x")
        assert caught.value.retry_after == 7.0
        cached = cache.client(client, CLUSTER)
        with pytest.raises(TryAgain):
            cached.get_job_info("x")
        settle(cache)
        retry_after = cached.lookup("x").retry_after
        assert retry_after is not None
        assert 7.0 <= retry_after < 8.0
        requests = cache.stats().requests_single
        clock.advance(6.9)
        settle(cache)
        assert cache.stats().requests_single == requests
        clock.advance(0.2)
        settle(cache)
        assert cache.stats().requests_single == requests + 1
        assert len(dashboard.requests) == 1


def test_bad_gateway_while_the_dashboard_restarts(box: Box, dashboard: SimulatedDashboard) -> None:
    """502 is an outage, which ends by itself; the last good answer stays readable meanwhile."""
    clock = FakeClock()
    with (
        client_of(box.url) as client,
        JobInfoCache(Settings(jitter=0.0), clock=clock) as cache,
    ):
        cached = cache.client(client, CLUSTER)
        cached.lookup("x")
        settle(cache)
        assert cached.get_job_info("x").status == "RUNNING"
        dashboard.fault("refuse")
        clock.advance(3.0)
        settle(cache)
        with pytest.raises(DashboardUnavailable, match="502 Bad Gateway, text/html") as caught:
            cached.get_job_info("x")
        assert caught.value.last_info is not None
        assert caught.value.last_info.status == "RUNNING"
        for ask in KINDS.values():
            with pytest.raises(DashboardUnavailable, match="502 Bad Gateway"):
                ask(client)
        dashboard.fault(None)
        dashboard.set_status("x", "SUCCEEDED")
        clock.advance(60.0)
        settle(cache)
        assert cached.get_job_info("x").status == "SUCCEEDED"


def test_gateway_timeout(box: Box, dashboard: SimulatedDashboard) -> None:
    """504 is unavailable, long before the client's own deadline."""
    dashboard.fault("hang")
    with client_of(f"{box.url}/impatient") as client:
        for ask in KINDS.values():
            with pytest.raises(DashboardUnavailable, match="504 Gateway Timeout"):
                ask(client)
    dashboard.fault(None)


def test_a_login_redirect_is_not_followed(box: Box) -> None:
    """302 says what it is, and the sign-in page is not asked for."""
    with client_of(f"{box.url}/sso", token=TOKEN) as client:
        for ask in KINDS.values():
            with pytest.raises(BadResponse, match="302 Found, text/html"):
                ask(client)


def test_a_login_page_instead_of_json(box: Box) -> None:
    """200 with a sign-in page is a bad response, with the beginning of the page."""
    with client_of(f"{box.url}/signed-out", token=TOKEN) as client:
        for ask in KINDS.values():
            with pytest.raises(BadResponse, match=r"200 OK, text/html: .*Sign in"):
                ask(client)


def test_a_wrong_prefix_is_no_missing_job(box: Box, dashboard: SimulatedDashboard) -> None:
    """The dashboard's own "404: Not Found" for a wrong path does not say that a job is unknown."""
    with client_of(f"{box.url}/elsewhere") as client, pytest.raises(BadResponse, match="404"):
        client.get_job_info("x")


def test_tls_ends_at_the_ingress(tls_url: str, dashboard: SimulatedDashboard) -> None:
    """Nginx closes connections now and then, and no request notices."""
    with client_of(tls_url, verify=str(CERTIFICATE)) as client:
        for _ in range(5):
            assert client.get_job_info("x").status == "RUNNING"
        client.submit_job("true")
    assert [request.status for request in dashboard.requests] == [200] * 6
    with client_of(tls_url) as client, pytest.raises(DashboardUnavailable, match="certificate"):
        client.get_job_info("x")


def test_an_ingress_that_restarts(box: Box) -> None:
    """The kept connection is replaced silently; while it is down it is unavailable."""
    with client_of(box.url) as client:
        client.get_job_info("x")
        box.stop()
        with pytest.raises(DashboardUnavailable, match="refused"):
            client.get_job_info("x")
        box.start()
        client.get_job_info("x")
        (kept,) = client._transport._kept._idle
        box.stop()
        box.start()
        assert select.select([kept.sock], [], [], TIMEOUT)[0], "nginx has closed it"
        assert client.submit_job("true")
