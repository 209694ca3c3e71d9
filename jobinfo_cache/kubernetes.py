"""Dashboard clients for the RayClusters of a Kubernetes controller (extra `kubernetes`)."""

from __future__ import annotations

import base64
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jobinfo_cache import raycluster
from jobinfo_cache.apiserver import ApiServer, ServerSettings, loads_no_status
from jobinfo_cache.cache import JobInfoCache
from jobinfo_cache.client import CachedDashboardClient
from jobinfo_cache.dashboard import DashboardClient
from jobinfo_cache.errors import DashboardAuthError, DashboardUnavailable
from jobinfo_cache.fork import renew_after_fork
from jobinfo_cache.model import Cluster
from jobinfo_cache.settings import Settings

__all__ = ["DashboardClientProvider"]

_MOST_CLIENTS = 4_096  # a bound for controllers that never call `forget`; each costs some KiB
_TOKEN_KEY = "auth_token"


@dataclass(frozen=True)
class _Made:
    """A client, and all that it was made of."""

    origin: tuple[Any, ...]
    client: DashboardClient


class _Clients:
    """The clients that were made, by key. Safe from any thread, and after a fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Guarded by _lock:
        self._made: OrderedDict[object, _Made] = OrderedDict()
        renew_after_fork(self)

    def renew(self) -> None:
        """In a forked child: a thread of the parent may have held the lock."""
        self._lock = threading.Lock()

    def get(
        self, key: object, origin: tuple[Any, ...], make: Callable[..., DashboardClient]
    ) -> DashboardClient:
        """The client that was made of that origin, or a new one in place of another."""
        dropped = None
        with self._lock:
            made = self._made.get(key)
            if made is None or made.origin != origin:
                dropped, made = made, _Made(origin, make(*origin))
                self._made[key] = made
            self._made.move_to_end(key)
            if len(self._made) > _MOST_CLIENTS:
                _, dropped = self._made.popitem(last=False)
        if dropped is not None:
            dropped.client.close()
        return made.client

    def drop(self, key: object) -> None:
        """Close the client, if there is one."""
        with self._lock:
            made = self._made.pop(key, None)
        if made is not None:
            made.client.close()


class DashboardClientProvider:
    """Hands out the dashboard client of a RayCluster; call it in each reconcile.

    `api_client` is the official client's `ApiClient`; None makes one of the configuration that
    `kubernetes.config.load_…` has set. With `use_kubernetes_proxy` dashboards are asked through
    the API server's service proxy, with the API client's TLS settings and credentials. `settings`
    are the cache's by default: `request_timeout` is the deadline of a request, and with
    `async_job_info_query=False` the clients are plain ones that ask at once.

    Nothing here blocks, and a read never does; the Secret with a cluster's token is read by the
    first request, and again after a 401 or 403. Safe from any thread. Raises `ImportError` when
    the extra is not installed.

    .. versionadded:: 0.1.0
    """

    def __init__(
        self,
        cache: JobInfoCache,
        *,
        settings: Settings | None = None,
        api_client: Any = None,
        use_kubernetes_proxy: bool = False,
    ) -> None:
        official = _official_client()
        self._cache = cache
        self._settings = settings or cache.settings
        api_client = official.ApiClient() if api_client is None else api_client
        self._core = official.CoreV1Api(api_client)
        self._server = ApiServer(api_client)
        self._use_proxy = use_kubernetes_proxy
        self._clients = _Clients()

    def client_for(
        self, ray_cluster: Mapping[str, Any] | None, url: str | None = None
    ) -> CachedDashboardClient | DashboardClient:
        """The client of a cluster; the same one while address and credentials stay the same.

        `ray_cluster` is the resource as a dict. `url` is the dashboard's address ("http://" is
        put before a bare one), by default what the resource says; the proxy mode does not look at
        it. Without a cluster it is a plain client of `url` with no credentials, never cached.
        Raises `ValueError` when the resource lacks its name, or what the address needs, and
        `OSError` when a file that the API client's TLS settings name cannot be read.

        .. versionadded:: 0.1.0
        """
        if ray_cluster is None:
            if url is None:
                raise ValueError("ray_cluster and url are None; one of them must be given")
            return self._clients.get(url, (_with_scheme(url),), self._plain)
        cluster = raycluster.cluster_of(ray_cluster)
        token = None
        if raycluster.asks_for_token(ray_cluster):
            token = _SecretToken(self._core, cluster, self._settings.request_timeout)
        if self._use_proxy:
            address = self._proxy_url(ray_cluster, cluster)
            origin = (address, token, self._server.settings())
            dashboard = self._clients.get(cluster[:2], origin, self._proxied)
        else:
            address = _with_scheme(url) if url else raycluster.dashboard_url(ray_cluster)
            dashboard = self._clients.get(cluster[:2], (address, token), self._plain)
        if not self._settings.async_job_info_query:
            return dashboard
        return self._cache.client(dashboard, cluster)

    def forget(self, namespace: str, name: str) -> None:
        """Drop the clients and entries of a cluster by its name, which may be gone already.

        Never blocks. Does nothing when nothing is known about it.

        .. versionadded:: 0.1.0
        """
        self._cache.forget(namespace, name)
        self._clients.drop((namespace, name))

    def _plain(self, url: str, token: _SecretToken | None = None) -> DashboardClient:
        return DashboardClient(url, token=token, timeout=self._settings.request_timeout)

    def _proxied(
        self, url: str, token: _SecretToken | None, settings: ServerSettings
    ) -> DashboardClient:
        proxy = settings.proxy
        return DashboardClient(
            url,
            token=token,
            headers=self._server.sent_headers(settings),
            timeout=self._settings.request_timeout,
            verify=settings.verify,
            proxies={} if proxy is None else {"http": proxy, "https": proxy},
            json_loads=loads_no_status,
        )

    def _proxy_url(self, ray_cluster: Mapping[str, Any], cluster: Cluster) -> str:
        service = raycluster.head_service(ray_cluster)
        path = f"/api/v1/namespaces/{cluster.namespace}/services/{service}:dashboard/proxy"
        return self._server.url + path


@dataclass(frozen=True)
class _SecretToken:
    """Reads a cluster's token from its Secret; blocks for the API server's answer.

    That takes `timeout` seconds at most, a few times that when the API server is unreachable.
    """

    core: Any
    cluster: Cluster
    timeout: float

    def __call__(self) -> str:
        name = raycluster.secret_name(self.cluster.name)
        where = f"Secret {self.cluster.namespace}/{name}"
        try:
            secret = self.core.read_namespaced_secret(
                name, self.cluster.namespace, _request_timeout=self.timeout
            )
        except Exception as error:
            status = getattr(error, "status", None)
            failed = DashboardAuthError if status in (401, 403, 404) else DashboardUnavailable
            what = f"{where} cannot be read: {status or type(error).__name__}"
            raise failed(what) from None
        self._check_owner(where, secret)
        encoded = (secret.data or {}).get(_TOKEN_KEY)
        if not encoded:
            raise DashboardAuthError(f"{where} has no key {_TOKEN_KEY!r}")
        try:
            return base64.b64decode(encoded).decode("ascii")
        except ValueError:
            raise DashboardAuthError(f"{where}: {_TOKEN_KEY!r} holds no token") from None

    def _check_owner(self, where: str, secret: Any) -> None:
        """Names are shortened, and clusters made anew: it may be another cluster's."""
        references = secret.metadata.owner_references or []
        owners = [owner.uid for owner in references if owner.kind == "RayCluster"]
        if self.cluster.uid and owners and self.cluster.uid not in owners:
            raise DashboardAuthError(f"{where} is another cluster's than {self.cluster}")


def _with_scheme(url: str) -> str:
    return url if "://" in url else f"http://{url}"


def _official_client() -> Any:
    try:
        from kubernetes import client
    except ImportError as error:
        raise ImportError(
            "jobinfo_cache.kubernetes needs the official Kubernetes client:"
            " pip install 'jobinfo-cache[kubernetes]'"
        ) from error
    return client
