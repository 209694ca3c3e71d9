"""The provider: identity, addresses, tokens from Secrets, and the service proxy."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from jobinfo_cache import (
    BadResponse,
    CachedDashboardClient,
    DashboardAuthError,
    DashboardClient,
    DashboardUnavailable,
    JobInfoCache,
    JobNotFound,
    Settings,
)
from jobinfo_cache.kubernetes import DashboardClientProvider
from jobinfo_cache.testing import SimulatedDashboard, settle
from tests.kubernetes.stub import CERTIFICATE, StubApiServer
from tests.unit.test_fork import in_child

official = pytest.importorskip("kubernetes.client", reason="needs the extra `kubernetes`")


def make_cluster(name: str = "one", uid: str = "u1", *, token: bool = False) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "ns", "name": name, "uid": uid},
        "spec": {"authOptions": {"mode": "token"} if token else None},
        "status": {
            "head": {"serviceName": f"{name[-40:]}-head-svc"},
            "endpoints": {"dashboard": "8265"},
        },
    }


def make_api_client(url: str, token: str = "api-token", **settings: Any) -> Any:
    configuration = official.Configuration(host=url, ssl_ca_cert=str(CERTIFICATE), **settings)
    configuration.api_key = {"BearerToken": f"Bearer {token}"}
    configuration.proxy = None
    return official.ApiClient(configuration)


@pytest.fixture
def server() -> Iterator[StubApiServer]:
    """An API server, with the service of cluster "one"."""
    with StubApiServer() as server:
        yield server


@pytest.fixture
def dashboard(server: StubApiServer) -> Iterator[SimulatedDashboard]:
    """What the service of cluster "one" leads to, with a job "a"."""
    with SimulatedDashboard() as dashboard:
        dashboard.add_job("a", status="RUNNING")
        server.services["ns/one-head-svc"] = dashboard.url
        yield dashboard


def make_provider(
    server: StubApiServer, *, proxy: bool = False, cached: bool = False, **settings: Any
) -> DashboardClientProvider:
    cache = JobInfoCache(Settings(async_job_info_query=cached, request_timeout=15, **settings))
    api_client = make_api_client(server.url)
    return DashboardClientProvider(cache, api_client=api_client, use_kubernetes_proxy=proxy)


def check_that_they_share_nothing(
    provider: DashboardClientProvider, first: object, second: object
) -> None:
    """What is read through the first client is unknown to the second."""
    assert isinstance(first, CachedDashboardClient)
    assert isinstance(second, CachedDashboardClient)
    first.lookup("a")
    settle(provider._cache)

    assert first.lookup("a").known
    assert second.peek("a") is None
    assert provider._cache.close()


class TestClients:
    """Which client is handed out, and when another one."""

    def test_same_client_while_nothing_changes(self, server: StubApiServer) -> None:
        """An equal resource gives the very same plain client, and an equal cached one."""
        plain, cached = make_provider(server), make_provider(server, cached=True)
        first = plain.client_for(make_cluster())

        assert isinstance(first, DashboardClient)
        assert first is plain.client_for(copy.deepcopy(make_cluster()))
        assert isinstance(cached.client_for(make_cluster()), CachedDashboardClient)
        assert cached.client_for(make_cluster()) == cached.client_for(make_cluster())

    def test_address_is_the_resources_or_the_given_one(self, server: StubApiServer) -> None:
        """The head service inside the cluster, or `url`, with or without a scheme."""
        provider = make_provider(server)
        urls = [
            provider.client_for(make_cluster(), url).url  # type: ignore[union-attr]
            for url in (None, "10.0.0.1:8265", "http://10.0.0.2:8265")
        ]

        assert urls == [
            "http://one-head-svc.ns.svc:8265",
            "http://10.0.0.1:8265",
            "http://10.0.0.2:8265",
        ]

    @pytest.mark.parametrize(
        "rest",
        [
            {},
            {"spec": None, "status": None},
            {"spec": {"authOptions": None}, "status": {"head": None, "endpoints": None}},
        ],
        ids=["absent", "null", "nulls inside"],
    )
    def test_cluster_without_a_status_is_where_the_operator_will_put_it(
        self, server: StubApiServer, rest: dict[str, Any]
    ) -> None:
        """Whatever is missing or null, both modes know the address, and ask for no token."""
        resource = {"metadata": make_cluster()["metadata"], **rest}
        urls = [
            make_provider(server, proxy=proxy).client_for(resource).url  # type: ignore[union-attr]
            for proxy in (False, True)
        ]

        service = "/api/v1/namespaces/ns/services/one-head-svc:dashboard/proxy"
        assert urls == ["http://one-head-svc.ns.svc:8265", server.url + service]
        assert server.asked == []

    def test_long_name_without_a_status_is_refused(self, server: StubApiServer) -> None:
        """A service's name that may be another cluster's is never guessed; `url` needs none."""
        provider = make_provider(server)
        resource = {"metadata": {"namespace": "ns", "name": "a" + "x" * 62, "uid": "u1"}}
        with pytest.raises(ValueError, match=r"no status\.head\.serviceName"):
            provider.client_for(resource)

        assert provider.client_for(resource, "http://127.0.0.1:1") is not None

    @pytest.mark.parametrize("proxy", [False, True])
    def test_without_a_cluster_it_is_a_plain_client(
        self, server: StubApiServer, dashboard: SimulatedDashboard, proxy: bool
    ) -> None:
        """No cluster: `url` itself, never cached, and without the API server's credentials."""
        provider = make_provider(server, proxy=proxy, cached=True)
        client = provider.client_for(None, dashboard.url)

        assert isinstance(client, DashboardClient)
        assert client is provider.client_for(None, dashboard.url)
        assert client.get_job_info("a").status == "RUNNING"
        assert server.asked == []
        client.close()

    def test_neither_cluster_nor_url_is_refused(self, server: StubApiServer) -> None:
        """Nothing to ask is a ValueError that says so."""
        with pytest.raises(ValueError, match="one of them"):
            make_provider(server).client_for(None)

    def test_cluster_made_again_is_another_one(
        self, server: StubApiServer, dashboard: SimulatedDashboard
    ) -> None:
        """The end of a job of the old incarnation is not known of the new one."""
        provider = make_provider(server, cached=True, poll_interval=60.0, max_backoff=60.0)
        dashboard.set_status("a", "SUCCEEDED")
        old = provider.client_for(make_cluster(uid="u1"), dashboard.url)
        new = provider.client_for(make_cluster(uid="u2"), dashboard.url)
        check_that_they_share_nothing(provider, old, new)

    def test_names_that_differ_in_their_first_letters_share_nothing(
        self, server: StubApiServer, dashboard: SimulatedDashboard
    ) -> None:
        """63-character names with equal ends are two clusters with two entries."""
        provider = make_provider(server, cached=True)
        names = ["a" + "x" * 62, "b" + "x" * 62]
        first, second = (
            provider.client_for(make_cluster(name, uid=""), dashboard.url) for name in names
        )
        check_that_they_share_nothing(provider, first, second)

    def test_forget_works_when_the_cluster_is_gone(
        self, server: StubApiServer, dashboard: SimulatedDashboard
    ) -> None:
        """Namespace and name are enough to drop the entries and the client."""
        provider = make_provider(server, cached=True)
        client = provider.client_for(make_cluster(), dashboard.url)
        assert isinstance(client, CachedDashboardClient)
        client.lookup("a")
        provider.forget("ns", "one")
        provider.forget("ns", "never-seen")

        assert client.peek("a") is None
        assert provider._clients._made == {}
        assert provider._cache.close()


