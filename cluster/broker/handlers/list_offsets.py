"""ListOffsets (2): where a log begins, ends, or reaches a time.

Owns the layout. A partition that is named twice is answered once, INVALID_REQUEST, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator

from cluster.broker.exchange import Exchange
from cluster.broker.handlers.named_once import naming, repeated
from cluster.broker.portions import Steps
from cluster.broker.replicas.host import RequestRefused
from cluster.broker.replicas.offset_lookup import NOTHING, FoundOffset, WantedOffset, look_up
from cluster.broker.services import Services
from cluster.log.errors import LogError
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import ListOffsetsRequest, ListOffsetsResponse

MAX_TIMESTAMP_VERSION = 7
#: Below this version a client does not know OFFSET_NOT_AVAILABLE.
OFFSET_NOT_AVAILABLE_VERSION = 5


def handle(services: Services, request: ListOffsetsRequest, exchange: Exchange) -> Steps[ListOffsetsResponse]:
    topic_class = ListOffsetsResponse.ListOffsetsTopicResponse
    twice = yield from repeated(
        (topic.name, (asked.partition_index for asked in topic.partitions)) for topic in request.topics
    )
    wanted = yield from naming((topic.name, _wanted(topic)) for topic in request.topics)
    topics = []
    for name, entries in wanted.items():
        partitions = []
        for number, asked in entries.items():
            code, found = ErrorCode.INVALID_REQUEST, NOTHING
            if (name, number) not in twice:
                code, found = yield from _answer(services, asked, request, exchange.api_version)
            partitions.append(
                topic_class.ListOffsetsPartitionResponse(
                    partition_index=number,
                    error_code=code,
                    timestamp=found.timestamp,
                    offset=found.offset,
                    leader_epoch=found.leader_epoch,
                )
            )
            yield None
        topics.append(topic_class(name=name, partitions=partitions))
        yield None
    return ListOffsetsResponse(topics=topics)


def _wanted(topic: ListOffsetsRequest.ListOffsetsTopic) -> Iterator[tuple[int, WantedOffset]]:
    for asked in topic.partitions:
        index = asked.partition_index
        yield index, WantedOffset(topic.name, index, asked.timestamp, asked.current_leader_epoch)


def _answer(
    services: Services, wanted: WantedOffset, request: ListOffsetsRequest, version: int
) -> Steps[tuple[ErrorCode, FoundOffset]]:
    knows_max_timestamp = version >= MAX_TIMESTAMP_VERSION
    try:
        found = yield from look_up(
            services.replicas.find,
            wanted,
            request.replica_id,
            # 0, READ_UNCOMMITTED, in versions that have none.
            request.isolation_level,
            services.replicas.rules.listed_end,
            knows_max_timestamp=knows_max_timestamp,
        )
    except (RequestRefused, LogError) as error:
        code = error.error_code
        if code is ErrorCode.OFFSET_NOT_AVAILABLE and version < OFFSET_NOT_AVAILABLE_VERSION:
            code = ErrorCode.LEADER_NOT_AVAILABLE
        return code, NOTHING
    return ErrorCode.NONE, found
