"""How tests ask a status page."""

from __future__ import annotations

import http.client
import json
import socket
from typing import Any, NamedTuple

from jobinfo_cache.statuspage import StatusPage
from tests.support import TIMEOUT

__all__ = ["Answer", "ask", "connected", "document", "json_of", "rest"]


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: http.client.HTTPMessage
    text: str


def ask(
    page: StatusPage,
    path: str = "/",
    *,
    method: str = "GET",
    host: str | None = None,
    body: bytes | None = None,
) -> Answer:
    """Visit the page; `host` is what the Host header says instead of its address."""
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=TIMEOUT)
    headers = {} if host is None else {"Host": host}
    try:
        connection.request(method, path, body=body, headers=headers)
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read().decode())
    finally:
        connection.close()


def document(page: StatusPage, path: str = "/") -> str:
    """The text of a page that is there."""
    answer = ask(page, path)
    assert answer.status == 200, answer.text
    return answer.text


def json_of(page: StatusPage, query: str = "") -> dict[str, Any]:
    """What /statusz.json says."""
    return dict(json.loads(document(page, f"/statusz.json{query}")))


def connected(page: StatusPage) -> socket.socket:
    """A connection on which nothing was said."""
    return socket.create_connection(("127.0.0.1", page.port), TIMEOUT)


def rest(connection: socket.socket) -> bytes:
    """What still comes until the other side ends the connection, by whatever means."""
    received = b""
    try:
        while part := connection.recv(65_536):
            received += part
    except ConnectionResetError:
        pass
    return received
