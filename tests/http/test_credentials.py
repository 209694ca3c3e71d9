"""Tokens: where they come from, when they are read again, and that nobody ever sees them."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobinfo_cache.credentials import Credentials
from jobinfo_cache.dashboard import DashboardClient
from jobinfo_cache.errors import DashboardAuthError, DashboardError
from jobinfo_cache.testing import FaultServer
from jobinfo_cache.testing.peer import BODY, Peer, Script

SECRET = "t0k3n-that-nobody-sees"


def guarded(tokens: list[str]) -> Script:
    """A dashboard that takes the tokens in the list, and echoes what it got to the others."""

    def script(peer: Peer) -> None:
        while request := peer.request():
            sent = request.headers.get("authorization", "")
            if sent in [f"Bearer {token}" for token in tokens]:
                peer.answer(BODY)
            else:
                body = f"Forbidden: Invalid authentication token {sent!r}".encode("latin-1")
                peer.answer(body, "403 Forbidden", "Content-Type: text/plain")

    return script


def test_a_token_goes_out_in_both_headers() -> None:
    """The second one is for proxies that eat the first."""
    with (
        FaultServer(guarded([SECRET])) as server,
        DashboardClient(server.url, token=f" {SECRET}\n") as client,
    ):
        client.get_job_info("x")
        headers = server.requests[0].headers
        assert headers["authorization"] == f"Bearer {SECRET}"
        assert headers["x-ray-authorization"] == f"Bearer {SECRET}"


@pytest.mark.parametrize("name", ["Authorization", "authorization"])
def test_an_authorization_of_the_user_stays(name: str) -> None:
    """The token then goes in the second header only."""
    headers = {name: "Basic dXNlcjpwYXNz", "X-Team": "blue"}
    sent = Credentials(SECRET, headers).current().headers
    assert sent == {**headers, "X-Ray-Authorization": f"Bearer {SECRET}"}


def test_without_a_token_nothing_is_added() -> None:
    """No header says "Bearer None"."""
    assert Credentials(None, None).current().headers == {}


@pytest.mark.parametrize("token", ["", " \n", "a\nb", "a\rb", "a\x00b", "ü", "a\x7f", "日本"])
def test_a_string_that_cannot_be_a_token_is_a_value_error(token: str) -> None:
    """At once, and without showing it."""
    with pytest.raises(ValueError, match="token") as caught:
        DashboardClient("http://h", token=token)
    assert not token.strip() or repr(token)[1:-1] not in str(caught.value)


def test_a_token_of_another_type_is_a_type_error() -> None:
    """Bytes, for one; nothing of them is shown."""
    with pytest.raises(TypeError, match="token is a bytes") as caught:
        DashboardClient("http://h", token=b"abcdef")  # type: ignore[arg-type]
    assert "abcdef" not in str(caught.value)


@pytest.mark.parametrize("token", ["", "a\nb", "ü"])
def test_a_source_that_gives_no_token_is_an_auth_error(token: str, tmp_path: Path) -> None:
    """From a callable or a file it may be right the next time."""
    file = tmp_path / "token"
    file.write_text(token, encoding="utf-8")
    for source in (file, lambda: token):
        with pytest.raises(DashboardAuthError) as caught:
            DashboardClient("http://127.0.0.1:1", token=source).list_jobs()
        assert str(caught.value).startswith("GET http://127.0.0.1:1/api/jobs/: the token ")
        assert caught.value.url == "http://127.0.0.1:1/api/jobs/"


def raises_key_error() -> str:
    raise KeyError(SECRET)


@pytest.mark.parametrize("source", [raises_key_error, lambda: None, Path("/nowhere/token")])
def test_a_source_that_fails_is_an_auth_error(source: Any) -> None:
    """A callable that raises or returns no text, a file that is not there."""
    with pytest.raises(DashboardAuthError):
        DashboardClient("http://127.0.0.1:1", token=source).list_jobs()


class Rotating:
    """A token source, as a callable or as a file, and the means to turn it."""

    def __init__(self, kind: str, directory: Path) -> None:
        self._file = directory / "token"
        self._file.touch(mode=0o600)
        self.reads = 0
        self.turn("T1-the-first-token")
        self.source: Any = self._file if kind == "file" else self._call

    def turn(self, token: str) -> None:
        self.token = token
        self._file.write_text(f"{token}\n")

    def _call(self) -> str:
        self.reads += 1
        return self.token


@pytest.mark.parametrize("kind", ["callable", "file"])
def test_a_rotated_token_works_without_a_restart(kind: str, tmp_path: Path) -> None:
    """After a 403 the source is read again and the request is sent once more."""
    rotating = Rotating(kind, tmp_path)
    taken = [rotating.token]
    with (
        FaultServer(guarded(taken)) as server,
        DashboardClient(server.url, token=rotating.source) as client,
    ):
        client.get_job_info("x")
        taken[0] = "T2-the-second-token"
        with pytest.raises(DashboardAuthError):
            client.get_job_info("x")
        assert len(server.requests) == 2, "the same token is not tried again"
        rotating.turn("T2-the-second-token")
        assert client.get_job_info("x").status == "RUNNING"
        assert client.get_job_info("x").status == "RUNNING"
        assert len(server.requests) == 5


def test_a_callable_is_asked_once_for_many_requests(tmp_path: Path) -> None:
    """Before the first request, and after that only when the dashboard refuses."""
    rotating = Rotating("callable", tmp_path)
    with (
        FaultServer(guarded([rotating.token])) as server,
        DashboardClient(server.url, token=rotating.source) as client,
    ):
        assert rotating.reads == 0
        for _ in range(3):
            client.get_job_info("x")
        assert rotating.reads == 1


def test_a_request_refused_with_an_old_token_takes_the_one_that_is_there_by_now() -> None:
    """Two threads refused at once: the second to read the source still sends its request again."""
    tokens = iter(["old", "new", "new"])
    credentials = Credentials(lambda: next(tokens), None)
    first = credentials.current()
    renewed = credentials.after_refusal(first)
    assert renewed is not None
    assert renewed.token == "new"
    assert credentials.after_refusal(first) == renewed
    assert credentials.current() == renewed


def test_only_the_last_tokens_are_remembered() -> None:
    """A token that is rotated for years takes no memory, and the recent ones are hidden."""
    tokens = iter([f"token-{number:04}-of-many" for number in range(1000)])
    credentials = Credentials(lambda: next(tokens), None)
    sent = credentials.current()
    for _ in range(999):
        sent = credentials.after_refusal(sent) or sent
    assert credentials.redact("token-0999-of-many, token-0984-of-many") == "[secret], [secret]"
    assert len(credentials._tokens) == 16


def test_a_wrong_string_is_tried_once_only() -> None:
    """It cannot change, so there is no storm of retries."""
    with FaultServer(guarded([])) as server, DashboardClient(server.url, token="no") as client:
        with pytest.raises(DashboardAuthError):
            client.get_job_info("x")
        assert len(server.requests) == 1


def everything_said(error: BaseException, caplog: pytest.LogCaptureFixture) -> str:
    lines = traceback.format_exception(error)
    chain: BaseException | None = error
    while chain is not None:
        lines.append(repr(chain))
        chain = chain.__cause__ or chain.__context__
    return "".join(lines) + caplog.text + repr([vars(each) for each in caplog.records])


def echoes(answer: Callable[[str], bytes]) -> Script:
    def script(peer: Peer) -> None:
        request = peer.request()
        assert request is not None
        token = request.headers["x-ray-authorization"].removeprefix("Bearer ")
        peer.send(answer(token))

    return script


ECHOES: dict[str, Callable[[str], bytes]] = {
    "body": lambda token: f"HTTP/1.1 500 X\r\n\r\nyou said {token}".encode(),
    "body in pieces": lambda token: f"HTTP/1.1 500 X\r\n\r\n{chr(0).join(token)}".encode(),
    "200": lambda token: f"HTTP/1.1 200 OK\r\n\r\n{token}".encode(),
    "content type": lambda token: f"HTTP/1.1 404 X\r\nContent-Type: {token}\r\n\r\n".encode(),
    "status line": lambda token: f"HTTP/1.1 {token}\r\n\r\n".encode(),
    "protocol": lambda token: f"{token}\r\n\r\n".encode(),
    "broken header": lambda token: f"HTTP/1.1 200 OK\r\n{token}\r\nA: b\r\n\r\n".encode(),
    "chunk size": lambda token: (
        f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{token}\r\n".encode()
    ),
    "encoding": lambda token: f"HTTP/1.1 200 OK\r\nContent-Encoding: {token}\r\n\r\n".encode(),
    "length": lambda token: f"HTTP/1.1 200 OK\r\nContent-Length: {token}\r\n\r\n".encode(),
    "location": lambda token: f"HTTP/1.1 302 X\r\nLocation: http://{token}/\r\n\r\n".encode(),
    "retry": lambda token: f"HTTP/1.1 503 X\r\nRetry-After: {token}\r\n\r\n".encode(),
    "cookie": lambda token: f"HTTP/1.1 200 X\r\nSet-Cookie: a={token}\r\n\r\n".encode(),
}


@pytest.mark.parametrize("echo", ECHOES)
def test_a_token_that_the_dashboard_echoes_is_not_shown(
    echo: str, caplog: pytest.LogCaptureFixture
) -> None:
    """In no message, traceback or log record, at any level and from any library."""
    caplog.set_level(logging.DEBUG)
    with FaultServer(echoes(ECHOES[echo])) as server:
        client = DashboardClient(server.url, token=SECRET)
        with client, pytest.raises(DashboardError) as caught:
            client.get_job_info("x")
        assert SECRET not in everything_said(caught.value, caplog)
        assert SECRET not in repr(client) + str(client)


@pytest.mark.parametrize("name", ["Authorization", "Cookie", "X-Api-Key"])
def test_a_secret_header_that_the_dashboard_echoes_is_not_shown(name: str) -> None:
    """The value, and its part behind "Basic" too."""

    def script(peer: Peer) -> None:
        peer.request()
        peer.answer(b"got dXNlcjpwYXNz", "400 Bad Request")

    with FaultServer(script) as server:
        client = DashboardClient(server.url, headers={name: "Basic dXNlcjpwYXNz"})
        with client, pytest.raises(DashboardError, match=r"got \[secret\]"):
            client.get_job_info("x")


def test_a_token_file_that_others_can_read_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One WARNING with the path and the mode, not the token."""
    file = tmp_path / "token"
    file.write_text("a-token-in-a-file")
    file.chmod(0o644)
    credentials = Credentials(file, None)
    credentials.after_refusal(credentials.current())
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.name == "jobinfo_cache.credentials"
    assert str(file) in record.getMessage()
    assert "0644" in record.getMessage()
    assert "a-token" not in caplog.text


