"""What a dashboard client takes over from the official API client: TLS, headers, proxy, token."""

from __future__ import annotations

import json
import ssl
from pathlib import Path
from typing import Any, NamedTuple

from jobinfo_cache.credentials import Header
from jobinfo_cache.errors import DashboardAuthError

__all__ = ["ApiServer", "ServerSettings", "loads_no_status"]

_OWN_HEADERS = {"user-agent", "accept", "content-type", "authorization"}  # set for each request


class ServerSettings(NamedTuple):
    """Equal as long as the API client's settings, and the files that they name, are the same."""

    verify: bool | ssl.SSLContext
    headers: tuple[tuple[str, str], ...]
    proxy: str | None


class ApiServer:
    """The API server, as the official `ApiClient` reaches it.

    The files of the TLS settings are read in the caller's thread, anew when they have changed.
    While they cannot be used, because they are being replaced for example, what was read before
    stays; raises `OSError` when there is nothing from before. Safe from any thread, without a
    lock.
    """

    def __init__(self, api_client: Any) -> None:
        self._api_client = api_client
        self._tls: tuple[object, bool | ssl.SSLContext] | None = None  # replaced as a whole

    @property
    def url(self) -> str:
        return str(self._api_client.configuration.host).rstrip("/")

    def settings(self) -> ServerSettings:
        """What a client of it is made of, beside its address."""
        headers = tuple(
            (name, value)
            for name, value in self._default_headers()
            if name.lower() not in _OWN_HEADERS
        )
        return ServerSettings(self._tls_now(), headers, self._proxy())

    def sent_headers(self, settings: ServerSettings) -> dict[str, Header]:
        """The headers, with the API client's own Authorization if it has one, asked for each time.

        Not as a token: that would go on to the dashboard in the second header.
        """
        sent: dict[str, Header] = dict(settings.headers)
        if self._api_client.configuration.api_key or self._default_authorization():
            sent["Authorization"] = self._authorization
        return sent

    def _tls_now(self) -> bool | ssl.SSLContext:
        configuration = self._api_client.configuration
        held = self._tls
        try:
            stamp = _tls_stamp(configuration)
            if held is None or held[0] != stamp:
                held = self._tls = (stamp, _tls_context(configuration))
        except OSError:
            if held is None:
                raise
        return held[1]

    def _proxy(self) -> str | None:
        from kubernetes.client import rest

        configuration = self._api_client.configuration
        exceptions = getattr(configuration, "no_proxy", None) or ""
        if not configuration.proxy or rest.should_bypass_proxies(configuration.host, exceptions):
            return None
        return str(configuration.proxy)

    def _authorization(self) -> str:
        """The API client's own Authorization, refreshed by its hook; may block as that does."""
        for setting in self._api_client.configuration.auth_settings().values():
            if setting["in"] == "header" and setting["value"]:
                return str(setting["value"])
        default = self._default_authorization()
        if default is None:
            raise DashboardAuthError("the API client has no credentials any more")
        return default

    def _default_authorization(self) -> str | None:
        named = (text for name, text in self._default_headers() if name.lower() == "authorization")
        return next(named, None)

    def _default_headers(self) -> list[tuple[str, str]]:
        return list(getattr(self._api_client, "default_headers", {}).items())


class _NamedContext(ssl.SSLContext):
    """Asks for, and checks, another server name than the URL's."""

    server_name: str | None = None

    def wrap_socket(self, *args: Any, **kwargs: Any) -> ssl.SSLSocket:
        if self.server_name:
            kwargs["server_hostname"] = self.server_name
        return super().wrap_socket(*args, **kwargs)


def _tls_stamp(configuration: Any) -> tuple[Any, ...]:
    """Equal as long as the TLS settings and the files that they name are the same."""
    names = ("ssl_ca_cert", "cert_file", "key_file")
    files = [getattr(configuration, name, None) for name in names]
    stamps = tuple((path, Path(path).stat().st_mtime_ns) for path in files if path)
    others = ("verify_ssl", "ca_cert_data", "assert_hostname", "tls_server_name")
    return (*stamps, *(getattr(configuration, name, None) for name in others))


def _tls_context(configuration: Any) -> bool | ssl.SSLContext:
    if not str(configuration.host).startswith("https:"):
        return True
    context = _NamedContext(ssl.PROTOCOL_TLS_CLIENT)
    # `assert_hostname` is False, or a name to check instead of the URL's.
    named = getattr(configuration, "tls_server_name", None) or configuration.assert_hostname
    context.server_name = named or None
    authorities = getattr(configuration, "ca_cert_data", None)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif configuration.ssl_ca_cert or authorities:
        context.load_verify_locations(configuration.ssl_ca_cert or None, cadata=authorities or None)
    else:
        context.load_default_certs()
    if configuration.assert_hostname is False:
        context.check_hostname = False
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file or None)
    return context


def loads_no_status(content: bytes) -> Any:
    """JSON, unless it is the API server's own word instead of a dashboard's: `ValueError`."""
    value = json.loads(content)
    if isinstance(value, dict) and value.get("kind") == "Status" and "apiVersion" in value:
        raise ValueError("a Status of the API server")
    return value
