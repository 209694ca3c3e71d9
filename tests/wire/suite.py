"""What a Ray 2.60 dashboard answers, as tests that run on a simulated and on a real one.

Subclass `WireSuite` with a fixture `wire`, and `TokenSuite` with fixtures `token_wire` and
`token`; all of class scope or wider.
"""

from __future__ import annotations

from tests.wire.http_suite import HttpSuite
from tests.wire.record_suite import RecordSuite
from tests.wire.stop_suite import StopSuite
from tests.wire.submit_suite import SubmitSuite
from tests.wire.token_suite import TokenSuite

__all__ = ["TokenSuite", "WireSuite"]


class WireSuite(HttpSuite, SubmitSuite, RecordSuite, StopSuite):
    """A dashboard that asks for no token."""
