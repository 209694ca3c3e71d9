"""What a dashboard says to any request."""

from __future__ import annotations

import re
from http.client import HTTPConnection

import pytest

from tests.wire.checks import (
    BROWSER_HEADERS,
    JSON,
    assert_text,
)
from tests.wire.jobs import WithJobs
from tests.wire.wires import TIMEOUT, Job, Wire, job_path


class HttpSuite(WithJobs):
    """Paths, methods and headers."""

    def test_version_has_four_texts(self, wire: Wire) -> None:
        """The version is four texts, the interface's first."""
        answer = wire.request("GET", "/api/version")

        assert answer.status_code == 200
        version = answer.json()
        assert [*version] == ["version", "ray_version", "ray_commit", "session_name"]
        assert (version["version"], version["ray_version"]) == ("4", "2.60.0")
        assert re.fullmatch("[0-9a-f]{40}", version["ray_commit"])
        assert re.fullmatch(r"session_[0-9-]{10}_[0-9_-]+_[0-9]+", version["session_name"])

    def test_headers_are_four(self, wire: Wire) -> None:
        """An answer has no validator and no compression."""
        headers = {"If-None-Match": "*", "Accept-Encoding": "gzip"}
        answer = wire.request("GET", "/api/version", headers=headers)

        assert answer.status_code == 200
        assert [*answer.headers] == ["Content-Type", "Content-Length", "Date", "Server"]
        assert answer.headers["Content-Type"] == JSON
        assert re.fullmatch(r"Python/3\.[0-9]+ aiohttp/3\.[0-9.]+", answer.headers["Server"])

    @pytest.mark.parametrize("path", ["/api/jobs", "/api/nothing", "/api/jobs/x/y", "/api"])
    def test_wrong_url(self, wire: Wire, path: str) -> None:
        """A path that is no endpoint is not found in other words than an unknown job."""
        assert_text(wire.request("GET", path), 404, "404: Not Found")

    def test_slash_after_a_job(self, wire: Wire, succeeded: Job) -> None:
        """A job's path does not end in a slash."""
        path = job_path(succeeded["submission_id"])
        assert_text(wire.request("GET", path + "/"), 404, "404: Not Found")

    @pytest.mark.parametrize(
        ("method", "suffix"), [("GET", ""), ("DELETE", ""), ("POST", "/stop"), ("GET", "/logs")]
    )
    def test_unknown_job(self, wire: Wire, method: str, suffix: str) -> None:
        """An unknown job is named in the answer, with its quoting undone."""
        answer = wire.request(method, job_path("né é") + suffix)
        assert_text(answer, 404, "Job né é does not exist")

    def test_browser_agent_may_not_submit(self, wire: Wire) -> None:
        """A client that calls itself Mozilla may only read."""
        headers = {"User-Agent": "Mozilla/5.0"}
        refused = wire.request("POST", "/api/jobs/", headers=headers, json={"entrypoint": "true"})

        assert_text(refused, 405, "'POST' method not allowed for browser traffic.")
        assert wire.request("GET", "/api/jobs/", headers=headers).status_code == 200

    @pytest.mark.parametrize("header", BROWSER_HEADERS)
    def test_browser_headers_may_not_change_anything(self, wire: Wire, header: str) -> None:
        """Any header that browsers add forbids every other method, on unknown jobs too."""
        answer = wire.request("DELETE", job_path("nope"), headers={header: "x"})
        assert_text(answer, 405, "'DELETE' method not allowed for browser traffic.")

    def test_head(self, wire: Wire) -> None:
        """HEAD is GET without the body."""
        answer = wire.request("HEAD", "/api/version")
        assert (answer.status_code, answer.content) == (200, b"")
        assert int(answer.headers["Content-Length"]) > 100

    @pytest.mark.parametrize("method", ["PUT", "OPTIONS", "PATCH", "DELETE"])
    def test_other_methods(self, wire: Wire, method: str) -> None:
        """A method that the endpoint does not have is refused, with those that it has."""
        answer = wire.request(method, "/api/jobs/")
        assert_text(answer, 405, "405: Method Not Allowed")
        assert answer.headers["Allow"] == "GET,HEAD,POST"

    @pytest.mark.parametrize("method", ["GET", "PUT"])
    def test_serve_is_not_installed(self, wire: Wire, method: str) -> None:
        """Without Ray Serve its path says how to install it."""
        answer = wire.request(method, "/api/serve/applications/", json={"applications": []})
        words = 'Serve dependencies are not installed. Please run `pip install "ray[serve]"`.'
        assert_text(answer, 501, words)

    def test_open_pages(self, wire: Wire) -> None:
        """The health check, the index page and the mode are there."""
        health = wire.request("GET", "/api/gcs_healthz")
        mode = wire.request("GET", "/api/authentication_mode")
        index = wire.request("GET", "/")

        assert (health.status_code, health.text) == (200, "success")
        assert health.headers["Content-Type"] == "application/text; charset=utf-8"
        assert mode.json() == {"authentication_mode": "disabled"}
        assert (index.status_code, index.headers["Content-Type"]) == (200, "text/html")

    def test_a_connection_is_kept(self, wire: Wire) -> None:
        """Requests one after another share a connection."""
        host, port = wire.url.removeprefix("http://").split(":")
        connection = HTTPConnection(host, int(port), timeout=TIMEOUT)
        ends = []
        for _ in range(3):
            connection.request("GET", "/api/version")
            with connection.getresponse() as answer:
                assert answer.status == 200
                answer.read()
            ends.append(connection.sock.getsockname())
        connection.close()

        assert ends == [ends[0]] * 3

    @pytest.mark.parametrize(
        ("path", "meant"),
        [
            ("/api/jobs/.", "/api/jobs/"),
            ("/api/jobs/%2e", "/api/jobs/"),
            ("/api/jobs/..", "/api/"),
            ("/api/jobs/%2E%2e", "/api/"),
            ("/api/jobs/./logs", "/api/jobs/logs"),
            ("/api/jobs/./x", "/nothing"),
            ("/api/./version", "/nothing"),
            ("/api/nothing/../version", "/nothing"),
            ("//api/version", "/nothing"),
        ],
    )
    def test_dots_in_a_path(self, wire: Wire, path: str, meant: str) -> None:
        """The server itself loses dots in the place of an id, quoted or not, and only there."""
        host, port = wire.url.removeprefix("http://").split(":")
        connection = HTTPConnection(host, int(port), timeout=TIMEOUT)
        # Not by requests, which resolves them too.
        connection.request("GET", path)
        with connection.getresponse() as answer:
            body = answer.read()
        connection.close()

        expected = wire.request("GET", meant)
        assert answer.status == expected.status_code
        assert body[:15] == expected.content[:15]
