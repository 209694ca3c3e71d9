"""Headers whose values are asked for, and TLS settings of the caller's own."""

from __future__ import annotations

import ssl

import pytest

from jobinfo_cache import DashboardAuthError, DashboardClient, DashboardUnavailable
from jobinfo_cache.credentials import Credentials
from jobinfo_cache.testing import FaultServer, SimulatedDashboard


def test_value_is_asked_for_each_request() -> None:
    """A callable's newest value is sent, and a fixed header beside it stays."""
    values = ["Bearer one", "Bearer two"]
    credentials = Credentials(None, {"Authorization": lambda: values.pop(0), "X-Fixed": "x"})
    sent = [credentials.current().headers for _ in range(2)]

    assert sent == [
        {"Authorization": "Bearer one", "X-Fixed": "x"},
        {"Authorization": "Bearer two", "X-Fixed": "x"},
    ]
    assert credentials.redact("one and two") == "[secret] and [secret]"


def test_token_goes_into_the_second_header_only() -> None:
    """An Authorization that is asked for is not replaced by the token."""
    headers = Credentials("ray", {"authorization": lambda: "Bearer api"}).current().headers

    assert headers == {"authorization": "Bearer api", "X-Ray-Authorization": "Bearer ray"}


def test_refused_value_is_sent_again_only_when_it_has_changed() -> None:
    """After a refusal there are new headers if a callable gives another value."""
    value = ["Bearer one"]
    credentials = Credentials(None, {"Authorization": lambda: value[0]})
    sent = credentials.current()

    assert credentials.after_refusal(sent) is None
    value[0] = "Bearer two"
    renewed = credentials.after_refusal(sent)
    assert renewed is not None
    assert renewed.headers == {"Authorization": "Bearer two"}


@pytest.mark.parametrize("value", ["", "two\nlines", 3])
def test_value_that_no_header_can_carry_is_an_auth_error(value: object) -> None:
    """The header is named, and the value is not shown."""
    credentials = Credentials(None, {"X-Key": lambda: value})  # type: ignore[dict-item, return-value]
    with pytest.raises(DashboardAuthError, match="header X-Key") as raised:
        credentials.current()
    assert "lines" not in str(raised.value)


def test_error_of_the_library_comes_through_as_it_is() -> None:
    """What a token callable says of its own trouble reaches the caller."""

    def token() -> str:
        raise DashboardUnavailable("the vault is closed")

    with pytest.raises(DashboardUnavailable, match="the vault is closed"):
        DashboardClient("http://127.0.0.1:1", token=token).get_job_info("a")


def test_context_of_the_callers_own_is_obeyed_within_the_deadline() -> None:
    """A handshake that stalls ends in time with an SSLContext too."""
    context = ssl.create_default_context()
    with FaultServer() as server:
        server.fault("stall-handshake")
        url = server.url.replace("http:", "https:")
        client = DashboardClient(url, verify=context, timeout=0.3)
        with pytest.raises(DashboardUnavailable, match=r"no complete answer within 0\.3 s"):
            client.get_job_info("a")


def test_context_is_not_needed_for_http() -> None:
    """Over plain HTTP an SSLContext changes nothing."""
    with SimulatedDashboard() as dashboard:
        dashboard.add_job("a", status="RUNNING")
        client = DashboardClient(dashboard.url, verify=ssl.create_default_context())
        assert client.get_job_info("a").status == "RUNNING"
        client.close()
