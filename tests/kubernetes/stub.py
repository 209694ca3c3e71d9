"""A small API server with TLS: Secrets, and the service proxy to simulated dashboards."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

import requests

#: A certificate for 127.0.0.1 that signs itself, with its key.
CERTIFICATE = Path(__file__).parents[1] / "http" / "localhost.pem"
#: Another one, for the name "kubernetes.test" only.
NAMED_CERTIFICATE = Path(__file__).with_name("named.pem")


class StubApiServer:
    """Answers `token` only. `secrets` and `services` are what there is, by namespace/name.

    `override` is what it says itself instead: (status, body). Of the
    patches it refuses the first `conflicts`, and keeps the others.
    """

    def __init__(
        self,
        token: str = "api-token",
        *,
        client_certificate: bool = False,
        certificate: Path = CERTIFICATE,
    ) -> None:
        self.token = token
        self.secrets: dict[str, dict[str, Any]] = {}
        self.services: dict[str, str] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.conflicts = 0
        self.patches: list[Any] = []
        self.override: tuple[int, dict[str, Any]] | None = None
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                status, body, kind = stub.answer(
                    self.command,
                    self.path,
                    {name.title(): text for name, text in self.headers.items()},
                    self.rfile.read(length),
                )
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_DELETE = do_PATCH = do_GET  # noqa: N815 - the base's names

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        if client_certificate:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(CERTIFICATE)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> StubApiServer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def add_secret(self, where: str, owner_uid: str | None = None, **data: str) -> None:
        namespace, name = where.split("/")
        owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "c", "uid": owner_uid}
        self.secrets[where] = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "namespace": namespace,
                "name": name,
                "ownerReferences": [owner] if owner_uid else None,
            },
            "data": {key: base64.b64encode(text.encode()).decode() for key, text in data.items()},
        }

    def answer(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, bytes, str]:
        self.asked.append((path, headers))
        if headers.get("Authorization") != f"Bearer {self.token}":
            return _status(401, "Unauthorized")
        if method == "PATCH":
            return self._patched(body)
        if self.override is not None:
            return self.override[0], json.dumps(self.override[1]).encode(), "application/json"
        _, _, _, _, namespace, kind, *rest = path.split("/", 7)
        if kind == "secrets":
            secret = self.secrets.get(f"{namespace}/{rest[0]}")
            if secret is None:
                return _status(404, f'secrets "{rest[0]}" not found')
            return 200, json.dumps(secret).encode(), "application/json"
        service, _, target = rest[0].partition(":dashboard/proxy")
        if target == "" and "/" in rest[-1]:
            service, target = rest[0].split(":")[0], "/" + rest[1].partition("/")[2]
        dashboard = self.services.get(f"{namespace}/{service}")
        if dashboard is None:
            return _status(404, f'services "{service}" not found')
        del headers["Authorization"]  # as the API server does
        with requests.Session() as session:
            session.trust_env = False
            reply = session.request(
                method, dashboard + target, headers=headers, data=body, timeout=20
            )
        return reply.status_code, reply.content, reply.headers["Content-Type"]

    def _patched(self, body: bytes) -> tuple[int, bytes, str]:
        if self.conflicts:
            self.conflicts -= 1
            return _status(409, "the object has been modified")
        self.patches.append(json.loads(body))
        return 200, b"{}", "application/json"


def _status(code: int, message: str) -> tuple[int, bytes, str]:
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "code": code,
    }
    return code, json.dumps(body).encode(), "application/json"
