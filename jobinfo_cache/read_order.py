"""All entries of a store in the order of their reads, approximately, and the bound on them."""

from __future__ import annotations

from typing import NamedTuple

from lru import LRU

from jobinfo_cache.entry import Entry, LRUKey

__all__ = ["ReadOrder", "Room"]

_MOST_LOOKS = 64  # entries looked at to make room for one, so that no read takes long


class Room(NamedTuple):
    """Whether there is room for one more entry, and the entry that would have to go for it."""

    is_there: bool
    victim: Entry | None = None


class ReadOrder:
    """An LRU of entries. Every call is made under the store's lock: lru-dict needs that.

    Reads do not come here, they only stamp their entry. An entry that was stamped since it was
    placed gets a second chance when its turn to go has come: it is placed anew, in front.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._lru: LRU[LRUKey, Entry] = LRU(size)

    def __len__(self) -> int:
        return len(self._lru)

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

    def room(self) -> Room:
        """Look for room for one more entry.

        The victim is the least recently read entry whose newest outcome was handed out, as far
        as a bounded search finds one; where all were read again, the one read longest ago.
        """
        if len(self._lru) < self._size:
            return Room(True)
        spared: Entry | None = None
        for _ in range(min(len(self._lru), _MOST_LOOKS)):
            key, entry = self._lru.peek_last_item()  # type: ignore[misc] # it is not empty
            may_go = entry.handed_out is entry.record
            if may_go and not entry.was_read:
                return Room(True, entry)
            if may_go and (spared is None or entry.read_at < spared.read_at):
                spared = entry
            entry.was_read = False
            self._lru.get(key)  # which moves it to the front
        return Room(spared is not None, spared)
