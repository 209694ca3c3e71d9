"""The token of a dashboard and the headers that carry it; neither is ever shown."""

from __future__ import annotations

import base64
import re
import stat
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from jobinfo_cache.answers import without
from jobinfo_cache.errors import DashboardAuthError, DashboardError
from jobinfo_cache.instrumentation import get_logger

__all__ = ["Credentials", "Header", "SentHeaders", "Token"]

Token = str | Callable[[], str] | Path
Header = str | Callable[[], str]

_MAX_TOKEN_BYTES = 65_536
_REMEMBERED = 16  # tokens to hide; so many rotations outlast any answer
_READABLE_BY_OTHERS = stat.S_IRGRP | stat.S_IROTH
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SECRET_NAME = re.compile("auth|cookie|token|key|secret|pass|credential", re.IGNORECASE)

_log = get_logger(__name__)


class SentHeaders(NamedTuple):
    """The headers of a request, and the token that is in them."""

    headers: Mapping[str, str]
    token: str | None


class Credentials:
    """The headers that a client adds to each request. Safe from any thread.

    A `token` that is a callable is asked before the first request, one that is a `Path` is read
    then; both again when the dashboard refuses the token. A header's value that is a callable is
    asked for each request. That may block as long as the callable or the file system does, and a
    `DashboardError` that a callable raises is raised as it is. Raises `ValueError` or
    `TypeError`, naming what is wrong and not showing it, for a string or for headers that cannot
    be sent.
    """

    def __init__(self, token: Token | None, headers: Mapping[str, Header] | None) -> None:
        self.headers = _checked_headers(headers or {})
        self.source = _checked_source(token)
        self._fixed = {name: text for name, text in self.headers.items() if isinstance(text, str)}
        self._asked = {name: ask for name, ask in self.headers.items() if not isinstance(ask, str)}
        self._said_loose = False
        # Replaced as a whole, so that no lock is needed:
        self._sent: SentHeaders | None = None
        # Changed by single steps that no thread gets in between:
        self._tokens: deque[str] = deque(maxlen=_REMEMBERED)
        self._secrets = set(_secrets_in(self._fixed))

    def current(self) -> SentHeaders:
        """The headers to send now; raises `DashboardAuthError` when there is no usable token."""
        return self._complete(self._sent or self._read())

    def after_refusal(self, refused: SentHeaders) -> SentHeaders | None:
        """Read the token again; the headers with it, or None when they are the refused ones."""
        if not self._asked and (refused.token is None or isinstance(self.source, str)):
            return None
        sent = self._complete(self._read())
        return None if sent.headers == refused.headers else sent

    def redact(self, text: str) -> str:
        """The text without any secret of this client, and without its last 16 tokens."""
        return without(text, [*self._secrets.copy(), *self._tokens.copy()])

    def hide(self, secrets: Iterable[str]) -> None:
        """Have `redact` take these for secrets too."""
        self._secrets.update(secrets)

    def _read(self) -> SentHeaders:
        token = self._token()
        headers = dict(self._fixed)
        if token is not None:
            bearer = f"Bearer {token}"
            if not any(name.lower() == "authorization" for name in self.headers):
                headers["Authorization"] = bearer
            headers["X-Ray-Authorization"] = bearer
            self._remember(token)
        self._sent = SentHeaders(headers, token)
        return self._sent

    def _complete(self, sent: SentHeaders) -> SentHeaders:
        """With the headers whose values are asked for."""
        if not self._asked:
            return sent
        asked = {}
        for name, ask in self._asked.items():
            origin = f"the callable of header {name}"
            asked[name] = _from_callable(ask, origin).strip()
            if not _is_header_value(asked[name]) or not asked[name]:
                raise DashboardAuthError(f"{origin} gave what no header can carry")
            self._remember(asked[name].split()[-1])
        return SentHeaders({**sent.headers, **asked}, sent.token)

    def _remember(self, token: str) -> None:
        if token not in self._tokens.copy():
            self._tokens.append(token)

    def _token(self) -> str | None:
        if self.source is None or isinstance(self.source, str):
            return self.source
        if isinstance(self.source, Path):
            origin, token = f"the token file {self.source}", self._from_file(self.source)
        else:
            origin = "the token callable"
            token = _from_callable(self.source, origin)
        if fault := _fault(token):
            raise DashboardAuthError(f"{origin} gave a token that {fault}")
        return token.strip()

    def _from_file(self, path: Path) -> str:
        try:
            with path.open("rb") as file:
                self._check_mode(path, stat.S_IMODE(path.stat().st_mode))
                content = file.read(_MAX_TOKEN_BYTES)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise DashboardAuthError(f"the token file {path} cannot be read: {reason}") from error
        # Latin-1 reads any byte; a token that is not ASCII is told by `_fault`.
        return content.decode("latin-1")

    def _check_mode(self, path: Path, mode: int) -> None:
        if mode & _READABLE_BY_OTHERS and not self._said_loose:
            self._said_loose = True
            _log.warning("the token file can be read by others", path=str(path), mode=f"{mode:04o}")


def _from_callable(source: Callable[[], str], origin: str) -> str:
    try:
        token = source()
    except DashboardError:
        raise  # it says by itself what is wrong
    except Exception as error:
        raise DashboardAuthError(f"{origin} raised {type(error).__name__}") from error
    if not isinstance(token, str):
        raise DashboardAuthError(f"{origin} returned {type(token).__name__}; it must return a str")
    return token


def _checked_source(token: Token | None) -> Token | None:
    if token is None or isinstance(token, Path):
        return token
    if isinstance(token, str):
        if fault := _fault(token):
            raise ValueError(f"token {fault} (it is not shown)")
        return token.strip()
    if not callable(token):
        raise TypeError(
            f"token is a {type(token).__name__}; it must be a str, a callable or a pathlib.Path"
        )
    return token


def _fault(token: str) -> str | None:
    """What keeps the text from being a token in a header, or None."""
    token = token.strip()
    if not token:
        return "is empty"
    if not _is_header_value(token) or not token.isascii():
        return "holds line breaks, control characters or letters that no header can carry"
    return None


def _is_header_value(text: str) -> bool:
    return all(" " <= char <= "~" or "\xa0" <= char <= "\xff" or char == "\t" for char in text)


def _checked_headers(headers: Mapping[str, Header]) -> dict[str, Header]:
    checked: dict[str, Header] = {}
    for name, value in headers.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(f"headers holds the name {name!r}; it must be an HTTP header's name")
        if callable(value):
            checked[name] = value
            continue
        if not isinstance(value, str):
            raise TypeError(
                f"header {name} is a {type(value).__name__}; it must be a str or a callable"
            )
        if not _is_header_value(value):
            shown = "(not shown)" if _SECRET_NAME.search(name) else repr(value)
            raise ValueError(
                f"header {name} is {shown}; it must have no line breaks, no control characters "
                "and only Latin-1 letters"
            )
        checked[name] = value.strip()
    return checked


def _secrets_in(headers: Mapping[str, str]) -> list[str]:
    """The values of headers that look secret, their last words, and what "Basic …" stands for."""
    secrets = [value for name, value in headers.items() if _SECRET_NAME.search(name) and value]
    words = [value.split()[-1] for value in secrets if len(value.split()) > 1]
    return secrets + words + [text for word in words for text in _user_and_password(word)]


def _user_and_password(word: str) -> list[str]:
    """The "user:password" that the base64 holds, and the password alone; none if it is other."""
    try:
        pair = base64.b64decode(word, validate=True).decode()
    except ValueError:
        return []
    _, colon, password = pair.partition(":")
    return [pair, password] if colon and password else []
