"""Requests' adapter over our own connections: the proxy and the TLS settings of a dashboard."""

from __future__ import annotations

import base64
import functools
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import DEFAULT_CA_BUNDLE_PATH, HTTPAdapter
from requests.utils import get_auth_from_url, select_proxy
from urllib3.util.ssl_ import create_urllib3_context

from jobinfo_cache.arguments import is_http_url
from jobinfo_cache.exchange import POOLS, TLSSocket

__all__ = ["Adapter", "forget_tls_contexts"]


class Adapter(HTTPAdapter):
    """Sends prepared requests; looks the environment's proxies and CA bundle up once, when made.

    `proxies` is what to pass on to `send`, `secrets` what of it must not be shown. Raises
    `ValueError` or `OSError` when the environment or the CA bundle cannot be used.
    """

    def __init__(
        self,
        url: str,
        verify: bool | str | ssl.SSLContext,
        proxies: Mapping[str, str] | None,
    ) -> None:
        known = True if isinstance(verify, ssl.SSLContext) else verify
        found = requests.Session().merge_environment_settings(url, {}, None, known, None)
        usable = dict(found["proxies"] if proxies is None else proxies)
        scheme = urlsplit(url).scheme
        proxy = select_proxy(url, usable)
        self.proxies = {scheme: _checked_proxy(proxy)} if proxy else {}
        self.secrets = [text for url in self.proxies.values() for text in _secrets_in(url)]
        self._tls: ssl.SSLContext | None = None
        if "https" in (scheme, urlsplit(self.proxies.get(scheme, "")).scheme):
            trusted = verify if isinstance(verify, ssl.SSLContext) else found["verify"]
            self._tls = _tls_context(True if trusted is None else trusted)
        self._origin = len(f"{scheme}://{urlsplit(url).netloc}")
        self._pool: Any = None
        super().__init__(pool_connections=1, pool_maxsize=1)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = POOLS

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        manager = super().proxy_manager_for(proxy, proxy_ssl_context=self._tls, **kwargs)
        manager.pool_classes_by_scheme = POOLS
        return manager

    # What requests works out anew for each request, and what is the same for all of a dashboard's:

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> Any:
        if self._pool is None:
            self._pool = super().get_connection_with_tls_context(*args, **kwargs)
        return self._pool

    def request_url(self, request: requests.PreparedRequest, proxies: Any) -> str:
        if self.proxies:
            return super().request_url(request, proxies)
        return str(request.url)[self._origin :]

    def build_response(self, req: Any, resp: Any) -> requests.Response:
        """Without encoding, cookies and history, of which nothing is used."""
        response = requests.Response()
        response.status_code = resp.status
        response.headers = resp.headers
        response.raw = resp
        response.request = req
        return response

    def build_connection_pool_key_attributes(
        self, request: Any, verify: Any, cert: Any = None
    ) -> Any:
        host, _ = super().build_connection_pool_key_attributes(request, True, None)
        settings: dict[str, Any] = {"ssl_context": self._tls}
        if host["scheme"] == "https" and self._tls is not None and not self._tls.check_hostname:
            settings["assert_hostname"] = False  # else urllib3 checks what the context does not
        return host, settings

    def cert_verify(self, *args: Any, **kwargs: Any) -> None:
        """Nothing to do: the TLS context knows the authorities."""


def _checked_proxy(proxy: str) -> str:
    url = proxy if "://" in proxy else f"http://{proxy}"
    if not is_http_url(url):
        raise ValueError("the environment names a proxy that is no http or https URL")
    return url


def _secrets_in(proxy: str) -> list[str]:
    """The password in a proxy's URL, as it is and as the proxy's header carries it."""
    user, password = get_auth_from_url(proxy)
    if not password:
        return []
    pair = f"{user}:{password}"
    return [password, pair, base64.b64encode(pair.encode("latin-1", "replace")).decode()]


def _tls_context(verify: bool | str | ssl.SSLContext) -> ssl.SSLContext:
    """The TLS settings: made once for each CA bundle, anew when the bundle changes."""
    if isinstance(verify, ssl.SSLContext):
        verify.sslsocket_class = TLSSocket  # the deadline needs our sockets
        return verify
    if verify is False:
        return _new_tls_context(None, 0)
    authorities = Path(DEFAULT_CA_BUNDLE_PATH if verify is True else verify).expanduser()
    try:
        return _new_tls_context(authorities, authorities.stat().st_mtime_ns)
    except OSError as error:
        reason = error.strerror
    # Outside the handler: the last in the chain is what users are told.
    raise OSError(f"no CA certificates in {authorities}: {reason}")


@functools.lru_cache(maxsize=16)
def _new_tls_context(authorities: Path | None, _mtime: int) -> ssl.SSLContext:
    needed = ssl.CERT_NONE if authorities is None else ssl.CERT_REQUIRED
    context = create_urllib3_context(cert_reqs=needed)
    context.sslsocket_class = TLSSocket
    if authorities is not None:
        if authorities.is_dir():
            context.load_verify_locations(capath=authorities)
        else:
            context.load_verify_locations(cafile=authorities)
    return context


def forget_tls_contexts() -> None:
    """For a forked child: another thread of the parent may have been using their locks."""
    _new_tls_context.cache_clear()
