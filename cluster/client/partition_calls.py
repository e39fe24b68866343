"""What the leaders of partitions, or brokers one by one, answer: offsets, deletion of records, producers, sizes.

Owns the calls, whom each goes to, and that those partitions are asked for again whose leader is unknown or no longer
leads. Does not own topics and their settings (``cluster_calls``) nor the repetition (``retried_calls``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from cluster.client.argument_checks import checked_brokers, checked_integer, checked_keys, checked_numbers
from cluster.client.cluster_calls import ClusterCalls
from cluster.client.errors import AdminError
from cluster.client.offset_listing import (
    CONSUMER,
    DEBUGGING_REPLICA,
    LATEST_TIMESTAMP,
    ListedOffset,
    list_offsets_request,
    listed_offsets,
)
from cluster.client.retried_calls import Retriable
from cluster.protocol.by_topic import by_topic
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import DeleteRecordsRequest, DescribeLogDirsRequest, DescribeProducersRequest
from cluster.topic_partition import TopicPartition, partition_name

Wanted = TypeVar("Wanted")
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class ProducerState:
    """What a leader remembers of a producer; -1 where there is none."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_txn_start_offset: int


@dataclass(frozen=True, slots=True)
class ReplicaSize:
    """One replica in a log directory. ``offset_lag``: offsets by which it is behind the high watermark."""

    size_bytes: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """One log directory of a broker. ``usable_bytes`` is -1 if not told."""

    error_code: ErrorCode
    usable_bytes: int
    replicas: Mapping[TopicPartition, ReplicaSize]