class TestToken:
    """The token of a cluster, from its Secret."""

    def test_secret_is_read_when_needed_and_again_when_refused(self, server: StubApiServer) -> None:
        """One look at the Secret serves all requests, until the dashboard refuses the token."""
        server.add_secret("ns/one", "u1", auth_token="first")
        with SimulatedDashboard(token="first") as dashboard:
            dashboard.add_job("a", status="RUNNING")
            client = make_provider(server).client_for(make_cluster(token=True), dashboard.url)
            assert server.asked == []
            client.get_job_info("a")
            client.get_job_info("a")
            assert len(server.asked) == 1
            dashboard.set_token("second")
            server.add_secret("ns/one", "u1", auth_token="second")
            client.get_job_info("a")
            client.close()

        assert len(server.asked) == 2

    def test_secret_that_changes_while_polls_run(self, server: StubApiServer) -> None:
        """A cached client goes on with the new token; no reader asks the API server."""
        server.add_secret("ns/one", auth_token="first")
        with SimulatedDashboard(token="first") as dashboard:
            dashboard.add_job("a", status="RUNNING")
            provider = make_provider(server, cached=True)
            client = provider.client_for(make_cluster(token=True), dashboard.url)
            assert isinstance(client, CachedDashboardClient)
            client.lookup("a")
            settle(provider._cache)
            dashboard.set_token("second")
            server.add_secret("ns/one", auth_token="second")
            dashboard.set_status("a", "SUCCEEDED")
            client.lookup("a", max_age=0.0)
            assert client.wait("a", timeout=15).status == "SUCCEEDED"
            assert provider._cache.close()

    def test_long_names_that_end_alike_do_not_share_a_token(self, server: StubApiServer) -> None:
        """Both have the same Secret's name: the one that does not own it gets no token at all."""
        names = ["a" + "x" * 62, "b" + "x" * 62]
        server.add_secret("ns/" + "x" * 50, "u1", auth_token="first")
        provider = make_provider(server)
        with SimulatedDashboard(token="first") as dashboard:
            dashboard.add_job("a", status="RUNNING")
            owner, other = (
                provider.client_for(make_cluster(name, uid, token=True), dashboard.url)
                for name, uid in zip(names, ["u1", "u2"], strict=True)
            )
            assert owner.get_job_info("a").status == "RUNNING"
            with pytest.raises(DashboardAuthError, match="another cluster's"):
                other.get_job_info("a")
            owner.close()

    @pytest.mark.parametrize(
        ("secret", "words"),
        [
            (None, "Secret ns/one cannot be read: 404"),
            ({"other": "x"}, "Secret ns/one has no key 'auth_token'"),
            ({"auth_token": "x", "owner_uid": "u0"}, "Secret ns/one is another cluster's"),
        ],
        ids=["no secret", "no key", "of the cluster before"],
    )
    def test_secret_that_is_of_no_use_is_said_clearly(
        self,
        server: StubApiServer,
        dashboard: SimulatedDashboard,
        secret: dict[str, str] | None,
        words: str,
    ) -> None:
        """A missing Secret or key, or another cluster's, is an auth error that names it."""
        if secret is not None:
            server.add_secret("ns/one", **secret)
        client = make_provider(server).client_for(make_cluster(token=True), dashboard.url)

        with pytest.raises(DashboardAuthError, match=words):
            client.get_job_info("a")
        assert dashboard.requests == []

    def test_long_name_leads_to_the_secret_that_the_operator_makes(
        self, server: StubApiServer, dashboard: SimulatedDashboard
    ) -> None:
        """Of a 63-character name the Secret has the last 50."""
        name = "ab" + "x" * 61
        server.add_secret(f"ns/{'x' * 50}", "u1", auth_token="good")
        dashboard.set_token("good")
        client = make_provider(server).client_for(make_cluster(name, token=True), dashboard.url)

        assert client.get_job_info("a").status == "RUNNING"
        client.close()

    def test_api_server_that_is_in_trouble_is_no_wrong_token(self, server: StubApiServer) -> None:
        """A 500 for the Secret is unavailability, which is tried again."""
        server.override = (500, {"kind": "Status", "apiVersion": "v1"})
        client = make_provider(server).client_for(make_cluster(token=True), "127.0.0.1:1")

        with pytest.raises(DashboardUnavailable, match="Secret ns/one cannot be read: 500"):
            client.get_job_info("a")


