"""What the servers of these tests show of themselves, and how long the tests wait for them."""

from __future__ import annotations

from pathlib import Path

#: A certificate for 127.0.0.1 that signs itself, with its key; it is trusted nowhere else.
CERTIFICATE = Path(__file__).with_name("localhost.pem")
PATIENCE = 20.0  # seconds; only a failing test uses them up
