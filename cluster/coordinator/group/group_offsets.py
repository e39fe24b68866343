"""The offsets of one group: committed ones, commits in flight, and those of open transactions.

Owns which offset counts when commits, markers and removals overlap: the one whose record lies last in the log
(docs/reference/kafka.md "Committed offsets"). So it holds, whenever nothing is in flight, what a coordinator would read
that takes over. Does not own who may commit (``committing``) nor the log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple, TypeVar

from cluster.coordinator.group.records import CommittedOffset
from cluster.coordinator.group.requests import NO_PRODUCER_ID, OffsetToCommit
from cluster.topic_partition import TopicPartition

_Key = TypeVar("_Key")

#: What a committed offset takes besides its metadata, and what one that is pending takes more.
_OFFSET_BYTES = 400
_PENDING_BYTES = 350


class PlacedOffset(NamedTuple):
    """An offset and the position of its batch in the log."""

    committed: CommittedOffset
    position: int


class GroupOffsets:
    """``committed`` are those that a fetch answers, ``transactions`` are pending ones by producer id, none of which is
    without any. ``producers`` are the same by partition: whose offsets are pending for it. ``in_flight`` counts commits
    that are being appended, by partition. The sizes are about what these take in memory. No event costs more than what
    it names: there may be thousands of producers, and of partitions.
    """

    __slots__ = (
        "_in_flight_of",
        "committed",
        "in_flight",
        "in_flight_bytes",
        "placed_bytes",
        "producers",
        "transactions",
    )

    def __init__(self) -> None:
        self.placed_bytes = 0
        self.in_flight_bytes = 0
        self.committed: dict[TopicPartition, PlacedOffset] = {}
        self.in_flight: Counter[TopicPartition] = Counter()
        #: The same by producer.
        self._in_flight_of: Counter[int] = Counter()
        self.transactions: dict[int, dict[TopicPartition, PlacedOffset]] = {}
        self.producers: dict[TopicPartition, set[int]] = {}

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
        return {*self.producers, *self.in_flight}

    def is_uncommitted(self, partition: TopicPartition) -> bool:
        """Whether it is one of ``uncommitted``."""
        return partition in self.producers or partition in self.in_flight

    @property
    def has_uncommitted(self) -> bool:
        return bool(self.transactions or self.in_flight)

    def has_of(self, producer_id: int) -> bool:
        """Whether something of a producer is pending or in flight."""
        return producer_id in self.transactions or producer_id in self._in_flight_of

    def among(self, partitions: AbstractSet[TopicPartition]) -> list[TopicPartition]:
        """Those of ``partitions`` that have an offset, or may get one of what is in flight."""
        if len(partitions) < len(self.committed) + len(self.producers) + len(self.in_flight):
            return sorted(each for each in partitions if each in self.committed or self.is_uncommitted(each))
        return sorted(partitions & {*self.committed, *self.producers, *self.in_flight})

    def load(self, partition: TopicPartition, placed: PlacedOffset | None, producer_id: int = NO_PRODUCER_ID) -> None:
        """Take over a record of the log, while it is read; None is a tombstone."""
        if producer_id == NO_PRODUCER_ID and placed is None:
            self.removed([partition])
        elif producer_id == NO_PRODUCER_ID and placed is not None:
            self._commit(partition, placed)
        elif placed is None:
            self._drop_pending(producer_id, partition)
        else:
            self._add_pending(producer_id, partition, placed)

    def begin(self, offsets: Mapping[TopicPartition, CommittedOffset], producer_id: int = NO_PRODUCER_ID) -> None:
        """Commits are being appended. Nothing may fail between this and the append: its result alone ends them."""
        self.in_flight.update(offsets.keys())
        self._in_flight_of[producer_id] += len(offsets)
        self.in_flight_bytes += sum(map(offset_bytes, offsets.values()))

    def failed(self, offsets: Mapping[TopicPartition, CommittedOffset], producer_id: int = NO_PRODUCER_ID) -> None:
        """Commits are not in the log."""
        for partition in offsets:
            _subtract(self.in_flight, partition, 1)
        _subtract(self._in_flight_of, producer_id, len(offsets))
        self.in_flight_bytes -= sum(map(offset_bytes, offsets.values()))

    def appended(
        self, offsets: Mapping[TopicPartition, CommittedOffset], position: int, producer_id: int = NO_PRODUCER_ID
    ) -> None:
        """Commits are in the log. With a producer they wait for its marker."""
        self.failed(offsets, producer_id)
        for partition, committed in offsets.items():
            placed = PlacedOffset(committed, position)
            if producer_id == NO_PRODUCER_ID:
                self._commit(partition, placed)
            else:
                self._add_pending(producer_id, partition, placed)

    def ended(self, producer_id: int, *, is_committed: bool) -> None:
        """The marker of a transaction is in the log. Raises ``ValueError`` if an append before it has no result yet:
        results come in the order of the log."""
        if unsettled := self._in_flight_of[producer_id]:
            raise ValueError(f"the marker of producer {producer_id} was told before {unsettled} offsets it completes")
        for partition, placed in list(self.transactions.get(producer_id, {}).items()):
            self._drop_pending(producer_id, partition)
            if is_committed:
                self._commit(partition, placed)

    def removed(self, partitions: Iterable[TopicPartition]) -> None:
        """Tombstones are in the log, after all that is known of these partitions but for what is in flight."""
        for partition in partitions:
            self._uncommit(partition)
            for producer_id in list(self.producers.get(partition, ())):
                self._drop_pending(producer_id, partition)

    def _commit(self, partition: TopicPartition, newer: PlacedOffset) -> None:
        """Take over what is in the log, unless something later is there already."""
        current = self.committed.get(partition)
        if current is None or current.position <= newer.position:
            self._uncommit(partition)
            self.committed[partition] = newer
            self.placed_bytes += offset_bytes(newer.committed)

    def _uncommit(self, partition: TopicPartition) -> None:
        dropped = self.committed.pop(partition, None)
        if dropped is not None:
            self.placed_bytes -= offset_bytes(dropped.committed)

    def _add_pending(self, producer_id: int, partition: TopicPartition, newer: PlacedOffset) -> None:
        """The same of an open transaction."""
        current = self.transactions.get(producer_id, {}).get(partition)
        if current is None or current.position <= newer.position:
            self._drop_pending(producer_id, partition)
            self.transactions.setdefault(producer_id, {})[partition] = newer
            self.producers.setdefault(partition, set()).add(producer_id)
            self.placed_bytes += pending_bytes(newer.committed)

    def _drop_pending(self, producer_id: int, partition: TopicPartition) -> None:
        """No producer without a pending offset stays, nor a partition without a producer."""
        pending = self.transactions.get(producer_id, {})
        dropped = pending.pop(partition, None)
        if dropped is None:
            return
        self.placed_bytes -= pending_bytes(dropped.committed)
        if not pending:
            del self.transactions[producer_id]
        producers = self.producers[partition]
        producers.remove(producer_id)
        if not producers:
            del self.producers[partition]


def _subtract(counter: Counter[_Key], key: _Key, count: int) -> None:
    """What comes to nothing is not listed."""
    counter[key] -= count
    if not counter[key]:
        del counter[key]


def offset_bytes(committed: CommittedOffset | OffsetToCommit) -> int:
    """About what one takes in memory."""
    return _OFFSET_BYTES + len(committed.metadata)


def pending_bytes(committed: CommittedOffset | OffsetToCommit) -> int:
    """The same of one that waits for the end of a transaction."""
    return _PENDING_BYTES + offset_bytes(committed)
