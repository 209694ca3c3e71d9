"""Lessons 2.6, 2.25 to 2.27, 2.35, 6.9, 6.15: a key leaves something out, or cuts it short."""

from __future__ import annotations

import itertools

import pytest

from jobinfo_cache import Cluster
from jobinfo_cache.testing import FakeClock, settle
from tests.cases.support import case

PARTS = ["a", "a/b", "b", "x" * 60 + "1", "x" * 60 + "2", "\u00fc", "a b"]


def test_no_two_identities_share_an_entry(clock: FakeClock) -> None:
    """Whatever characters namespaces, names, uids and ids hold."""
    with case(clock) as it:
        keys = list(itertools.product(PARTS[:3], PARTS[:3], ["", *PARTS[:2]], PARTS))
        # The cache keeps what somebody holds a client of.
        clients = [it.client_of(Cluster(*key[:3])) for key in keys]
        for client, key in zip(clients, keys, strict=True):
            client.lookup(key[3])
        assert it.cache.stats().entries == len(keys)
        settle(it.cache)


@pytest.mark.parametrize("parts", [("", "n"), ("n", "")])
def test_no_cluster_without_identity(parts: tuple[str, str]) -> None:
    """An empty namespace or name is refused, and nothing stands for it."""
    with pytest.raises(ValueError, match="empty"):
        Cluster(*parts)


def test_entries_of_a_cluster_that_is_gone_can_be_dropped(clock: FakeClock) -> None:
    """By name, whatever the uid, and only those."""
    with case(clock) as it:
        clients = [
            it.client_of(Cluster("ns", name, uid)) for name in ("one", "two") for uid in "12"
        ]
        for client in clients:
            client.lookup("a")
        it.cache.forget("ns", "one")

        assert [client.peek("a") is None for client in clients] == [True, True, False, False]
        settle(it.cache)
