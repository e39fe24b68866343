"""The batches that were appended last, each known again by 64 bits.

Owns the memory of them, which is the same however many come: two flat tables, the older of which is forgotten when the
newer is half full. A set of objects would hold tens of thousands of small ones, strewn over the heap, and no part of it
could be given back after a large request. Does not own what the 64 bits are made of.
"""

from __future__ import annotations

from array import array

_WORD = (1 << 64) - 1


class RecentBatches:
    """The last ``least`` that were added at least, and twice as many at most. ``least`` is a power of two.

    A fingerprint counts modulo 2^64.
    """

    __slots__ = ("_added", "_least", "_mask", "_newer", "_older")

    def __init__(self, least: int) -> None:
        if least & (least - 1) or least < 1:
            raise ValueError(f"{least} is no power of two")
        self._least = least
        self._mask = 2 * least - 1
        self._newer, self._older = self._table(), self._table()
        self._added = 0

    def __repr__(self) -> str:
        return f"RecentBatches({self._added} in the newer of two tables of {self._mask + 1})"

    def has(self, fingerprint: int, *, add: bool) -> bool:
        """Whether it is one of them; ``add``: from now on it is."""
        word, mask = (fingerprint & _WORD) or 1, self._mask
        newer, older = self._newer, self._older
        # All of its bits choose its place: batches whose records begin alike differ only in the highest ones.
        slot = old_slot = hash((word,)) & mask
        # The search ends: a table is half full at most.
        while (found := newer[slot]) and found != word:
            slot = slot + 1 & mask
        if found:
            return True
        while (found := older[old_slot]) and found != word:
            old_slot = old_slot + 1 & mask
        if add:
            newer[slot] = word
            self._added += 1
            if self._added >= self._least:
                self._older, self._newer, self._added = newer, self._table(), 0
        return bool(found)

    def _table(self) -> array[int]:
        return array("Q", bytes(8 * (self._mask + 1)))
