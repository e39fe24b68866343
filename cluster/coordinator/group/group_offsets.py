"""The offsets of one group: committed ones, commits in flight, and those of open transactions.

Owns which offset counts when commits, markers and removals overlap: the one whose record lies last in the log
(docs/reference/kafka.md "Committed offsets"). Does not own who may commit (``committing``) nor the log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from cluster.coordinator.group.records import CommittedOffset, TopicPartition


class PlacedOffset(NamedTuple):
    """An offset and the position of its batch in the log, None while it is being appended."""

    committed: CommittedOffset
    position: int | None


class GroupOffsets:
    """``committed`` are those that a fetch answers, ``in_flight`` counts plain commits that are being appended,
    ``transactions`` are pending ones by producer id."""

    __slots__ = ("committed", "in_flight", "transactions")

    def __init__(self) -> None:
        self.committed: dict[TopicPartition, PlacedOffset] = {}
        self.in_flight: Counter[TopicPartition] = Counter()
        self.transactions: dict[int, dict[TopicPartition, PlacedOffset]] = {}

    def __repr__(self) -> str:
        return (
            f"<GroupOffsets {len(self.committed)}, in flight {+self.in_flight}, of {len(self.transactions)} producers>"
        )

    @property
    def is_empty(self) -> bool:
        return not (self.committed or self.in_flight or self.transactions)

    def is_unstable(self, partition: TopicPartition) -> bool:
        """Whether a commit for it may still become the current one (KIP-447)."""
        return partition in self.in_flight or any(partition in pending for pending in self.transactions.values())

    # plain commits

    def begin(self, partitions: Iterable[TopicPartition]) -> None:
        """Their commit is being appended."""
        self.in_flight.update(list(partitions))

    def appended(self, offsets: Mapping[TopicPartition, CommittedOffset], position: int) -> None:
        """Commits are in the log."""
        self._end(offsets)
        for partition, committed in offsets.items():
            self.place(partition, PlacedOffset(committed, position))

    def failed(self, partitions: Iterable[TopicPartition]) -> None:
        """Commits are not in the log."""
        self._end(partitions)

    def _end(self, partitions: Iterable[TopicPartition]) -> None:
        self.in_flight.subtract(list(partitions))
        self.in_flight = +self.in_flight

    def place(self, partition: TopicPartition, placed: PlacedOffset) -> None:
        """Take over what is in the log, unless something later is there already."""
        current = self.committed.get(partition)
        if current is None or _position(current) < _position(placed):
            self.committed[partition] = placed

    # transactions

    def begin_transactional(self, producer_id: int, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        pending = self.transactions.setdefault(producer_id, {})
        pending.update((partition, PlacedOffset(committed, None)) for partition, committed in offsets.items())

    def appended_transactional(
        self, producer_id: int, offsets: Mapping[TopicPartition, CommittedOffset], position: int
    ) -> None:
        pending = self.transactions.get(producer_id, {})
        for partition, committed in offsets.items():
            if partition in pending and pending[partition].committed == committed:
                pending[partition] = PlacedOffset(committed, position)

    def failed_transactional(self, producer_id: int, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        pending = self.transactions.get(producer_id, {})
        for partition, committed in offsets.items():
            if pending.get(partition) == PlacedOffset(committed, None):
                del pending[partition]
        if not pending:
            self.transactions.pop(producer_id, None)

    def ended(self, producer_id: int, *, is_committed: bool) -> None:
        """The marker of a transaction is in the log. Raises ``ValueError`` if an append before it has no result yet:
        results come in the order of the log."""
        pending = self.transactions.pop(producer_id, {})
        if any(placed.position is None for placed in pending.values()):
            raise ValueError(f"the marker of producer {producer_id} was told before what it completes: {pending}")
        if is_committed:
            for partition, placed in pending.items():
                self.place(partition, placed)

    # removal

    def removed(self, partitions: Iterable[TopicPartition], position: int) -> None:
        """Tombstones are in the log at ``position``: what lies before them is no more."""
        for partition in partitions:
            if partition in self.committed and _position(self.committed[partition]) < position:
                del self.committed[partition]
            for pending in self.transactions.values():
                if partition in pending and _position(pending[partition]) < position:
                    del pending[partition]
        self.transactions = {producer_id: pending for producer_id, pending in self.transactions.items() if pending}


def _position(placed: PlacedOffset) -> int:
    """An offset without a position is being appended, after everything that is in the log."""
    return 1 << 63 if placed.position is None else placed.position
