"""DescribeLogDirs (35): how much of the disk each replica here takes, and how far it is behind.

Owns the answer. There is one data directory; none of its logs is ever moved to another one.
"""

from __future__ import annotations

from cluster.broker.exchange import Exchange
from cluster.broker.portions import Steps, chunks
from cluster.broker.replicas.replica import Replica
from cluster.broker.services import Services
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import DescribeLogDirsRequest, DescribeLogDirsResponse
from cluster.topic_partition import TopicPartition

#: Partitions that are asked for, before others have their turn.
AT_ONCE = 200

_Topic = DescribeLogDirsResponse.DescribeLogDirsResult.DescribeLogDirsTopic


def handle(services: Services, request: DescribeLogDirsRequest, _exchange: Exchange) -> Steps[DescribeLogDirsResponse]:
    wanted: set[TopicPartition] | None = None
    if request.topics is not None:
        wanted = set()
        for topic in request.topics:
            for some in chunks(topic.partitions, AT_ONCE):
                wanted.update((topic.topic, number) for number in some)
                yield None
    topics: dict[str, list[_Topic.DescribeLogDirsPartition]] = {}
    # Others may come or go meanwhile.
    for (name, number), partition in list(services.replicas.partitions.items()):
        if wanted is None or (name, number) in wanted:
            topics.setdefault(name, []).append(
                _Topic.DescribeLogDirsPartition(
                    partition_index=number,
                    partition_size=partition.log.size_bytes,
                    offset_lag=_lag(partition),
                    is_future_key=False,
                )
            )
        yield None
    return DescribeLogDirsResponse(
        error_code=ErrorCode.NONE,
        results=[
            DescribeLogDirsResponse.DescribeLogDirsResult(
                error_code=ErrorCode.NONE,
                log_dir=services.config.data_directory,
                topics=[_Topic(name=name, partitions=partitions) for name, partitions in topics.items()],
                usable_bytes=services.usable_bytes(),
            )
        ],
    )


def _lag(partition: Replica) -> int:
    """How far the high watermark is ahead of this replica's end; 0 if it is not."""
    return max(0, partition.high_watermark - partition.log.log_end_offset)
