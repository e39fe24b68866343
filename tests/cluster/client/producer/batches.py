"""Batches and clusters for tests of the accumulator, the identity and the sender."""

from __future__ import annotations

from collections.abc import Mapping

from cluster.client.cluster_view import BrokerAddress, ClusterView, PartitionView, TopicView
from cluster.client.producer.batch import ProducerBatch
from cluster.protocol.errors import ErrorCode

#: (leader, leader epoch) of each partition of topic "t".
Leaders = Mapping[int, tuple[int, int]]


def a_batch(
    partition: int = 0, records: int = 1, created_ms: int = 0, limit_bytes: int = 1_000, value: bytes = b"v"
) -> ProducerBatch:
    batch = ProducerBatch("t", partition, limit_bytes, 0, created_ms)
    for _ in range(records):
        batch.try_append(created_ms, None, value, (), None)
    return batch


def a_view(leaders: Leaders) -> ClusterView:
    nodes = {leader for leader, _epoch in leaders.values() if leader >= 0}
    partitions = {
        index: PartitionView(index, ErrorCode.NONE, leader, epoch, (), (), ())
        for index, (leader, epoch) in leaders.items()
    }
    topics = {"t": TopicView("t", None, ErrorCode.NONE, False, partitions)}
    return ClusterView(None, -1, {node: BrokerAddress(node, "b", 1) for node in nodes}, topics)
