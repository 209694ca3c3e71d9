"""Tokens, passwords and runtime environments show up nowhere, whatever goes wrong."""

from __future__ import annotations

import base64
import contextlib
import html
import json
import logging
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from jobinfo_cache import Cluster, DashboardClient, JobChange, JobInfoCache, Settings
from jobinfo_cache.cli import main
from jobinfo_cache.credentials import Token
from jobinfo_cache.errors import DashboardError, JobInfoCacheError
from jobinfo_cache.testing import FaultServer, SimulatedDashboard, settle
from jobinfo_cache.testing.peer import Peer, Script, forwarding
from tests.http.kinds import KINDS

FIRST, SECOND = "t0k3n/that+nobody-s33s==", "an0ther<t0k3n>&that-nobody-s33s"
PASSWORD = "pa55w0rd-of-the-proxy"
VALUE = "value-of-an-env-var"
ENVIRONMENT = {"env_vars": {"DB": VALUE}, "pip": [f"https://me:{VALUE}@pypi.invalid"]}
SECRETS = (FIRST, SECOND, PASSWORD, VALUE)

FAULTS = (
    "refuse",
    "reset-before-headers",
    "reset-after-headers",
    "truncate",
    "short-length",
    "html",
    "login-redirect",
    "401",
    "403",
    "404",
    "429",
    "503",
    "close",
)


def rotated() -> Callable[[], str]:
    tokens = iter([FIRST, SECOND])
    return lambda: next(tokens, SECOND)


def token_from(kind: str, directory: Path) -> Token:
    file = directory / "token"
    file.touch(mode=0o644 if kind == "loose file" else 0o600)
    file.write_text(f"{FIRST}\n")
    sources: dict[str, Token] = {
        "string": FIRST,
        "trailing newline": f"{FIRST}\r\n",
        "callable": lambda: FIRST,
        "rotated": rotated(),
    }
    return sources.get(kind, file)


SOURCES = ("string", "trailing newline", "callable", "rotated", "file", "loose file")


