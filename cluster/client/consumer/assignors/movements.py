"""Which partitions have moved from whom to whom while a division is being balanced.

Owns that no two members exchange partitions of one topic: instead of a second move the other way, the first is undone.
"""

from __future__ import annotations

from collections import defaultdict

from cluster.topic_partition import TopicPartition


class Movements:
    """Moves as they are from the beginning: (first giver, last taker)."""

    def __init__(self) -> None:
        self._of: dict[TopicPartition, tuple[str, str]] = {}
        #: (topic, giver, taker) -> partitions.
        self._between: defaultdict[tuple[str, str, str], set[TopicPartition]] = defaultdict(set)

    def __repr__(self) -> str:
        return f"Movements({self._of})"

    def moved(self, partition: TopicPartition, giver: str, taker: str) -> None:
        """One that has moved before and is back where it was has not moved at all."""
        former = self._of.pop(partition, None)
        if former is not None:
            self._between[(partition[0], *former)].discard(partition)
            giver = former[0]
        if giver != taker:
            self._of[partition] = giver, taker
            self._between[(partition[0], giver, taker)].add(partition)

    def instead_of(self, partition: TopicPartition, giver: str, taker: str) -> TopicPartition:
        """A partition of the topic that came from ``taker`` before, if there is one."""
        if partition in self._of:
            giver = self._of[partition][0]
        back = self._between.get((partition[0], taker, giver))
        return min(back) if back else partition
