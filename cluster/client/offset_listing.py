"""ListOffsets as a client asks for it and reads it, for consumers and the admin alike.

Owns the special timestamps, the request and what its answer says about each partition. Does not own whom to ask, nor
what is asked again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import ListOffsetsRequest, ListOffsetsResponse
from cluster.topic_partition import TopicPartition

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
CONSUMER = -1
#: A replica id of ListOffsets for which every replica answers, not only the leader, and with its log end offset.
DEBUGGING_REPLICA = -2


@dataclass(frozen=True, slots=True)
class ListedOffset:
    """What ListOffsets found; -1 where there is no such record. ``leader_epoch`` is -1 if not told."""

    offset: int
    timestamp: int
    leader_epoch: int


def list_offsets_request(
    wanted: Mapping[TopicPartition, int],
    *,
    replica_id: int = CONSUMER,
    isolation_level: int = 0,
    leader_epochs: Mapping[TopicPartition, int] | None = None,
) -> ListOffsetsRequest:
    """The request for these timestamps. ``leader_epochs`` are those that the leader must have; -1 is any."""
    topic_class = ListOffsetsRequest.ListOffsetsTopic
    epochs = leader_epochs or {}
    by_topic: dict[str, list[ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition]] = {}
    for (topic, partition), timestamp in wanted.items():
        entry = topic_class.ListOffsetsPartition(
            partition_index=partition, current_leader_epoch=epochs.get((topic, partition), -1), timestamp=timestamp
        )
        by_topic.setdefault(topic, []).append(entry)
    return ListOffsetsRequest(
        replica_id=replica_id,
        isolation_level=isolation_level,
        topics=[topic_class(name=name, partitions=entries) for name, entries in by_topic.items()],
    )


def listed_offsets(response: ListOffsetsResponse) -> dict[TopicPartition, ListedOffset | ErrorCode]:
    """What the answer says about each partition."""
    answers: dict[TopicPartition, ListedOffset | ErrorCode] = {}
    for topic in response.topics:
        for result in topic.partitions:
            code = ErrorCode.of(result.error_code)
            answers[topic.name, result.partition_index] = (
                ListedOffset(result.offset, result.timestamp, result.leader_epoch) if code is ErrorCode.NONE else code
            )
    return answers
