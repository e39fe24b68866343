"""Positions: what is read and from where on, as a program says it.

Owns the assignment, what is looked for since a position is not known, and auto.offset.reset. Does not own what brokers
say about a position (``fetching``). Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from uuid import UUID

from cluster.client.backoff import ExponentialBackoff
from cluster.client.cluster_view import ClusterView
from cluster.client.committed_offset import OffsetAndMetadata
from cluster.client.consumer.assignment import AssignedPartition, ConsumerAssignment
from cluster.client.consumer.fetch_plans import READ_COMMITTED, FetchSettings
from cluster.client.consumer.lookup import OffsetLookup
from cluster.client.consumer.results import ConsumerRecord, NoOffsetForPartition
from cluster.topic_partition import TopicPartition


class Positions:
    """NOT thread-safe."""

    def __init__(self, settings: FetchSettings, backoff: ExponentialBackoff) -> None:
        self.assignment = ConsumerAssignment()
        self.resets = OffsetLookup(backoff)
        #: Partitions that continue where their group has committed, once that is known. The number tells the question
        #: from one of before, when another member may have committed since.
        self.awaiting: dict[TopicPartition, int] = {}
        self._numbers = count()
        self._settings = settings
        # The cluster as it was known last.
        self._view: ClusterView | None = None

    def __repr__(self) -> str:
        return f"Positions({self.assignment!r}, {self.resets!r})"

    def assign(self, keys: Iterable[TopicPartition], *, from_committed: bool = False) -> None:
        """Read exactly these; new ones begin where the group has committed, or where auto.offset.reset says."""
        wanted = list(dict.fromkeys(keys))
        for key in wanted:
            partition = self.assignment.get(key)
            if partition is None or self._is_lost(partition):
                # Before it is assigned, so that an exception (Ctrl-C) finds none of which nothing is known.
                self._begin(key, from_committed=from_committed)
        self.assignment.replace(wanted)
        self.forget_others()

    def forget_others(self) -> None:
        """Nothing is looked for that is not assigned, as after an ``assign`` that an exception has cut short."""
        for key in [key for key in (*self.resets.outstanding, *self.awaiting) if key not in self.assignment]:
            self.resets.forget(key)
            self.awaiting.pop(key, None)

    def resume(self, key: TopicPartition, number: int, committed: OffsetAndMetadata | None) -> None:
        """Continue at a committed offset; for None, auto.offset.reset decides. Passed over unless
        that is still waited for.
        """
        partition = self.assignment.get(key)
        if partition is None or self.awaiting.get(key) != number:
            return
        if partition.position is not None:
            # It was found before, when an exception cut that short; reading has continued since.
            self.awaiting.pop(key)
        elif committed is None:
            self._reset(partition)
        else:
            self.seek(key, committed.offset, committed.leader_epoch)

    def seek(self, key: TopicPartition, offset: int, leader_epoch: int = -1) -> None:
        """Continue at an offset. ``leader_epoch`` of the record before it lets the broker tell a truncated log."""
        topic_id = None if self._view is None else self._view.topic_id(key[0])
        self._place(self.assignment.find(key), offset, leader_epoch, topic_id)

    def seek_to(self, keys: Iterable[TopicPartition], timestamp: int) -> None:
        """Continue where a timestamp is found; a special one is the beginning or the end."""
        for partition in [self.assignment.find(key) for key in keys]:
            self._look_for(partition, timestamp)

    def position(self, key: TopicPartition) -> int | None:
        """Where a partition is; None while that is looked for. Raises ``ValueError``, and why it cannot be found."""
        partition = self.assignment.find(key)
        if self._is_lost(partition):
            raise NoOffsetForPartition([key])
        if partition.position is None:
            self.assignment.raise_error(partition)
        return partition.position

    def lag(self, key: TopicPartition) -> int | None:
        """Offsets from the position to the end that may be read, as it was told last; None if that is not known."""
        partition = self.assignment.find(key)
        is_committed = self._settings.isolation_level == READ_COMMITTED
        end = partition.last_stable_offset if is_committed else partition.high_watermark
        return None if partition.position is None or end < 0 else max(0, end - partition.position)

    def watermarks(self, key: TopicPartition) -> tuple[int, int]:
        """High watermark and last stable offset as the broker told last; -1 each if it has not."""
        partition = self.assignment.find(key)
        return partition.high_watermark, partition.last_stable_offset

    def take(self, limit: int) -> list[ConsumerRecord]:
        """The next records. Raises ``ConsumerError``; see ``ConsumerAssignment.take``."""
        lost = [each.key for each in self.assignment if self._is_lost(each)]
        if lost:
            raise NoOffsetForPartition(lost)
        return self.assignment.take(limit)

    def _is_lost(self, partition: AssignedPartition) -> bool:
        is_unknown = partition.position is None and partition.error is None
        return is_unknown and partition.key not in self.resets and partition.key not in self.awaiting

    def _begin(self, key: TopicPartition, *, from_committed: bool) -> None:
        """Look for where to begin; what was looked for before, in another assignment, is not it."""
        self.resets.forget(key)
        self.awaiting.pop(key, None)
        if from_committed:
            self.awaiting[key] = next(self._numbers)
        elif self._settings.reset_timestamp is not None:
            self.resets.want(key, self._settings.reset_timestamp)

    def _reset(self, partition: AssignedPartition) -> None:
        """Start over where auto.offset.reset says; with none, ``take`` will tell that there is no position."""
        if self._settings.reset_timestamp is None:
            self._place(partition, None)
        else:
            self._look_for(partition, self._settings.reset_timestamp)

    def _look_for(self, partition: AssignedPartition, timestamp: int) -> None:
        # In this order: an exception (Ctrl-C) between two of these leaves it to be found again, or where it is.
        self.resets.want(partition.key, timestamp)
        self.assignment.place(partition, None)
        self.awaiting.pop(partition.key, None)

    def _place(
        self, partition: AssignedPartition, position: int | None, offset_epoch: int = -1, topic_id: UUID | None = None
    ) -> None:
        self.assignment.place(partition, position, offset_epoch, topic_id)
        self.resets.forget(partition.key)
        self.awaiting.pop(partition.key, None)