class PartitionCalls(ClusterCalls):
    """Every call raises ``TimeoutError`` at the deadline, and ``AdminError`` for what waiting does not change."""

    async def list_offsets(
        self, wanted: Mapping[TopicPartition, int], *, isolation_level: int = 0
    ) -> dict[TopicPartition, ListedOffset]:
        """Offsets by timestamp (or ``LATEST_TIMESTAMP``, ``EARLIEST_TIMESTAMP``), asked of the leaders."""
        times = checked_numbers(wanted, "times of partitions", "a timestamp")
        checked_integer(isolation_level, "the isolation level", 8)

        async def ask(
            leader: int, asked: Mapping[TopicPartition, int]
        ) -> Mapping[TopicPartition, ListedOffset | ErrorCode]:
            return await self._list_offsets_of(leader, asked, CONSUMER, isolation_level)

        return await self._of_leaders("ListOffsets", "offset of", times, ask)

    async def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Forget what lies below these offsets (-1: the high watermark). Returns where each log begins then."""
        offsets = checked_numbers(before, "offsets of partitions", "an offset")
        topic_class = DeleteRecordsRequest.DeleteRecordsTopic

        async def ask(leader: int, asked: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int | ErrorCode]:
            order = DeleteRecordsRequest(
                topics=[
                    topic_class(
                        name=topic,
                        partitions=[
                            topic_class.DeleteRecordsPartition(partition_index=number, offset=asked[topic, number])
                            for number in numbers
                        ],
                    )
                    for topic, numbers in by_topic(sorted(asked)).items()
                ],
                timeout_ms=self._request_timeout_ms,
            )
            response = await self._ask_broker(leader, order)
            return {
                (topic.name, result.partition_index): ErrorCode.of(result.error_code) or result.low_watermark
                for topic in response.topics
                for result in topic.partitions
            }

        return await self._of_leaders("DeleteRecords", "records of", offsets, ask)

    async def describe_producers(
        self, partitions: Iterable[TopicPartition], broker_id: int | None = None
    ) -> dict[TopicPartition, list[ProducerState]]:
        """The producers that the leader of each partition remembers, or that this broker does, which has a replica."""
        wanted = dict.fromkeys(checked_keys(partitions))
        if broker_id is None:
            return await self._of_leaders("DescribeProducers", "producers of", wanted, self._producers_of)
        checked_integer(broker_id, "the id of a broker", 32)

        async def attempt() -> dict[TopicPartition, list[ProducerState]]:
            await self._metadata([])
            found = {}
            for key, answer in (await self._producers_of(broker_id, wanted)).items():
                if isinstance(answer, ErrorCode):
                    raise AdminError(answer, f"producers of {partition_name(key)} on broker {broker_id}")
                found[key] = answer
            return found

        return await self._retrying("DescribeProducers", attempt)

    async def _producers_of(
        self, broker_id: int, asked: Mapping[TopicPartition, None]
    ) -> Mapping[TopicPartition, list[ProducerState] | ErrorCode]:
        topic_class = DescribeProducersRequest.TopicRequest
        question = DescribeProducersRequest(
            topics=[
                topic_class(name=topic, partition_indexes=numbers) for topic, numbers in by_topic(sorted(asked)).items()
            ]
        )
        response = await self._ask_broker(broker_id, question)
        return {
            (topic.name, result.partition_index): ErrorCode.of(result.error_code)
            or [
                ProducerState(
                    entry.producer_id,
                    entry.producer_epoch,
                    entry.last_sequence,
                    entry.last_timestamp,
                    entry.coordinator_epoch,
                    entry.current_txn_start_offset,
                )
                for entry in result.active_producers
            ]
            for topic in response.topics
            for result in topic.partitions
        }

    async def log_directories(self, broker_ids: Iterable[int] | None = None) -> dict[int, dict[str, LogDirectory]]:
        """Broker id -> path -> what is there, of these brokers or of all that are alive."""
        wanted = None if broker_ids is None else checked_brokers(broker_ids)

        async def attempt() -> dict[int, dict[str, LogDirectory]]:
            view = await self._metadata([])
            chosen = view.brokers if wanted is None else wanted
            return {broker_id: await self._log_directories_of(broker_id) for broker_id in chosen}

        return await self._retrying("DescribeLogDirs", attempt)

    async def _log_directories_of(self, broker_id: int) -> dict[str, LogDirectory]:
        response = await self._ask_broker(broker_id, DescribeLogDirsRequest(topics=None))
        return {
            result.log_dir: LogDirectory(
                ErrorCode.of(result.error_code),
                result.usable_bytes,
                {
                    (topic.name, entry.partition_index): ReplicaSize(
                        entry.partition_size, entry.offset_lag, entry.is_future_key
                    )
                    for topic in result.topics
                    for entry in topic.partitions
                },
            )
            for result in response.results
        }

    async def replica_end_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, dict[int, int]]:
        """The log end offset of each replica, by broker id. All live or not at all: a dead replica is waited for."""
        keys = checked_keys(partitions)

        async def attempt() -> dict[TopicPartition, dict[int, int]]:
            view = await self._metadata(sorted({topic for topic, _ in keys}))
            by_broker: dict[int, dict[TopicPartition, int]] = {}
            for topic, partition in keys:
                described = view.partition(topic, partition)
                if described is None:
                    raise Retriable(f"{topic}-{partition} is unknown")
                for broker_id in described.replicas:
                    by_broker.setdefault(broker_id, {})[topic, partition] = LATEST_TIMESTAMP
            offsets: dict[TopicPartition, dict[int, int]] = {}
            for broker_id, asked in by_broker.items():
                for key, answer in (await self._list_offsets_of(broker_id, asked, DEBUGGING_REPLICA, 0)).items():
                    if not isinstance(answer, ListedOffset):
                        raise Retriable(f"{key[0]}-{key[1]} on broker {broker_id}: {answer.name}")
                    offsets.setdefault(key, {})[broker_id] = answer.offset
            return offsets

        return await self._retrying("log end offsets", attempt)

    async def _list_offsets_of(
        self, broker_id: int, wanted: Mapping[TopicPartition, int], replica_id: int, isolation_level: int
    ) -> dict[TopicPartition, ListedOffset | ErrorCode]:
        request = list_offsets_request(wanted, replica_id=replica_id, isolation_level=isolation_level)
        return listed_offsets(await self._ask_broker(broker_id, request))

    async def _of_leaders(
        self,
        what: str,
        whose: str,
        wanted: Mapping[TopicPartition, Wanted],
        ask: Callable[[int, Mapping[TopicPartition, Wanted]], Awaitable[Mapping[TopicPartition, Found | ErrorCode]]],
    ) -> dict[TopicPartition, Found]:
        """Ask each leader about its partitions, until all have answered. ``whose`` begins the text of an error."""
        outstanding = dict(wanted)
        found: dict[TopicPartition, Found] = {}

        async def attempt() -> dict[TopicPartition, Found]:
            view = await self._metadata(sorted({topic for topic, _ in outstanding}))
            by_leader = view.by_leader(outstanding)
            without_leader = by_leader.pop(-1, {})
            for leader, asked in by_leader.items():
                for key, answer in (await ask(leader, asked)).items():
                    if not isinstance(answer, ErrorCode):
                        found[key] = answer
                        del outstanding[key]
                    elif not answer.retriable:
                        raise AdminError(answer, f"{whose} {key[0]}-{key[1]}")
            if outstanding:
                raise Retriable(
                    f"no leader for {sorted(without_leader)}" if without_leader else "not all leaders answered"
                )
            return found

        return await self._retrying(what, attempt)
