"""Admin: questions and orders to a cluster, asked again until its deadline as long as the answer may change.

Owns the questions about topics and offsets, and what a retry means for orders that may have been carried out already.
The other orders are in ``cluster_calls``, the choice of broker and the retries in ``asking``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cluster.client.asking import Retriable, parse_address
from cluster.client.cluster_calls import ClusterCalls
from cluster.client.cluster_view import ClusterView, TopicView
from cluster.client.errors import AdminError
from cluster.client.new_topic import NewTopic, creatable
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class

__all__ = [
    "EARLIEST_TIMESTAMP",
    "LATEST_TIMESTAMP",
    "Admin",
    "AdminError",
    "ListedOffset",
    "NewTopic",
    "TopicPartition",
    "parse_address",
]

TopicPartition = tuple[str, int]

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
#: A replica id of ListOffsets for which every replica answers, not only the leader, and with its log end offset.
DEBUGGING_REPLICA = -2
_CONSUMER = -1


@dataclass(frozen=True, slots=True)
class ListedOffset:
    """What ListOffsets found; -1 where there is no such record. ``leader_epoch`` is -1 if not told."""

    offset: int
    timestamp: int
    leader_epoch: int


class Admin(ClusterCalls):
    """``bootstrap`` is ``host:port`` strings. Every call may take ``timeout_ms`` and then raises ``TimeoutError``.

    Answers that do not change by waiting raise ``AdminError``. Close it after use.
    """

    async def api_versions(self, host_port: str) -> dict[int, tuple[int, int]]:
        """The version windows that one broker advertises, by API key."""
        address = parse_address(host_port)

        async def attempt() -> dict[int, tuple[int, int]]:
            return dict((await self._node(address)).windows)

        return await self._retrying(f"ApiVersions of {host_port}", attempt)

    async def metadata(self, topics: Sequence[str] | None = None) -> ClusterView:
        """Brokers, controller, and these topics (None: all) as they are now; topics carry their own error codes."""
        return await self._retrying("Metadata", lambda: self._metadata(topics))

    async def describe(self, topics: Sequence[str]) -> dict[str, TopicView]:
        """These topics, as soon as every partition has a leader."""

        async def attempt() -> dict[str, TopicView]:
            view = await self._metadata(topics)
            for name in topics:
                if name not in view.topics or not view.topics[name].is_ready:
                    raise Retriable(f"{name} is not ready")
            return {name: view.topics[name] for name in topics}

        return await self._retrying(f"topics {', '.join(topics)}", attempt)

    async def create_topics(self, topics: Sequence[NewTopic]) -> None:
        """Create topics. An existing topic is an error, unless an attempt of this very call may have created it."""
        outstanding = {topic.name: topic for topic in topics}
        # Topics that a lost answer, or a timeout of the controller, may have left created.
        unsure: set[str] = set()

        async def attempt() -> None:
            names = set(outstanding)
            try:
                response = await self._ask_controller(
                    ApiKey.CREATE_TOPICS,
                    topics=[creatable(topic) for topic in outstanding.values()],
                    timeout_ms=self._request_timeout_ms,
                )
            except OSError:
                unsure.update(names)
                raise
            for result in response.topics:
                code = ErrorCode.of(result.error_code)
                if code is ErrorCode.NONE or (code is ErrorCode.TOPIC_ALREADY_EXISTS and result.name in unsure):
                    outstanding.pop(result.name, None)
                elif code is ErrorCode.REQUEST_TIMED_OUT:
                    unsure.add(result.name)
                elif not code.retriable:
                    raise AdminError(code, f"{result.name}: {result.error_message or 'not created'}")
            if outstanding:
                raise Retriable(f"not created: {', '.join(outstanding)}")

        await self._retrying("CreateTopics", attempt)

    async def list_offsets(
        self, wanted: Mapping[TopicPartition, int], *, isolation_level: int = 0
    ) -> dict[TopicPartition, ListedOffset]:
        """Offsets by timestamp (or ``LATEST_TIMESTAMP``, ``EARLIEST_TIMESTAMP``), asked of the leaders."""
        outstanding = dict(wanted)
        found: dict[TopicPartition, ListedOffset] = {}

        async def attempt() -> dict[TopicPartition, ListedOffset]:
            view = await self._metadata(sorted({topic for topic, _ in outstanding}))
            by_leader: dict[int, dict[TopicPartition, int]] = {}
            for (topic, partition), timestamp in outstanding.items():
                described = view.topics[topic].partitions.get(partition) if topic in view.topics else None
                leader = -1 if described is None else described.leader
                by_leader.setdefault(leader, {})[topic, partition] = timestamp
            without_leader = by_leader.pop(-1, {})
            for leader, asked in by_leader.items():
                listed = await self._list_offsets_of(leader, asked, _CONSUMER, isolation_level)
                for key, answer in listed.items():
                    if isinstance(answer, ListedOffset):
                        found[key] = answer
                        del outstanding[key]
                    elif not answer.retriable:
                        raise AdminError(answer, f"offset of {key[0]}-{key[1]}")
            if outstanding:
                raise Retriable(
                    f"no leader for {sorted(without_leader)}" if without_leader else "not all leaders answered"
                )
            return found

        return await self._retrying("ListOffsets", attempt)

    async def replica_end_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, dict[int, int]]:
        """The log end offset of each replica, by broker id. All live or not at all: a dead replica is waited for."""

        async def attempt() -> dict[TopicPartition, dict[int, int]]:
            view = await self._metadata(sorted({topic for topic, _ in partitions}))
            by_broker: dict[int, dict[TopicPartition, int]] = {}
            for topic, partition in partitions:
                described = view.topics[topic].partitions.get(partition) if topic in view.topics else None
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

    # One attempt each.

    async def _list_offsets_of(
        self, broker_id: int, wanted: Mapping[TopicPartition, int], replica_id: int, isolation_level: int
    ) -> dict[TopicPartition, ListedOffset | ErrorCode]:
        message_class = request_class(ApiKey.LIST_OFFSETS)
        topic_class = message_class.ListOffsetsTopic
        by_topic: dict[str, list[Any]] = {}
        for (topic, partition), timestamp in wanted.items():
            entry = topic_class.ListOffsetsPartition(
                partition_index=partition, current_leader_epoch=-1, timestamp=timestamp
            )
            by_topic.setdefault(topic, []).append(entry)
        response = await self._ask_broker(
            broker_id,
            ApiKey.LIST_OFFSETS,
            replica_id=replica_id,
            isolation_level=isolation_level,
            topics=[topic_class(name=name, partitions=entries) for name, entries in by_topic.items()],
        )
        answers: dict[TopicPartition, ListedOffset | ErrorCode] = {}
        for topic in response.topics:
            for result in topic.partitions:
                code = ErrorCode.of(result.error_code)
                answers[topic.name, result.partition_index] = (
                    ListedOffset(result.offset, result.timestamp, result.leader_epoch)
                    if code is ErrorCode.NONE
                    else code
                )
        return answers
