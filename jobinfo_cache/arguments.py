"""Checks of what users hand to the dashboard client, before anything is sent.

Errors name the argument, its value where that is no secret, and what would be right.
"""

from __future__ import annotations

import json
import math
import re
import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, urlsplit

__all__ = [
    "checked_config",
    "checked_job",
    "checked_proxies",
    "checked_size",
    "checked_timeout",
    "checked_url",
    "checked_verify",
    "is_http_url",
    "texts_in",
]

_FORM = "http(s)://host[:port][/prefix]"
_HOST = re.compile(r"[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\]")
_ZONE = re.compile(r"\w+://[^/?#]*\[[^]/?#]*%")
_PATH = re.compile(r"([/A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})*")


def checked_url(url: str) -> str:
    """The URL of a dashboard, without a trailing slash."""
    if not isinstance(url, str):
        raise TypeError(f"url is a {type(url).__name__}; it must be a str like {_FORM}")
    parts = _split(url)
    if parts is not None and "@" in parts.netloc:
        raise ValueError(
            f"url {_harmless(url)!r} holds a user or a password; use headers for credentials"
        )
    if parts is None and _ZONE.match(url):  # which no request could be sent to
        raise ValueError(
            f"url {_harmless(url)!r} holds an IPv6 zone; use a host name, or an address without one"
        )
    if parts is None or parts.query or parts.fragment or url.endswith(("?", "#")):
        raise ValueError(f"url is {_harmless(url)!r}; it must be {_FORM}")
    if not _PATH.fullmatch(parts.path) or {".", ".."} & set(parts.path.split("/")):
        raise ValueError(f"url is {_harmless(url)!r}; its prefix must be a plain path")
    return f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/")


def checked_timeout(timeout: float) -> float:
    """A number of seconds to wait for an answer."""
    if not isinstance(timeout, (int, float)) or isinstance(timeout, bool):
        raise TypeError(f"timeout is {timeout!r}; it must be a number of seconds")
    if not 0 < timeout < math.inf:
        raise ValueError(f"timeout is {timeout!r}; it must be above 0 and finite, in seconds")
    return float(timeout)


def checked_verify(verify: bool | str | ssl.SSLContext) -> bool | str | ssl.SSLContext:
    """Whether, or with which CA bundle, certificates are verified."""
    if not isinstance(verify, (bool, str, ssl.SSLContext)) or verify == "":
        raise TypeError(
            f"verify is {verify!r};"
            " it must be True, False, the path of a CA bundle or an SSLContext"
        )
    return verify


def checked_proxies(proxies: Mapping[str, str] | None) -> dict[str, str] | None:
    """Proxies by scheme, or None for the environment's."""
    if proxies is None:
        return None
    if not isinstance(proxies, Mapping):
        raise TypeError(f"proxies is a {type(proxies).__name__}; it must be a mapping or None")
    for scheme, proxy in proxies.items():
        if not isinstance(proxy, str) or not is_http_url(proxy):
            raise ValueError(
                f"proxies[{scheme!r}] is no URL of an http or https proxy (it is not shown)"
            )
    return dict(proxies)


def checked_size(max_response_bytes: int) -> int:
    """A number of bytes."""
    number = max_response_bytes
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise ValueError(f"max_response_bytes is {number!r}; it must be a whole number above 0")
    return number


def checked_config(config: Mapping[str, Any]) -> bytes:
    """A Ray Serve config as JSON."""
    return _json("config", dict(_mapping("config", config)))


def checked_job(
    *,
    entrypoint: str,
    submission_id: str | None,
    runtime_env: Mapping[str, Any] | None,
    metadata: Mapping[str, str] | None,
    entrypoint_resources: Mapping[str, float] | None,
    **numbers: float | None,
) -> bytes:
    """The arguments of `submit_job` as JSON, those left out that are None; the id is checked."""
    job: dict[str, Any] = {"entrypoint": _command(entrypoint)}
    if submission_id is not None:
        job["submission_id"] = submission_id
    if runtime_env is not None:
        job["runtime_env"] = dict(_mapping("runtime_env", runtime_env))
        _json("runtime_env", job["runtime_env"])
    if metadata is not None:
        job["metadata"] = _texts("metadata", metadata)
    if entrypoint_resources is not None:
        job["entrypoint_resources"] = {
            name: _amount(f"entrypoint_resources[{name!r}]", amount)
            for name, amount in _mapping("entrypoint_resources", entrypoint_resources).items()
        }
    for name, amount in numbers.items():
        if amount is not None:
            job[name] = _amount(name, amount)
    return _json("the job", job)


def is_http_url(url: str) -> bool:
    """True for an http or https URL with a host, and a port that is possible if it has one."""
    return _split(url) is not None


def texts_in(value: Any) -> list[str]:
    """All texts in a JSON-able value that are long enough to be secrets, keys aside."""
    if isinstance(value, str):
        return [value] if len(value) > 2 else []
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [text for each in value for text in texts_in(each)]
    return []


def _split(url: str) -> SplitResult | None:
    """The parts of an http(s) URL with a host and a possible port; None for anything else."""
    if not url.isprintable() or " " in url:  # which `urlsplit` drops in part
        return None
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    host = parts.netloc.rpartition("@")[2]
    if port is not None:
        host = host[: host.rindex(":")]
    if parts.scheme not in ("http", "https") or port == 0 or not _HOST.fullmatch(host):
        return None
    return parts


def _harmless(url: str) -> str:
    """The URL without what may be secret in it."""
    if "@" in url:
        scheme, colon, _ = url.rpartition("@")[0].partition("://")
        url = (scheme + colon if colon else "") + "…@" + url.rpartition("@")[2]
    return url.partition("?")[0]


def _command(entrypoint: str) -> str:
    if not isinstance(entrypoint, str):
        raise TypeError(f"entrypoint is a {type(entrypoint).__name__}; it must be a str")
    if not entrypoint.strip():
        raise ValueError(f"entrypoint is {entrypoint!r}; it must be a command")
    return entrypoint


def _mapping(name: str, value: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} is a {type(value).__name__}; it must be a mapping")
    for key in value:
        if not isinstance(key, str):
            raise TypeError(f"{name} has the key {key!r}; keys must be str")
    return value


def _texts(name: str, value: Mapping[str, str]) -> dict[str, str]:
    for key, text in _mapping(name, value).items():
        if not isinstance(text, str):
            raise TypeError(f"{name}[{key!r}] is a {type(text).__name__}; it must be a str")
    return dict(value)


def _amount(name: str, value: float) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}; it must be a number")
    if not 0 <= value < math.inf:
        raise ValueError(f"{name} is {value!r}; it must be 0 or more, and finite")
    if name == "entrypoint_memory" and value != int(value):
        raise ValueError(f"{name} is {value!r}; it must be a whole number of bytes")
    return value


def _json(name: str, value: Any) -> bytes:
    try:
        return json.dumps(value, allow_nan=False).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        fault = type(error)
        words = str(error) if isinstance(error, TypeError) else "it holds nan, inf or itself"
    # Outside the handler: the error may hold the values, which may be secret.
    raise (TypeError if fault is TypeError else ValueError)(
        f"{name} cannot be written as JSON: {words}"
    )