class Witness:
    """Gathers all that is said and shown."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        self._caplog = caplog
        self._words: list[str] = []

    def hears(self, *shown: object) -> None:
        """Note what each looks like."""
        self._words += [f"{each} {each!r}" for each in shown]

    def catches(self, error: BaseException) -> None:
        """Note the traceback as Python prints it, and all that hangs on the exceptions in it."""
        self._words += traceback.format_exception(error)
        while error is not None:
            self.hears(error, error.args, vars(error))
            error = error.__cause__ or error.__context__  # type: ignore[assignment]

    def changed(self, change: JobChange) -> None:
        """An `on_change`."""
        self.hears(change)
        if change.error is not None:
            self.catches(change.error)

    @property
    def everything(self) -> str:
        records = [f"{vars(record)} {record.getMessage()}" for record in self._caplog.records]
        return "\n".join([*self._words, self._caplog.text, *records])

    def knows(self, *secrets: str) -> list[str]:
        """Which of the secrets it has come across, in any writing that can be read back."""
        everything = self.everything
        assert everything.strip()
        return [
            secret
            for secret in secrets
            if any(
                written in everything
                for written in (
                    secret,
                    json.dumps(secret)[1:-1],
                    html.escape(secret),
                    quote(secret, safe=""),
                    base64.b64encode(secret.encode()).decode().rstrip("="),
                )
            )
        ]


@pytest.fixture
def witness(caplog: pytest.LogCaptureFixture) -> Witness:
    return Witness(caplog)


def ask_everything(client: Any, witness: Witness) -> None:
    """Make each kind of request, with a runtime environment where there can be one."""
    for ask in (*KINDS.values(), submit_with_environment):
        try:
            witness.hears(ask(client))
        except JobInfoCacheError as error:
            witness.catches(error)


def submit_with_environment(client: DashboardClient) -> str:
    return client.submit_job("true", runtime_env=ENVIRONMENT)


@pytest.fixture
def dashboard() -> Iterator[SimulatedDashboard]:
    """A dashboard with a job that has a runtime environment, and that wants a token."""
    with SimulatedDashboard(token=FIRST) as dashboard:
        dashboard.add_job("x", status="RUNNING", runtime_env=ENVIRONMENT)
        yield dashboard


@pytest.mark.parametrize("source", SOURCES)
def test_no_fault_brings_a_secret_to_light(
    dashboard: SimulatedDashboard, witness: Witness, tmp_path: Path, source: str
) -> None:
    """From the plain client and from the cached one: not in errors, tracebacks, logs or stats."""
    token = token_from(source, tmp_path)
    with (
        FaultServer(forwarding(dashboard.url)) as server,
        DashboardClient(server.url, token=token, proxies={}) as client,
        JobInfoCache(Settings(poll_interval=0.05), on_change=witness.changed) as cache,
    ):
        cached = cache.client(client, Cluster("ns", "one", "uid-1"))
        witness.hears(client, cached, cache)
        for fault in FAULTS:
            server.fault(fault)
            ask_everything(client, witness)
            ask_everything(cached, witness)
            settle_reads(cache, cached, witness)
            server.fault(None)
            ask_everything(client, witness)
            settle_reads(cache, cached, witness)
        dashboard.set_token(SECOND)
        ask_everything(client, witness)
        witness.hears(cache.stats())
    assert witness.knows(*SECRETS) == []


def settle_reads(cache: JobInfoCache, cached: Any, witness: Witness) -> None:
    """Read, wait for the poll, and read what it brought."""
    for _ in range(2):
        with contextlib.suppress(JobInfoCacheError):
            cached.get_job_info("x", max_age=0.001)
        witness.hears(cached.lookup("x"), cached.peek("x"))
        settle(cache)


def echoing(status: str, write: Callable[[str], str]) -> Script:
    """A server that says what it was sent, headers and body."""

    def script(peer: Peer) -> None:
        while received := peer.request():
            said = [write(value.removeprefix("Bearer ")) for value in received.headers.values()]
            text = "\n".join([*said, write(received.body.decode())])
            peer.answer(text.encode(), status, "Content-Type: text/html")

    return script


WRITINGS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "as JSON": lambda text: json.dumps(text)[1:-1],
    "as HTML": html.escape,
    "in a URL": lambda text: quote(text, safe=""),
    "in pieces": "\x00".join,
}


@pytest.mark.parametrize("writing", WRITINGS)
@pytest.mark.parametrize("status", ["200 OK", "302 Found", "400 X", "401 X", "403 X", "500 X"])
def test_a_server_that_echoes_what_it_got_brings_no_secret_to_light(
    witness: Witness, status: str, writing: str
) -> None:
    """However it writes it: a proxy's debug page, a traceback of the dashboard."""
    with (
        FaultServer(echoing(status, WRITINGS[writing])) as server,
        DashboardClient(server.url, token=rotated(), proxies={}) as client,
    ):
        ask_everything(client, witness)
    assert witness.knows(FIRST, SECOND, VALUE) == []


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("way", ["argument", "environment"])
def test_a_proxy_that_echoes_its_password_does_not_bring_it_to_light(
    witness: Witness, monkeypatch: pytest.MonkeyPatch, way: str, scheme: str
) -> None:
    """Neither as in the URL nor as in the header."""

    def script(peer: Peer) -> None:
        while received := peer.request():
            sent = received.headers.get("proxy-authorization", "Basic x")
            said = f"{sent} is {base64.b64decode(sent.split()[1] + '==')!r}"
            peer.answer(said.encode(), f"407 {PASSWORD}", f"X-Said: {sent}")

    with FaultServer(script) as proxy:
        url = proxy.url.replace("//", f"//me:{PASSWORD}@")
        for name in ("NO_PROXY", "no_proxy", "http_proxy", "https_proxy"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv(f"{scheme.upper()}_PROXY", url)
        proxies = {scheme: url} if way == "argument" else None
        with DashboardClient(f"{scheme}://ray.invalid", proxies=proxies) as client:
            witness.hears(client)
            ask_everything(client, witness)
            assert proxy.requests
    assert witness.knows(PASSWORD, f"me:{PASSWORD}") == []


@pytest.mark.parametrize(
    "url",
    [
        f"http://me:{PASSWORD}@127.0.0.1",
        f"http://me:{PASSWORD}@127.0.0.1:99999/a?b#c",
        f"ftp://me:{PASSWORD}@h",
        f"me:{PASSWORD}@h",
        f"http://me:{PASSWORD}@h@i",
        f"http://h/?token={PASSWORD}",
        f"http://me:{PASSWORD}@[::",
    ],
)
def test_a_password_in_a_url_is_refused_unseen(url: str, witness: Witness) -> None:
    """By the client, by the cache, and by the command line."""
    with JobInfoCache() as cache:
        for make in (DashboardClient, lambda url: cache.client(url, Cluster("ns", "one"))):
            with pytest.raises(ValueError, match="url") as caught:
                make(url)
            witness.catches(caught.value)
    assert witness.knows(PASSWORD) == []


@pytest.mark.parametrize("name", ["Authorization", "X-Api-Key", "Cookie"])
def test_a_secret_header_is_brought_to_light_by_nobody(name: str, witness: Witness) -> None:
    """As it is, and the password in it."""
    value = "Basic " + base64.b64encode(f"me:{PASSWORD}".encode()).decode()

    def script(peer: Peer) -> None:
        while received := peer.request():
            sent = received.headers[name.lower()]
            peer.answer(f"{sent}: wrong password {PASSWORD!r} of me".encode(), "500 X")

    with (
        FaultServer(script) as server,
        DashboardClient(server.url, headers={name: value}, proxies={}) as client,
    ):
        witness.hears(client)
        ask_everything(client, witness)
    assert witness.knows(PASSWORD, f"me:{PASSWORD}") == []


def test_a_record_with_a_runtime_env_is_not_shown(witness: Witness) -> None:
    """An answer that makes no sense is quoted, but not with the environment in it."""
    for body in (
        {"runtime_env": ENVIRONMENT, "job_id": "x"},
        {"status": "RUNNING", "submission_id": "y", "job_id": None, "runtime_env": ENVIRONMENT},
        [{"runtime_env": ENVIRONMENT}],
    ):
        for text in (json.dumps(body), json.dumps(body)[:-1], repr(body)):
            with (
                FaultServer(echo(text)) as server,
                DashboardClient(server.url, proxies={}) as client,
            ):
                ask_everything(client, witness)
    assert witness.knows(VALUE) == []


def echo(text: str) -> Script:
    def script(peer: Peer) -> None:
        while peer.request():
            peer.answer(text.encode(), "200 OK", "Content-Type: text/plain")

    return script


def test_the_runtime_env_is_where_it_was_asked_for(
    dashboard: SimulatedDashboard, witness: Witness
) -> None:
    """In the job's own attribute and its `to_dict`; `repr` and `str` leave it out."""
    with DashboardClient(dashboard.url, token=FIRST, proxies={}) as client:
        info = client.get_job_info("x")
        assert info.runtime_env == ENVIRONMENT
        assert info.to_dict()["runtime_env"] == ENVIRONMENT
        witness.hears(info, [info], {"job": info}, client.list_jobs())
    assert witness.knows(VALUE) == []


@pytest.mark.parametrize("token", [FIRST, "wrong" + FIRST, ""])
@pytest.mark.parametrize("output", ["text", "json"])
@pytest.mark.parametrize("way", ["file", "environment", "path"])
def test_the_command_line_shows_no_secret(
    dashboard: SimulatedDashboard,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    witness: Witness,
    tmp_path: Path,
    token: str,
    output: str,
    way: str,
) -> None:
    """Neither the token, wherever it came from, nor the environment of the jobs watched."""
    dashboard.set_status("x", "SUCCEEDED")
    file = tmp_path / "token"
    file.touch(mode=0o600)
    file.write_text(f"{token}\n")
    arguments = ["watch", "--url", dashboard.url, "-o", output, "--timeout", "20"]
    if way == "file":
        arguments += ["--token-file", str(file)]
    elif way == "environment":
        monkeypatch.setenv("RAY_AUTH_TOKEN", token)
    else:
        monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(file))
    with contextlib.suppress(SystemExit):
        main(arguments)
    said = capsys.readouterr()
    witness.hears(said.out, said.err)
    assert said.out + said.err
    assert witness.knows(FIRST, VALUE) == []


def test_a_wrong_token_is_no_storm(dashboard: SimulatedDashboard, witness: Witness) -> None:
    """Each poll sends the wrong token once, and the polls back off."""
    with (
        DashboardClient(dashboard.url, token=lambda: SECOND, proxies={}) as client,
        JobInfoCache(Settings(poll_interval=0.01, max_backoff=3600.0)) as cache,
    ):
        cached = cache.client(client, Cluster("ns", "one", "uid-1"))
        for _ in range(1000):
            witness.hears(cached.lookup("x"))
        settle(cache)
        witness.hears(cached.lookup("x"))
        refused = [request.status for request in dashboard.requests]
        assert refused == [403] * len(refused)
        assert len(refused) <= 20, "2 to the power of 20 times 0.01 s is hours"
    assert witness.knows(*SECRETS) == []


def test_errors_of_the_library_say_something(witness: Witness) -> None:
    """A witness that heard nothing would prove nothing."""
    with DashboardClient("http://127.0.0.1:1", token=FIRST, proxies={}) as client:
        with pytest.raises(DashboardError) as caught:
            client.list_jobs()
        witness.catches(caught.value)
    witness.hears(FIRST)
    assert "Connection refused" in witness.everything
    assert witness.knows(*SECRETS) == [FIRST]
