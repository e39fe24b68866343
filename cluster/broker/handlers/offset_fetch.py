"""OffsetFetch (9): what a group has committed, for some partitions or for all; several groups from version 8 on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from cluster.broker.exchange import Exchange
from cluster.broker.portions import Steps, chunks
from cluster.broker.services import Services
from cluster.coordinator.group.answers import FetchedOffset
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import OffsetFetchRequest, OffsetFetchResponse
from cluster.topic_partition import TopicPartition

_Asked = (
    OffsetFetchRequest.OffsetFetchRequestTopic | OffsetFetchRequest.OffsetFetchRequestGroup.OffsetFetchRequestTopics
)
_Group = OffsetFetchResponse.OffsetFetchResponseGroup
_Topic = TypeVar("_Topic", OffsetFetchResponse.OffsetFetchResponseTopic, _Group.OffsetFetchResponseTopics)
_Partition = (
    OffsetFetchResponse.OffsetFetchResponseTopic.OffsetFetchResponsePartition
    | _Group.OffsetFetchResponseTopics.OffsetFetchResponsePartitions
)

#: From this version on a group has an error, and no topics stand for all.
_GROUP_ERROR_VERSION = 2
_BATCH_VERSION = 8
#: Partitions that are looked up before others have their turn.
AT_ONCE = 100


def handle(services: Services, request: OffsetFetchRequest, exchange: Exchange) -> Steps[OffsetFetchResponse]:
    version = exchange.api_version
    if version < _BATCH_VERSION:
        topic_class = OffsetFetchResponse.OffsetFetchResponseTopic
        layout = topic_class, topic_class.OffsetFetchResponsePartition
        error_code, topics = yield from _fetch(services, request.group_id, request.topics, request, version, layout)
        return OffsetFetchResponse(topics=topics, error_code=error_code, groups=[])
    groups = []
    for group in {each.group_id: each for each in request.groups}.values():
        yield None
        of_group = _Group.OffsetFetchResponseTopics, _Group.OffsetFetchResponseTopics.OffsetFetchResponsePartitions
        error_code, topics_of_group = yield from _fetch(
            services, group.group_id, group.topics, request, version, of_group
        )
        groups.append(_Group(group_id=group.group_id, topics=topics_of_group, error_code=error_code))
    return OffsetFetchResponse(groups=groups, topics=[])


def _fetch(
    services: Services,
    group_id: str,
    topics: Sequence[_Asked] | None,
    request: OffsetFetchRequest,
    version: int,
    layout: tuple[type[_Topic], type[_Partition]],
) -> Steps[tuple[ErrorCode, list[_Topic]]]:
    """The error of the group, and its topics, whose classes and those of their partitions are in ``layout``."""
    coordinator, is_stable_wanted = services.groups.coordinator, request.require_stable
    wanted: dict[TopicPartition, None] = {}
    group = coordinator.group(group_id)
    if topics is None and group is not None:
        wanted = dict.fromkeys(group.offsets.committed)
    for topic in topics or ():
        yield None
        for some in chunks(topic.partition_indexes, AT_ONCE):
            wanted.update(((topic.name, number), None) for number in some)
            yield None
    topic_class, partition_class = layout
    answered: dict[str, list[Any]] = {}
    # Once at least, for the error of the group.
    for asked in chunks(list(wanted), AT_ONCE) if wanted else ([],):
        error_code, fetched = coordinator.fetch_offsets(group_id, asked, require_stable=is_stable_wanted)
        if error_code is not ErrorCode.NONE:
            if version >= _GROUP_ERROR_VERSION:
                return error_code, []
            fetched = dict.fromkeys(asked, FetchedOffset(error_code))
        for (name, number), found in fetched.items():
            answered.setdefault(name, []).append(
                partition_class(
                    partition_index=number,
                    committed_offset=found.offset,
                    committed_leader_epoch=found.leader_epoch,
                    metadata=found.metadata,
                    error_code=found.error_code,
                )
            )
        yield None
    told = []
    for name, partitions in answered.items():
        told.append(topic_class(name=name, partitions=partitions))
        yield None
    return ErrorCode.NONE, told