def test_a_token_file_of_the_user_alone_is_not_mentioned(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """There is nothing to say."""
    file = tmp_path / "token"
    file.touch(mode=0o600)
    file.write_text("a-token-in-a-file")
    assert Credentials(file, None).current().token == "a-token-in-a-file"
    assert caplog.records == []


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"Authorization": "Basic abc\nX: y"}, "header Authorization is (not shown)"),
        ({"X-Team": "blue\r\nX: y"}, r"header X-Team is 'blue\r\nX: y'"),
        ({"X-Team": "日本"}, "header X-Team is '日本'"),
        ({"X Team": "blue"}, "'X Team'"),
        ({"": "blue"}, "''"),
    ],
)
def test_headers_that_cannot_be_sent_are_a_value_error(headers: dict[str, str], words: str) -> None:
    """At once, named, and a secret one without its value."""
    with pytest.raises(ValueError, match="header") as caught:
        DashboardClient("http://h", headers=headers)
    assert words in str(caught.value)
    assert "abc" not in str(caught.value)


def test_a_header_that_is_no_text_is_a_type_error() -> None:
    """Named, with its type."""
    with pytest.raises(TypeError, match="header X-Team is a int"):
        DashboardClient("http://h", headers={"X-Team": 1})  # type: ignore[dict-item]
