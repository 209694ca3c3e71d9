"""One suite of raw requests for simulated and real dashboards."""

import pytest

_SUITES = ("http_suite", "record_suite", "stop_suite", "submit_suite", "token_suite")
pytest.register_assert_rewrite(*(f"{__name__}.{name}" for name in ("checks", "wires", *_SUITES)))
