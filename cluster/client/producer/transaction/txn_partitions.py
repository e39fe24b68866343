"""TxnPartitions: which partitions a transaction has, and which are to be added before anything is written to them.

Owns the three sets. Does not own the requests that add them. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from cluster.topic_partition import TopicPartition


class TxnPartitions:
    """``new`` are to be asked for, ``pending`` were asked for, ``added`` are in the transaction; each one is in one."""

    __slots__ = ("added", "new", "pending")

    def __init__(self) -> None:
        self.new: set[TopicPartition] = set()
        self.pending: set[TopicPartition] = set()
        self.added: set[TopicPartition] = set()

    def __repr__(self) -> str:
        return f"TxnPartitions({len(self.new)} new, {len(self.pending)} pending, {len(self.added)} added)"

    def use(self, topic_partition: TopicPartition) -> None:
        """A record goes there."""
        if topic_partition not in self.added and topic_partition not in self.pending:
            self.new.add(topic_partition)

    def ask(self) -> tuple[TopicPartition, ...]:
        """What a request has to add now, in order: the new ones, and those of which no answer is known."""
        self.pending |= self.new
        self.new.clear()
        return tuple(sorted(self.pending))

    def confirm(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """The coordinator has them."""
        added = self.pending.intersection(topic_partitions)
        self.added |= added
        self.pending -= added

    def refuse(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """They will not be added; the transaction is to be aborted."""
        self.pending.difference_update(topic_partitions)

    def drop_unasked(self) -> None:
        """Nothing is added anymore."""
        self.new.clear()

    def clear(self) -> None:
        """The transaction is over."""
        self.new.clear()
        self.pending.clear()
        self.added.clear()
