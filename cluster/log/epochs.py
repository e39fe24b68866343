"""LeaderEpochCache: which leader epoch began at which offset of one log (KIP-101, KIP-279). Pure.

Owns the rules of Kafka's LeaderEpochFileCache (docs/reference/kafka.md "Leader epochs") and the text of
``leader-epoch-checkpoint``. Does not write it: anyone who made the cache is told the new text through ``on_change``
(the epoch of a log changes rarely, a call each time is no burden).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import NamedTuple

from cluster.log.checkpoints import pairs_text, parse_pairs


class EpochEntry(NamedTuple):
    """``epoch`` began at ``start_offset`` and lasts until the next entry's start."""

    epoch: int
    start_offset: int


#: The answer for an epoch that the cache cannot place: (epoch, end offset).
UNDEFINED = (-1, -1)


class LeaderEpochCache:
    """The epochs of one log, ascending in epoch and in start offset."""

    def __init__(
        self, entries: Iterable[EpochEntry] = (), on_change: Callable[[LeaderEpochCache], None] | None = None
    ) -> None:
        self._entries: list[EpochEntry] = []
        #: The latest epoch's number, -1 if there is none: read for every batch, so a plain attribute.
        self.latest_number = -1
        self._on_change: Callable[[LeaderEpochCache], None] | None = None
        for entry in entries:
            self.assign(entry.epoch, entry.start_offset)
        self._on_change = on_change

    def __repr__(self) -> str:
        return f"LeaderEpochCache({' '.join(f'{entry.epoch}@{entry.start_offset}' for entry in self._entries)})"

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        return tuple(self._entries)

    @property
    def latest(self) -> int | None:
        """The newest epoch, None if the cache is empty."""
        return self._entries[-1].epoch if self._entries else None

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note that ``epoch`` begins at ``start_offset``; True if that was news.

        A new entry removes those with an epoch or a start not below its own: they were never committed.
        """
        entries = self._entries
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"epoch {epoch} at offset {start_offset}")
        if entries and entries[-1].epoch == epoch and entries[-1].start_offset <= start_offset:
            return False
        before = list(entries)
        while entries and (entries[-1].epoch >= epoch or entries[-1].start_offset >= start_offset):
            entries.pop()
        entries.append(EpochEntry(epoch, start_offset))
        try:
            self._changed()
        except Exception:
            # What is not written is not known either: the next batch tries it again.
            self._entries = before
            self.latest_number = before[-1].epoch if before else -1
            raise
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(epoch found, its end offset) for the largest epoch not above ``epoch``; (-1, -1) if it cannot be told.

        For an epoch below the first: itself and the start of the first that is higher (KIP-279 returns the epoch
        that was found, so that a follower sees that it asked for one unknown here).
        """
        entries = self._entries
        if epoch < 0 or not entries or epoch > entries[-1].epoch:
            return UNDEFINED
        if epoch == entries[-1].epoch:
            return epoch, log_end_offset
        above = bisect_right(entries, epoch, key=lambda entry: entry.epoch)
        if above == 0:
            return epoch, entries[0].start_offset
        return entries[above - 1].epoch, entries[above].start_offset

    def epoch_for_offset(self, offset: int) -> int | None:
        """The epoch in which the record at ``offset`` was written, None if before the first entry."""
        above = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset)
        return self._entries[above - 1].epoch if above else None

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget the epochs that begin at or above ``end_offset``, the new log end."""
        entries = self._entries
        before = len(entries)
        while entries and entries[-1].start_offset >= end_offset:
            entries.pop()
        if len(entries) != before:
            self._changed()

    def truncate_from_start(self, start_offset: int) -> None:
        """Let the log begin at ``start_offset``: the older epochs collapse into the one that holds there."""
        entries = self._entries
        above = bisect_right(entries, start_offset, key=lambda entry: entry.start_offset)
        if above == 0 or entries[0].start_offset >= start_offset:
            return
        entries[:above] = [EpochEntry(entries[above - 1].epoch, start_offset)]
        self._changed()

    def clear(self) -> None:
        if self._entries:
            self._entries.clear()
            self._changed()

    def replace_with(self, entries: Iterable[EpochEntry]) -> None:
        """Take other entries, which were read from the batches themselves."""
        new = list(entries)
        if new != self._entries:
            self._entries = new
            self._changed()

    def to_text(self) -> str:
        """The content of ``leader-epoch-checkpoint`` (Kafka's LeaderEpochCheckpointFile)."""
        return pairs_text(self._entries)

    @classmethod
    def from_text(cls, text: str, on_change: Callable[[LeaderEpochCache], None] | None = None) -> LeaderEpochCache:
        """Read ``leader-epoch-checkpoint``. Raises ``CheckpointError``."""
        return cls([EpochEntry(*pair) for pair in parse_pairs(text)], on_change)

    def _changed(self) -> None:
        self.latest_number = self._entries[-1].epoch if self._entries else -1
        if self._on_change is not None:
            self._on_change(self)
