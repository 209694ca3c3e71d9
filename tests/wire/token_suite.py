"""What a dashboard that asks for a token says."""

from __future__ import annotations

import pytest

from tests.wire.checks import (
    assert_text,
)
from tests.wire.wires import Wire


class TokenSuite:
    """A dashboard that asks for a token."""

    @pytest.mark.parametrize(
        ("method", "path"),
        [
            ("GET", "/api/version"),
            ("GET", "/api/jobs/"),
            ("POST", "/api/jobs/"),
            ("GET", "/api/jobs/nope"),
            ("GET", "/api/nothing"),
        ],
    )
    def test_no_token(self, token_wire: Wire, method: str, path: str) -> None:
        """Without a token nothing is told, not even what exists."""
        answer = token_wire.request(method, path)
        assert_text(answer, 401, "Unauthorized: Missing authentication token")
        assert "WWW-Authenticate" not in answer.headers

    @pytest.mark.parametrize("header", ["Authorization", "X-Ray-Authorization", "authorization"])
    @pytest.mark.parametrize(
        "value", ["Bearer wrong", "Bearer ", "Basic {}", "{}", "bearer {}", "Bearer  {}"]
    )
    def test_wrong_token(self, token_wire: Wire, token: str, header: str, value: str) -> None:
        """Anything but the very words is refused."""
        answer = token_wire.request("GET", "/api/version", headers={header: value.format(token)})
        assert_text(answer, 403, "Forbidden: Invalid authentication token")

    @pytest.mark.parametrize(
        "header", ["Authorization", "X-Ray-Authorization", "x-ray-authorization"]
    )
    def test_right_token(self, token_wire: Wire, token: str, header: str) -> None:
        """The token is taken from either header, whatever the case of its name."""
        answer = token_wire.request("GET", "/api/jobs/", headers={header: f"Bearer {token}"})
        assert answer.status_code == 200

    def test_cookie(self, token_wire: Wire, token: str) -> None:
        """The token is taken from a cookie as well."""
        path = "/api/version"
        right = token_wire.request(
            "GET", path, headers={"Cookie": f"ray-authentication-token={token}"}
        )
        wrong = token_wire.request("GET", path, headers={"Cookie": "ray-authentication-token=no"})
        assert (right.status_code, wrong.status_code) == (200, 403)

    def test_two_headers(self, token_wire: Wire, token: str) -> None:
        """Of two headers the standard one counts."""
        right, wrong = f"Bearer {token}", "Bearer wrong"
        codes = [
            token_wire.request(
                "GET", "/api/version", headers={"Authorization": one, "X-Ray-Authorization": other}
            ).status_code
            for one, other in ((right, wrong), (wrong, right))
        ]
        assert codes == [200, 403]

    def test_open_pages(self, token_wire: Wire) -> None:
        """What a browser needs to log in, and the health check, ask for no token."""
        mode = token_wire.request("GET", "/api/authentication_mode")
        assert mode.json() == {"authentication_mode": "token"}
        assert token_wire.request("GET", "/api/gcs_healthz").text == "success"
        assert token_wire.request("GET", "/").status_code == 200
        assert token_wire.request("GET", "/static/nope").status_code == 404
