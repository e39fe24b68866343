"""Orders to a cluster: delete and grow topics, change configurations, elect leaders, move partitions.

Owns the calls and how their answers read. A repeated order of these does no harm: what has happened already is said so
by an error that is taken for success where an attempt of the same call may have done it. Does not own whom to ask.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from cluster.client.argument_checks import (
    checked_brokers,
    checked_configs,
    checked_integer,
    checked_key,
    checked_keys,
    checked_mapping,
    checked_text,
    checked_topic,
    checked_topics,
)
from cluster.client.errors import AdminError
from cluster.client.retried_calls import Asker, Retriable
from cluster.protocol.by_topic import by_topic
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    ListPartitionReassignmentsRequest,
    Request,
)
from cluster.topic_partition import TopicPartition

_Answer = TypeVar("_Answer")

#: ``resource_type`` of the configuration calls.
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
#: Operations of IncrementalAlterConfigs.
SET, DELETE = 0, 1
#: Types of ElectLeaders.
PREFERRED, UNCLEAN = 0, 1


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A partition on its way: ``replicas`` are all it has now."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class ClusterCalls(Asker):
    """Every call raises ``TimeoutError`` at the deadline, and ``AdminError`` for what waiting does not change."""

    async def delete_topics(self, names: Sequence[str]) -> None:
        """Returns when they are gone. A name that was there at no attempt is an error."""
        outstanding = set(checked_topics(names))
        unsure: set[str] = set()

        async def attempt() -> None:
            asked = sorted(outstanding)
            order = DeleteTopicsRequest(
                topics=[DeleteTopicsRequest.DeleteTopicState(name=name, topic_id=None) for name in asked],
                topic_names=asked,
                timeout_ms=self._request_timeout_ms,
            )
            try:
                response = await self._ask_controller(order)
            except OSError:
                unsure.update(asked)
                raise
            for result in response.responses:
                name, code = result.name or "", ErrorCode.of(result.error_code)
                if code is ErrorCode.NONE or (code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and name in unsure):
                    outstanding.discard(name)
                elif code is ErrorCode.REQUEST_TIMED_OUT:
                    unsure.add(name)
                else:
                    _raise_unless_retriable(code, name)
            if outstanding:
                raise Retriable(f"not deleted: {', '.join(sorted(outstanding))}")

        await self._retrying("DeleteTopics", attempt)

    async def create_partitions(self, topic: str, total: int) -> None:
        """Have ``total`` partitions in a topic, which must have fewer now."""
        checked_topic(topic)
        checked_integer(total, f"the number of partitions of {topic}", 32)

        async def attempt() -> None:
            order = CreatePartitionsRequest(
                topics=[CreatePartitionsRequest.CreatePartitionsTopic(name=topic, count=total, assignments=None)],
                timeout_ms=self._request_timeout_ms,
                validate_only=False,
            )
            response = await self._ask_controller(order)
            for result in response.results:
                require(result.error_code, f"{topic}: {result.error_message or 'no partitions added'}")

        await self._retrying("CreatePartitions", attempt)

    async def set_config(
        self, resource_type: int, name: str, values: Mapping[str, str | None], *, validate_only: bool = False
    ) -> None:
        """Set what has a value, delete what has None. Of a broker its own settings are asked about itself."""
        _check_resource(resource_type, name)
        configs = checked_configs(values)

        async def attempt() -> None:
            resource = IncrementalAlterConfigsRequest.AlterConfigsResource
            entries = [
                resource.AlterableConfig(name=key, config_operation=DELETE if value is None else SET, value=value)
                for key, value in configs.items()
            ]
            order = IncrementalAlterConfigsRequest(
                resources=[resource(resource_type=resource_type, resource_name=name, configs=entries)],
                validate_only=validate_only,
            )
            response = await self._ask_about(resource_type, name, order)
            for result in response.responses:
                require(result.error_code, f"{name}: {result.error_message or 'not changed'}")

        await self._retrying("IncrementalAlterConfigs", attempt)

    async def config(self, resource_type: int, name: str) -> dict[str, str | None]:
        """What holds for a topic or a broker (the empty name: what is set on all of them)."""
        _check_resource(resource_type, name)

        async def attempt() -> dict[str, str | None]:
            resource = DescribeConfigsRequest.DescribeConfigsResource
            question = DescribeConfigsRequest(
                resources=[resource(resource_type=resource_type, resource_name=name, configuration_keys=None)],
                include_synonyms=False,
                include_documentation=False,
            )
            response = await self._ask_about(resource_type, name, question)
            [result] = response.results
            require(result.error_code, f"{name}: {result.error_message or 'not described'}")
            return {entry.name: entry.value for entry in result.configs}

        return await self._retrying("DescribeConfigs", attempt)

    async def elect_leaders(
        self, kind: int = PREFERRED, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, ErrorCode]:
        """Of each partition (None: of all that needed an election) what became of it; ELECTION_NOT_NEEDED is fine."""
        checked_integer(kind, "the kind of an election", 8)
        topic_class = ElectLeadersRequest.TopicPartitions
        asked = (
            None
            if partitions is None
            else [
                topic_class(topic=topic, partitions=numbers)
                for topic, numbers in by_topic(sorted(checked_keys(partitions))).items()
            ]
        )

        async def attempt() -> dict[TopicPartition, ErrorCode]:
            order = ElectLeadersRequest(election_type=kind, topic_partitions=asked, timeout_ms=self._request_timeout_ms)
            response = await self._ask_controller(order)
            require(response.error_code, "no election")
            return {
                (topic.topic, result.partition_id): ErrorCode.of(result.error_code)
                for topic in response.replica_election_results
                for result in topic.partition_result
            }

        return await self._retrying("ElectLeaders", attempt)

    async def reassign(self, moves: Mapping[TopicPartition, Sequence[int] | None]) -> None:
        """Begin to move partitions to other replicas; None cancels a move. See ``reassignments`` for their end."""
        targets = {
            checked_key(key): None if replicas is None else checked_brokers(replicas)
            for key, replicas in checked_mapping(moves, "moves").items()
        }
        topic_class = AlterPartitionReassignmentsRequest.ReassignableTopic

        async def attempt() -> None:
            order = AlterPartitionReassignmentsRequest(
                topics=[
                    topic_class(
                        name=topic,
                        partitions=[
                            topic_class.ReassignablePartition(partition_index=number, replicas=targets[topic, number])
                            for number in numbers
                        ],
                    )
                    for topic, numbers in by_topic(sorted(targets)).items()
                ],
                timeout_ms=self._request_timeout_ms,
            )
            response = await self._ask_controller(order)
            require(response.error_code, response.error_message or "nothing reassigned")
            for topic in response.responses:
                for result in topic.partitions:
                    require(
                        result.error_code,
                        f"{topic.name}-{result.partition_index}: {result.error_message or 'not reassigned'}",
                    )

        await self._retrying("AlterPartitionReassignments", attempt)

    async def reassignments(self) -> dict[TopicPartition, Reassignment]:
        """All partitions that are on their way to other replicas."""

        async def attempt() -> dict[TopicPartition, Reassignment]:
            response = await self._ask_controller(
                ListPartitionReassignmentsRequest(topics=None, timeout_ms=self._request_timeout_ms)
            )
            require(response.error_code, response.error_message or "not listed")
            return {
                (topic.name, entry.partition_index): Reassignment(
                    tuple(entry.replicas), tuple(entry.adding_replicas), tuple(entry.removing_replicas)
                )
                for topic in response.topics
                for entry in topic.partitions
            }

        return await self._retrying("ListPartitionReassignments", attempt)

    async def _ask_about(self, resource_type: int, name: str, message: Request[_Answer]) -> _Answer:
        if resource_type == BROKER_RESOURCE and name:
            await self._metadata([])
            return await self._ask_broker(int(name), message)
        return await self._ask_any(message)


def _check_resource(resource_type: int, name: str) -> None:
    """Raises ``TypeError`` and ``ValueError`` for what cannot be asked about."""
    checked_integer(resource_type, "the type of a resource", 8)
    checked_text(name, "the name of a resource")
    if resource_type == BROKER_RESOURCE and name and not (name.isascii() and name.isdecimal()):
        raise ValueError(f"a broker is named by its id, such as '1', and all of them by '', not by {name!r}")


def require(number: int, message: str) -> None:
    """Nothing for NONE. Raises ``AdminError``, and ``Retriable`` where a retry may help."""
    _raise_unless_retriable(ErrorCode.of(number), message)


def _raise_unless_retriable(code: ErrorCode, message: str) -> None:
    """Nothing for NONE. UNKNOWN_TOPIC_OR_PARTITION is retriable for those who write; to an order it is the answer."""
    if code is ErrorCode.NONE:
        return
    if code.retriable and code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise Retriable(f"{message} ({code.name})")
    raise AdminError(code, message)
