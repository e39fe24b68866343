"""Ledger: what the leaders of one partition appended, what unclean elections cut off, what retention took.

Owns the record of one incarnation of a partition (a topic that is made again begins a new one). It is written while
the simulation runs, by observers that nothing in the cluster knows of: whoever sent a record, what is known of it is
what a leader appended.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from cluster.protocol.batch import iter_batches
from cluster.protocol.records import Header, decode_records

#: (producer id, its epoch, base sequence): a batch of an idempotent producer.
BatchId = tuple[int, int, int]
#: The header that tells one tombstone from another: it has no value to be known by.
TOMBSTONE = "tombstone"


class Entry(NamedTuple):
    """A record: its key, and what tells it from all others (its value, or a tombstone's header)."""

    key: bytes | None
    value: bytes
    is_tombstone: bool = False


class Appended(NamedTuple):
    """A batch that a leader appended: where, in which epoch, how many records, where its log began then, and what
    they were."""

    base_offset: int
    epoch: int
    count: int
    log_start: int
    entries: tuple[Entry, ...] = ()


class Place(NamedTuple):
    """Where a record was appended, as part of which batch."""

    offset: int
    batch: BatchId
    appended: Appended


class Cut(NamedTuple):
    """An unclean election: what its leader held when it began to lead, base offsets to batches, is all that is left of
    the epochs before ``epoch``."""

    epoch: int
    held: Mapping[int, BatchId]


@dataclass
class Ledger:
    """``leaders`` maps a leader epoch to who appended as its leader. Below ``retained`` retention has deleted records
    on some replica, by right. ``lineage`` are (epoch, where it began) of the log of the latest leader that is known;
    where an epoch began is the least that any log tells: one that was copied after compaction knows only where the
    first batch is that was left of it."""

    appended: dict[BatchId, list[Appended]] = field(default_factory=dict)
    cuts: list[Cut] = field(default_factory=list)
    leaders: dict[int, set[int]] = field(default_factory=dict)
    retained: int = 0
    lineage: tuple[tuple[int, int], ...] = ()
    _places: dict[bytes, list[Place]] = field(default_factory=dict, repr=False)
    _began: dict[int, int] = field(default_factory=dict, repr=False)

    def append(self, batch: BatchId, appended: Appended) -> None:
        self.appended.setdefault(batch, []).append(appended)
        for number, entry in enumerate(appended.entries):
            place = Place(appended.base_offset + number, batch, appended)
            self._places.setdefault(entry.value, []).append(place)

    def descends(self, lineage: Iterable[tuple[int, int]]) -> None:
        """Note the epochs of somebody's log; those of a log with a later epoch stand."""
        told = tuple(lineage)
        for epoch, start in told:
            self._began[epoch] = min(start, self._began.get(epoch, start))
        latest = max(self.lineage, told, key=lambda each: each[-1][0] if each else -1)
        self.lineage = tuple((epoch, self._began[epoch]) for epoch, _ in latest)

    def epoch_at(self, offset: int) -> int | None:
        """Whose leader's record at an offset is in the log in the end, by its lineage; None if that does not say."""
        found = bisect_right(self.lineage, offset, key=lambda entry: entry[1])
        return self.lineage[found - 1][0] if found else None

    def places(self, value: bytes) -> list[Place]:
        """Each place at which a record was appended, whatever became of it."""
        return self._places.get(value, [])

    def is_cut_off(self, batch: BatchId, base_offset: int, epoch: int) -> bool:
        """Whether what an epoch had there was gone when the leader of a later unclean election began."""
        return any(epoch < cut.epoch and cut.held.get(base_offset) != batch for cut in self.cuts)

    def is_gone(self, batch: BatchId, entry: Appended, log_start: int) -> bool:
        """Whether one appended batch was deleted whole, or cut off."""
        return entry.base_offset + entry.count <= log_start or self.is_cut_off(batch, entry.base_offset, entry.epoch)

    def is_superseded(self, appended: Appended) -> bool:
        """Whether a later leader did not hold this, nor did anybody who followed it."""
        epoch = self.epoch_at(appended.base_offset)
        if epoch is not None:
            return epoch != appended.epoch
        end = appended.base_offset + appended.count
        return any(
            other.epoch > appended.epoch and other.base_offset < end
            for others in self.appended.values()
            for other in others
        )

    def history(self, end: int) -> dict[int, Entry]:
        """Offsets below ``end`` to what was appended there and counts, of what was not cut off.

        That is what the leader of the epoch appended which the lineage names. A later epoch's need not count: its
        leader may have committed nothing, and one that held the former's was in sync and was elected next (seed 50023).
        Where the lineage does not say, the latest epoch's counts.
        """
        found: dict[int, tuple[tuple[bool, int], Entry]] = {}
        for batch, entries in self.appended.items():
            for appended in entries:
                if self.is_cut_off(batch, appended.base_offset, appended.epoch):
                    continue
                for offset, entry in enumerate(appended.entries, appended.base_offset):
                    rank = appended.epoch == self.epoch_at(offset), appended.epoch
                    if offset < end and (offset not in found or found[offset][0] < rank):
                        found[offset] = rank, entry
        return {offset: entry for offset, (_, entry) in found.items()}


def value_of(value: bytes | None, headers: tuple[Header, ...]) -> bytes:
    """What tells a record from all others."""
    return value if value is not None else dict(headers).get(TOMBSTONE) or b""


def entries_of(batch: bytes | bytearray | memoryview) -> tuple[Entry, ...]:
    """The records of one batch."""
    return tuple(
        Entry(record.key, value_of(record.value, record.headers), record.value is None)
        for record in decode_records(batch)
    )


def held(log: bytes) -> dict[int, BatchId]:
    """The batches of a log by their base offsets."""
    return {
        header.base_offset: (header.producer_id, header.producer_epoch, header.base_sequence)
        for _, header in iter_batches(log)
    }
