"""OffsetDelete (47): what a group has committed for some partitions is forgotten."""

from __future__ import annotations

from typing import Any

from cluster.broker.exchange import Exchange
from cluster.broker.handlers.named_once import named
from cluster.broker.services import Services
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import response_class


async def handle(services: Services, request: Any, _exchange: Exchange) -> Any:
    response = response_class(ApiKey.OFFSET_DELETE)
    topics = named(
        (topic.name, ((each.partition_index, None) for each in topic.partitions)) for topic in request.topics
    )
    asked = [(topic, number) for topic, numbers in topics.items() for number in numbers]
    known = [each for each in asked if services.metadata.partition(*each) is not None]
    answer = await services.groups.delete_offsets(request.group_id, known)
    if answer.error_code is not ErrorCode.NONE:
        return response(error_code=answer.error_code, topics=[])
    topic_class = response.OffsetDeleteResponseTopic
    return response(
        error_code=ErrorCode.NONE,
        topics=[
            topic_class(
                name=topic,
                partitions=[
                    topic_class.OffsetDeleteResponsePartition(
                        partition_index=number,
                        error_code=answer.partitions.get((topic, number), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
                    )
                    for number in numbers
                ],
            )
            for topic, numbers in topics.items()
        ],
    )
