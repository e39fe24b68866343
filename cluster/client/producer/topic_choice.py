"""The partitions of one topic as a producer that sends sees them, and which of them the next record goes to.

Owns the sticky choice from batch to batch (KIP-794) and the load that it is drawn by. Does not own the drawing
(``partitioner.py``) nor the queues. Not thread-safe: the accumulator's lock is held.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from cluster.client.producer.partitioner import BuiltInPartitioner
from cluster.protocol.batch import HEADER_BYTES

if TYPE_CHECKING:
    from cluster.client.cluster_view import TopicView
    from cluster.client.producer.batch import ProducerBatch


class TopicChoice:
    """``open`` holds, by partition, the batch that takes records now: the accumulator's own.

    ``sticky_batch`` is that of the partitioner's partition, as far as it is known. What went to it counts when it is
    over, not record by record: that is when a switch may come, but for batches of compressed records that reach twice
    batch.size, which Kafka leaves in their middle.
    """

    __slots__ = ("_load", "available", "leaders", "open", "partition_count", "partitioner", "sticky_batch", "topic")

    def __init__(
        self,
        topic: str,
        partitioner: BuiltInPartitioner,
        opened: Mapping[int, ProducerBatch],
        load: Callable[[TopicChoice], Mapping[int, int] | None],
    ) -> None:
        self.topic = topic
        self.partitioner = partitioner
        self.open = opened
        self._load = load
        self.partition_count = 0
        self.available: Sequence[int] = ()
        self.leaders: Mapping[int, int] = {}
        self.sticky_batch: ProducerBatch | None = None

    def __repr__(self) -> str:
        return f"TopicChoice({self.topic}, {self.partition_count} partitions, {self.partitioner!r})"

    def update(self, view: TopicView) -> None:
        """The topic is known to be like this."""
        self.partition_count = max(view.partitions) + 1
        self.leaders = {index: each.leader for index, each in sorted(view.partitions.items()) if each.leader >= 0}
        self.available = tuple(self.leaders)
        self.partitioner.set_partitions(self.available, self.partition_count)

    def next_partition(self) -> int:
        """Where a record without a key goes that the sticky batch did not take, or that begins one."""
        batch = self.sticky_batch
        if batch is not None:
            batch.close()
            self.sticky_batch = None
            self.partitioner.update_load(self._load(self))
            self.partitioner.appended(batch.size_bytes - HEADER_BYTES, may_switch=True)
        return self.partitioner.partition
