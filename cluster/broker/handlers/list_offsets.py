"""ListOffsets (2): where a log begins, ends, or reaches a time (Kafka's UnifiedLog.fetchOffsetByTimestamp).

Answered by the leader, except to a debugging consumer (replica id -2), to whom every replica answers for itself.
A partition that is named twice is answered once, INVALID_REQUEST, as in Kafka.
"""

from __future__ import annotations

from typing import Any

from cluster.broker.handlers.naming import named, repeated
from cluster.broker.portions import Steps
from cluster.broker.replicas.partition import Partition
from cluster.broker.replicas.values import CONSUMER, Refused
from cluster.broker.server import Exchange
from cluster.broker.services import Services
from cluster.log.errors import LogError
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import response_class

DEBUGGING_CONSUMER = -2
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
MAX_TIMESTAMP_VERSION = 7
#: Below this version a client does not know OFFSET_NOT_AVAILABLE.
OFFSET_NOT_AVAILABLE_VERSION = 5

#: (timestamp, offset, leader epoch)
Found = tuple[int, int, int]
NOTHING: Found = (-1, -1, -1)


def handle(services: Services, request: Any, exchange: Exchange) -> Steps[Any]:
    response = response_class(ApiKey.LIST_OFFSETS)
    topic_class = response.ListOffsetsTopicResponse
    twice = repeated((topic.name, (asked.partition_index for asked in topic.partitions)) for topic in request.topics)
    wanted = named(
        (topic.name, ((asked.partition_index, asked) for asked in topic.partitions)) for topic in request.topics
    )
    topics = []
    for name, entries in wanted.items():
        partitions = []
        for asked in entries.values():
            code, (timestamp, offset, epoch) = ErrorCode.INVALID_REQUEST, NOTHING
            if (name, asked.partition_index) not in twice:
                code, (timestamp, offset, epoch) = yield from _answer(
                    services, name, asked, request.replica_id, exchange.api_version
                )
            partitions.append(
                topic_class.ListOffsetsPartitionResponse(
                    partition_index=asked.partition_index,
                    error_code=code,
                    timestamp=timestamp,
                    offset=offset,
                    leader_epoch=epoch,
                )
            )
            yield None
        topics.append(topic_class(name=name, partitions=partitions))
    return response(topics=topics)


def _answer(
    services: Services, topic: str, asked: Any, replica_id: int, version: int
) -> Steps[tuple[ErrorCode, Found]]:
    try:
        partition = services.replicas.find(topic, asked.partition_index)
        if replica_id == DEBUGGING_CONSUMER:
            # A look at this very replica, leader or not, with its own log end (Kafka's debugging consumer).
            found = yield from _find(partition, asked.timestamp, partition.log.log_end_offset, version)
            return ErrorCode.NONE, found
        leader = partition.leading(asked.current_leader_epoch)
        if replica_id != CONSUMER:
            found = yield from _find(partition, asked.timestamp, partition.log.log_end_offset, version)
            return ErrorCode.NONE, found
        found = yield from _find(partition, asked.timestamp, leader.high_watermark, version)
        if not leader.knows_its_end and (asked.timestamp == LATEST or (found == NOTHING and asked.timestamp >= 0)):
            # A new leader's watermark lags behind what its predecessor has shown: no answer is better than a step back.
            raise Refused(ErrorCode.OFFSET_NOT_AVAILABLE)
        return ErrorCode.NONE, found
    except (Refused, LogError) as error:
        code = error.error_code
        if code is ErrorCode.OFFSET_NOT_AVAILABLE and version < OFFSET_NOT_AVAILABLE_VERSION:
            code = ErrorCode.LEADER_NOT_AVAILABLE
        return code, NOTHING


def _find(partition: Partition, timestamp: int, upper_bound_offset: int, version: int) -> Steps[Found]:
    """Raises ``Refused`` for a timestamp of a later version, ``LogError``."""
    log = partition.log
    if timestamp == LATEST:
        return -1, upper_bound_offset, partition.leader_epoch
    if timestamp == EARLIEST:
        return -1, log.log_start_offset, _epoch(partition, log.log_start_offset)
    if timestamp == MAX_TIMESTAMP and version >= MAX_TIMESTAMP_VERSION:
        timestamp = log.max_timestamp
        if timestamp < 0:
            return NOTHING
    elif timestamp < 0:
        raise Refused(ErrorCode.UNSUPPORTED_VERSION, f"timestamp {timestamp}")
    found = yield from log.search_timestamp(timestamp)
    if found is None or found[1] >= upper_bound_offset:
        return NOTHING
    found_timestamp, offset = found
    return found_timestamp, offset, _epoch(partition, offset)


def _epoch(partition: Partition, offset: int) -> int:
    epoch = partition.log.epochs.epoch_for_offset(offset)
    return -1 if epoch is None else epoch
