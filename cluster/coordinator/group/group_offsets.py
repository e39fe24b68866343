"""The offsets of one group: committed ones, commits in flight, and those of open transactions.

Owns which offset counts when commits, markers and removals overlap: the one whose record lies last in the log
(docs/reference/kafka.md "Committed offsets"). So it holds, whenever nothing is in flight, what a coordinator would read
that takes over. Does not own who may commit (``committing``) nor the log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from cluster.coordinator.group.records import CommittedOffset, TopicPartition
from cluster.coordinator.group.requests import NO_PRODUCER_ID, OffsetToCommit

#: What a committed offset takes besides its metadata.
_OFFSET_BYTES = 400


class PlacedOffset(NamedTuple):
    """An offset and the position of its batch in the log."""

    committed: CommittedOffset
    position: int


class GroupOffsets:
    """``committed`` are those that a fetch answers, ``transactions`` are pending ones by producer id. ``in_flight``
    counts commits that are being appended, by (producer id, partition). The sizes are about what these take in memory.
    """

    __slots__ = ("committed", "in_flight", "in_flight_bytes", "placed_bytes", "transactions")

    def __init__(self) -> None:
        self.placed_bytes = 0
        self.in_flight_bytes = 0
        self.committed: dict[TopicPartition, PlacedOffset] = {}
        self.in_flight: Counter[tuple[int, TopicPartition]] = Counter()
        self.transactions: dict[int, dict[TopicPartition, PlacedOffset]] = {}

    def __repr__(self) -> str:
        return (
            f"<GroupOffsets {len(self.committed)}, in flight {self.in_flight}, of {len(self.transactions)} producers>"
        )

    @property
    def size_bytes(self) -> int:
        """About what all of them take."""
        return self.placed_bytes + self.in_flight_bytes

    @property
    def is_empty(self) -> bool:
        return not (self.committed or self.in_flight or self.transactions)

    @property
    def uncommitted(self) -> set[TopicPartition]:
        """Partitions for which a commit may still become the current one (KIP-447)."""
        pending = {partition for each in self.transactions.values() for partition in each}
        return pending.union(partition for _, partition in self.in_flight)

    @property
    def has_uncommitted(self) -> bool:
        return bool(self.transactions or self.in_flight)

    def among(self, partitions: AbstractSet[TopicPartition]) -> list[TopicPartition]:
        """Those of ``partitions`` that have an offset, or may get one of what is in flight."""
        if len(partitions) < len(self.committed):
            found = [each for each in partitions if each in self.committed]
        else:
            found = [each for each in self.committed if each in partitions]
        if self.has_uncommitted:
            found += (self.uncommitted - self.committed.keys()) & partitions
        return sorted(found)

    def load(self, partition: TopicPartition, placed: PlacedOffset | None, producer_id: int = NO_PRODUCER_ID) -> None:
        """Take over a record of the log, while it is read; None is a tombstone."""
        if producer_id == NO_PRODUCER_ID and placed is None:
            self.removed([partition])
        elif producer_id == NO_PRODUCER_ID and placed is not None:
            self._place(self.committed, partition, placed)
        elif placed is None:
            self._drop(self.transactions.setdefault(producer_id, {}), partition)
        else:
            self._place(self.transactions.setdefault(producer_id, {}), partition, placed)

    def begin(self, offsets: Mapping[TopicPartition, CommittedOffset], producer_id: int = NO_PRODUCER_ID) -> None:
        """Commits are being appended."""
        self.in_flight.update([(producer_id, partition) for partition in offsets])
        self.in_flight_bytes += sum(map(offset_bytes, offsets.values()))

    def failed(self, offsets: Mapping[TopicPartition, CommittedOffset], producer_id: int = NO_PRODUCER_ID) -> None:
        """Commits are not in the log."""
        self.in_flight.subtract([(producer_id, partition) for partition in offsets])
        self.in_flight = +self.in_flight
        self.in_flight_bytes -= sum(map(offset_bytes, offsets.values()))

    def appended(
        self, offsets: Mapping[TopicPartition, CommittedOffset], position: int, producer_id: int = NO_PRODUCER_ID
    ) -> None:
        """Commits are in the log. With a producer they wait for its marker."""
        self.failed(offsets, producer_id)
        for partition, committed in offsets.items():
            placed = PlacedOffset(committed, position)
            if producer_id == NO_PRODUCER_ID:
                self._place(self.committed, partition, placed)
            else:
                self._place(self.transactions.setdefault(producer_id, {}), partition, placed)

    def ended(self, producer_id: int, *, is_committed: bool) -> None:
        """The marker of a transaction is in the log. Raises ``ValueError`` if an append before it has no result yet:
        results come in the order of the log."""
        unsettled = [partition for producer, partition in self.in_flight if producer == producer_id]
        if unsettled:
            raise ValueError(f"the marker of producer {producer_id} was told before what it completes: {unsettled}")
        for partition, placed in self.transactions.pop(producer_id, {}).items():
            self.placed_bytes -= offset_bytes(placed.committed)
            if is_committed:
                self._place(self.committed, partition, placed)

    def removed(self, partitions: Iterable[TopicPartition]) -> None:
        """Tombstones are in the log, after all that is known of these partitions but for what is in flight."""
        for partition in partitions:
            for placed in (self.committed, *self.transactions.values()):
                self._drop(placed, partition)
        self.forget_empty()

    def forget_empty(self) -> None:
        """List no producer without a pending offset."""
        self.transactions = {producer_id: pending for producer_id, pending in self.transactions.items() if pending}

    def _place(
        self, placed: dict[TopicPartition, PlacedOffset], partition: TopicPartition, newer: PlacedOffset
    ) -> None:
        """Take over what is in the log, unless something later is there already."""
        current = placed.get(partition)
        if current is None or current.position <= newer.position:
            self._drop(placed, partition)
            placed[partition] = newer
            self.placed_bytes += offset_bytes(newer.committed)

    def _drop(self, placed: dict[TopicPartition, PlacedOffset], partition: TopicPartition) -> None:
        dropped = placed.pop(partition, None)
        if dropped is not None:
            self.placed_bytes -= offset_bytes(dropped.committed)


def offset_bytes(committed: CommittedOffset | OffsetToCommit) -> int:
    """About what one takes in memory."""
    return _OFFSET_BYTES + len(committed.metadata)