class TestProxy:
    """Through the API server's service proxy."""

    def test_asks_with_the_api_clients_credentials(
        self, server: StubApiServer, dashboard: SimulatedDashboard
    ) -> None:
        """TLS and token are the API client's; the dashboard sees nothing of them."""
        client = make_provider(server, proxy=True).client_for(make_cluster())

        assert client.get_job_info("a").status == "RUNNING"
        path, headers = server.asked[0]
        assert path == "/api/v1/namespaces/ns/services/one-head-svc:dashboard/proxy/api/jobs/a"
        assert "X-Ray-Authorization" not in headers
        client.close()

    def test_both_tokens_go_their_own_way(
        self, server: StubApiServer, dashboard: SimulatedDashboard
    ) -> None:
        """The API server gets its token, the dashboard gets the cluster's."""
        server.add_secret("ns/one", auth_token="ray-token")
        dashboard.set_token("ray-token")
        client = make_provider(server, proxy=True).client_for(make_cluster(token=True))

        assert client.get_job_info("a").status == "RUNNING"
        assert server.asked[-1][1]["X-Ray-Authorization"] == "Bearer ray-token"
        client.close()

    def test_api_token_is_refreshed_by_its_hook(
        self, server: StubApiServer, dashboard: SimulatedDashboard
    ) -> None:
        """A new service account token is used from the next request on, by the same client."""
        provider = make_provider(server, proxy=True)
        client = provider.client_for(make_cluster())
        client.get_job_info("a")
        server.token = "rotated"

        def refresh(configuration: Any) -> None:
            configuration.api_key["BearerToken"] = "Bearer rotated"

        provider._server._api_client.configuration.refresh_api_key_hook = refresh

        assert client.get_job_info("a").status == "RUNNING"
        assert client is provider.client_for(make_cluster())
        client.close()

    def test_client_certificate_is_shown(self) -> None:
        """An API server that asks for a certificate gets the API client's."""
        with StubApiServer(client_certificate=True) as server, SimulatedDashboard() as dashboard:
            dashboard.add_job("a", status="RUNNING")
            server.services["ns/one-head-svc"] = dashboard.url
            api_client = make_api_client(
                server.url, cert_file=str(CERTIFICATE), key_file=str(CERTIFICATE)
            )
            cache = JobInfoCache(Settings(async_job_info_query=False, request_timeout=15))
            provider = DashboardClientProvider(
                cache, api_client=api_client, use_kubernetes_proxy=True
            )
            client = provider.client_for(make_cluster())
            assert client.get_job_info("a").status == "RUNNING"
            client.close()

    def test_certificate_that_nobody_trusts_is_refused(self, server: StubApiServer) -> None:
        """Without the API client's authorities there is no connection."""
        provider = make_provider(server, proxy=True)
        provider._server._api_client.configuration.ssl_ca_cert = None
        with pytest.raises(DashboardUnavailable, match=r"(?i)certificate"):
            provider.client_for(make_cluster()).get_job_info("a")

    def test_job_that_the_dashboard_does_not_know_is_not_found(
        self, server: StubApiServer, dashboard: SimulatedDashboard
    ) -> None:
        """The dashboard's own 404 comes through."""
        client = make_provider(server, proxy=True).client_for(make_cluster())
        with pytest.raises(JobNotFound):
            client.get_job_info("b")
        client.close()

    @pytest.mark.parametrize(
        ("code", "error"),
        [
            (200, BadResponse),
            (401, DashboardAuthError),
            (403, DashboardAuthError),
            (404, BadResponse),
            (503, DashboardUnavailable),
        ],
    )
    def test_what_the_api_server_says_itself_is_no_jobs_answer(
        self, server: StubApiServer, code: int, error: type[Exception]
    ) -> None:
        """A Status object is never a job, and its 404 is never a missing job."""
        message = f"no endpoints available for service, says {server.token}"
        server.override = (
            code,
            {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message},
        )
        client = make_provider(server, proxy=True).client_for(make_cluster())

        with pytest.raises(error) as raised:
            client.get_job_info("a")
        assert type(raised.value) is error
        assert server.token not in str(raised.value)
        client.close()

    def test_service_that_is_gone_is_no_missing_job(self, server: StubApiServer) -> None:
        """The API server's 404 for the service is a BadResponse."""
        client = make_provider(server, proxy=True).client_for(make_cluster())
        with pytest.raises(BadResponse, match="not found"):
            client.get_job_info("a")
        client.close()


def test_child_of_a_fork_does_not_wait_for_the_parents_lock(server: StubApiServer) -> None:
    """A fork while another thread was in `client_for` leaves a provider that works."""
    provider = make_provider(server)
    with provider._clients._lock:
        code = in_child(lambda: provider.client_for(make_cluster()) is not None)

    assert code == 0


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the official client the error says what to install."""
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    with pytest.raises(ImportError, match=r"jobinfo-cache\[kubernetes\]"):
        DashboardClientProvider(JobInfoCache())
