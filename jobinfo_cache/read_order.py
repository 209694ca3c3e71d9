"""All entries of a store in the order of their reads, approximately, and the bound on them."""

from __future__ import annotations

from lru import LRU

from jobinfo_cache.entry import Entry, LRUKey

__all__ = ["ReadOrder", "may_go"]

_MOST_LOOKS = 64  # entries looked at to make room for one, so that no read takes long


class ReadOrder:
    """An LRU of entries. Every call is made under the store's lock: lru-dict needs that.

    Reads do not come here, they only stamp their entry. An entry that was stamped since it was
    placed gets a second chance when its turn to go has come: it is placed anew, in front.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._lru: LRU[LRUKey, Entry] = LRU(size)

    @property
    def free(self) -> int:
        """How many more entries there is room for."""
        return self._size - len(self._lru)

    def put(self, entry: Entry) -> None:
        """Place the entry in front, or in the place of the one that has its key."""
        self._lru[entry.lru_key] = entry

    def discard(self, entry: Entry) -> None:
        """Take the entry out if it is there; another one with its key stays."""
        if self._lru.get(entry.lru_key) is entry:
            del self._lru[entry.lru_key]

    def entries(self) -> list[Entry]:
        """All entries; a copy, which takes a while with many."""
        return list(self._lru.values())

    def clear(self) -> None:
        self._lru.clear()

    def victim(self, since: float) -> Entry | None:
        """The entry to go if room is needed, if there is one that `may_go`.

        It is the least recently read of them, as far as a bounded search finds one; where all
        were read again, the one read longest ago.
        """
        spared: Entry | None = None
        for _ in range(min(len(self._lru), _MOST_LOOKS)):
            key, entry = self._lru.peek_last_item()  # type: ignore[misc] # it is not empty
            if may_go(entry, since):
                if not entry.read_again:
                    return entry
                if spared is None or entry.read_at < spared.read_at:
                    spared = entry
            entry.read_again = False
            self._lru.get(key)  # which moves it to the front
        return spared


def may_go(entry: Entry, since: float) -> bool:
    """True if the entry's newest outcome was handed out, or nobody came for one after `since`."""
    outcome = entry.record.outcome
    if outcome is not None and entry.read_outcome is outcome:
        return True
    return entry.read_at <= since and not entry.is_placeholder
