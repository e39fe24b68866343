"""OffsetDelete (47): what a group has committed for some partitions is forgotten."""

from __future__ import annotations

from cluster.broker.exchange import Exchange
from cluster.broker.pauses import Pauses
from cluster.broker.services import Services
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import OffsetDeleteRequest, OffsetDeleteResponse


async def handle(services: Services, request: OffsetDeleteRequest, _exchange: Exchange) -> OffsetDeleteResponse:
    pause = Pauses(services.shares)
    topics: dict[str, dict[int, None]] = {}
    known = []
    for topic in request.topics:
        numbers = topics.setdefault(topic.name, {})
        for each in topic.partitions:
            number = each.partition_index
            if number not in numbers and services.metadata.partition(topic.name, number) is not None:
                known.append((topic.name, number))
            numbers[number] = None
            await pause()
    answer = await services.groups.delete_offsets(request.group_id, known)
    if answer.error_code is not ErrorCode.NONE:
        return OffsetDeleteResponse(error_code=answer.error_code, topics=[])
    topic_class = OffsetDeleteResponse.OffsetDeleteResponseTopic
    answered = []
    for name, numbers in topics.items():
        partitions = []
        for number in numbers:
            error_code = answer.partitions.get((name, number), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            partitions.append(topic_class.OffsetDeleteResponsePartition(partition_index=number, error_code=error_code))
            await pause()
        answered.append(topic_class(name=name, partitions=partitions))
    return OffsetDeleteResponse(error_code=ErrorCode.NONE, topics=answered)
