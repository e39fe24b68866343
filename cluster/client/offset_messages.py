"""OffsetCommit and OffsetFetch as a client asks and reads them, for consumers and the admin alike.

Owns the requests and what an answer says about each partition. Does not own whom to ask, nor what is asked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cluster.client.committed_offset import OffsetAndMetadata
from cluster.protocol.by_topic import by_topic
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from cluster.topic_partition import TopicPartition

#: The broker's own retention (versions 2 to 4).
_DEFAULT_RETENTION_MS = -1

_CommitTopic = OffsetCommitRequest.OffsetCommitRequestTopic
_FetchGroup = OffsetFetchRequest.OffsetFetchRequestGroup


def commit_request(
    group_id: str,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    *,
    generation_id: int = -1,
    member_id: str = "",
    group_instance_id: str | None = None,
) -> OffsetCommitRequest:
    """Without a generation it is a simple consumer's, which an empty group alone takes."""

    def entry(topic: str, number: int) -> OffsetCommitRequest.OffsetCommitRequestTopic.OffsetCommitRequestPartition:
        place = offsets[topic, number]
        return _CommitTopic.OffsetCommitRequestPartition(
            partition_index=number,
            committed_offset=place.offset,
            committed_leader_epoch=place.leader_epoch,
            committed_metadata=place.metadata,
        )

    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation_id,
        member_id=member_id,
        group_instance_id=group_instance_id,
        retention_time_ms=_DEFAULT_RETENTION_MS,
        topics=[
            _CommitTopic(name=topic, partitions=[entry(topic, number) for number in numbers])
            for topic, numbers in by_topic(offsets).items()
        ],
    )


def commit_codes(response: OffsetCommitResponse) -> dict[TopicPartition, ErrorCode]:
    """What became of each partition."""
    return {
        (topic.name, each.partition_index): ErrorCode.of(each.error_code)
        for topic in response.topics
        for each in topic.partitions
    }


def fetch_request(
    group_id: str, partitions: Iterable[TopicPartition] | None, *, require_stable: bool
) -> OffsetFetchRequest:
    """None asks for all that the group has committed. ``require_stable`` is KIP-447's."""
    grouped = None if partitions is None else by_topic(partitions)
    topics = (
        None
        if grouped is None
        else [
            OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=numbers)
            for topic, numbers in grouped.items()
        ]
    )
    group_topics = (
        None
        if grouped is None
        else [
            _FetchGroup.OffsetFetchRequestTopics(name=topic, partition_indexes=numbers)
            for topic, numbers in grouped.items()
        ]
    )
    return OffsetFetchRequest(
        group_id=group_id,
        topics=topics,
        groups=[_FetchGroup(group_id=group_id, topics=group_topics)],
        require_stable=require_stable,
    )


def fetched_offsets(
    response: OffsetFetchResponse,
) -> dict[TopicPartition, OffsetAndMetadata | ErrorCode | None] | ErrorCode:
    """What is committed of each partition, None for nothing; or the error of the whole group."""
    found = response.groups[0] if response.groups else response
    code = ErrorCode.of(found.error_code)
    if code is not ErrorCode.NONE:
        return code
    offsets: dict[TopicPartition, OffsetAndMetadata | ErrorCode | None] = {}
    for topic in found.topics:
        for each in topic.partitions:
            key = topic.name, each.partition_index
            partition_code = ErrorCode.of(each.error_code)
            if partition_code is not ErrorCode.NONE:
                offsets[key] = partition_code
            elif each.committed_offset < 0:
                offsets[key] = None
            else:
                offsets[key] = OffsetAndMetadata(
                    each.committed_offset, each.committed_leader_epoch, each.metadata or ""
                )
    return offsets
