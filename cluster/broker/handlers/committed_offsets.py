"""What OffsetCommit and TxnOffsetCommit share: which offsets a request names, and the answer for each partition.

A partition that is named twice is committed once, at its last offset, and one that does not exist has its error
without a question to the coordinator. Does not own who may commit, nor the layouts of the two requests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from cluster.broker.metadata_cache import MetadataCache
from cluster.broker.pauses import Pauses
from cluster.coordinator.group.requests import OffsetToCommit
from cluster.protocol.errors import ErrorCode
from cluster.topic_partition import TopicPartition

_Topic = TypeVar("_Topic")
_Partition = TypeVar("_Partition")


class AskedPartition(Protocol):
    """The offset of one partition, in either request."""

    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str | None


class AskedTopic(Protocol):
    """A topic of either request."""

    name: str

    @property
    def partitions(self) -> Sequence[AskedPartition]: ...


class AskedOffsets(NamedTuple):
    """``topics`` are the partitions by topic, in the order of the answer; of each there is either an offset to commit
    or an error."""

    topics: dict[str, list[int]]
    offsets: dict[TopicPartition, OffsetToCommit]
    errors: dict[TopicPartition, ErrorCode]


async def asked_offsets(
    topics: Sequence[AskedTopic], metadata: MetadataCache, pause: Pauses, retention_ms: int = -1
) -> AskedOffsets:
    """What is to be committed, each partition once."""
    named: dict[str, dict[int, AskedPartition]] = {}
    for topic in topics:
        entries = named.setdefault(topic.name, {})
        for each in topic.partitions:
            entries[each.partition_index] = each
            await pause()
        await pause()
    found = AskedOffsets({name: list(entries) for name, entries in named.items()}, {}, {})
    for name, entries in named.items():
        for number, asked in entries.items():
            if metadata.partition(name, number) is None:
                found.errors[name, number] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                found.offsets[name, number] = OffsetToCommit(
                    asked.committed_offset, asked.committed_metadata or "", asked.committed_leader_epoch, retention_ms
                )
            await pause()
    return found


async def answered(
    topics: Mapping[str, Sequence[int]],
    errors: Mapping[TopicPartition, ErrorCode],
    pause: Pauses,
    of_topic: Callable[[str, list[_Partition]], _Topic],
    of_partition: Callable[[int, ErrorCode], _Partition],
) -> list[_Topic]:
    """The answer, in the classes of the API."""
    told = []
    for name, numbers in topics.items():
        partitions = []
        for number in numbers:
            partitions.append(of_partition(number, errors[name, number]))
            await pause()
        told.append(of_topic(name, partitions))
        await pause()
    return told
