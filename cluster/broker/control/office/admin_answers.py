"""The answers to CreateTopics, DeleteTopics, CreatePartitions and AlterPartitionReassignments. Owns their layout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from cluster.broker.control.controller.epoch_fence import NOT_CONTROLLER_TEXT
from cluster.broker.control.controller.topic_outcomes import AdminOutcome, TopicOutcome
from cluster.broker.dynamic_configs import DynamicConfigs
from cluster.broker.pauses import Pauses
from cluster.config.keys import KeyType
from cluster.config.layers import shown, strongest, topic_synonyms
from cluster.config.topic import TOPIC_KEYS, validate
from cluster.controller.context import TopicPartition
from cluster.controller.reassignment import ReassignmentError
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import (
    AlterPartitionReassignmentsResponse,
    CreatePartitionsResponse,
    CreateTopicsResponse,
    DeleteTopicsResponse,
    ListPartitionReassignmentsResponse,
)

#: TOPIC_DELETION_DISABLED is known from this version of DeleteTopics.
_DELETION_DISABLED_SINCE = 3
_NO_TOPIC = UUID(int=0)
_Created = CreateTopicsResponse.CreatableTopicResult
_Reassigned = AlterPartitionReassignmentsResponse.ReassignableTopicResponse


def not_controller(names: Iterable[str]) -> list[TopicOutcome]:
    """Every topic refused: clients look for the controller in Metadata and go there."""
    return [TopicOutcome(name, ErrorCode.NOT_CONTROLLER, NOT_CONTROLLER_TEXT) for name in names]


async def create_topics_response(
    outcome: AdminOutcome, configs: DynamicConfigs, version: int, pause: Pauses
) -> CreateTopicsResponse:
    topics = []
    for topic in outcome.topics:
        await pause()
        topics.append(_created(topic, configs))
    return CreateTopicsResponse(version=version, topics=topics)


def _created(topic: TopicOutcome, configs: DynamicConfigs) -> _Created:
    replicas = next(iter(topic.assignment.values()), ())
    is_refused = topic.error_code not in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT)
    return _Created(
        name=topic.name,
        topic_id=topic.topic_id,
        error_code=topic.error_code,
        error_message=topic.message,
        num_partitions=-1 if is_refused else len(topic.assignment),
        replication_factor=-1 if is_refused else len(replicas),
        configs=[] if is_refused else list(_configuration(topic.config, configs)),
    )


def _configuration(given: Mapping[str, str], configs: DynamicConfigs) -> Iterable[_Created.CreatableTopicConfigs]:
    """Every setting the topic has, as DescribeConfigs would tell it (KIP-525): most of them no one has set."""
    for name, value in validate(given, configs.broker_config).items():
        yield _Created.CreatableTopicConfigs(
            name=name,
            value=shown(TOPIC_KEYS.keys[name], value),
            read_only=False,
            config_source=strongest(topic_synonyms(configs.layers, given, name)),
            is_sensitive=TOPIC_KEYS.keys[name].kind is KeyType.PASSWORD,
        )


async def delete_topics_response(outcome: AdminOutcome, version: int, pause: Pauses) -> DeleteTopicsResponse:
    results = []
    for topic in outcome.topics:
        await pause()
        code = topic.error_code
        if code is ErrorCode.TOPIC_DELETION_DISABLED and version < _DELETION_DISABLED_SINCE:
            code = ErrorCode.INVALID_REQUEST
        # A topic that was asked for by an unknown id has no name.
        name = None if not topic.name and topic.topic_id != _NO_TOPIC else topic.name
        results.append(
            DeleteTopicsResponse.DeletableTopicResult(
                name=name, topic_id=topic.topic_id, error_code=code, error_message=topic.message
            )
        )
    return DeleteTopicsResponse(version=version, responses=results)


async def create_partitions_response(outcome: AdminOutcome, version: int, pause: Pauses) -> CreatePartitionsResponse:
    results = []
    for topic in outcome.topics:
        await pause()
        results.append(
            CreatePartitionsResponse.CreatePartitionsTopicResult(
                name=topic.name, error_code=topic.error_code, error_message=topic.message
            )
        )
    return CreatePartitionsResponse(version=version, results=results)


async def alter_reassignments_response(
    results: Mapping[TopicPartition, ReassignmentError | None], pause: Pauses
) -> AlterPartitionReassignmentsResponse:
    """The answer to AlterPartitionReassignments."""
    topics: dict[str, list[_Reassigned.ReassignablePartitionResponse]] = {}
    for topic_partition, error in results.items():
        await pause()
        topics.setdefault(topic_partition.topic, []).append(
            _Reassigned.ReassignablePartitionResponse(
                partition_index=topic_partition.partition,
                error_code=ErrorCode.NONE if error is None else error.error_code,
                error_message=None if error is None else error.message,
            )
        )
    return AlterPartitionReassignmentsResponse(
        error_code=ErrorCode.NONE,
        error_message=None,
        responses=[_Reassigned(name=name, partitions=partitions) for name, partitions in topics.items()],
    )


def alter_reassignments_refused() -> AlterPartitionReassignmentsResponse:
    """AlterPartitionReassignments at a broker that is not the controller."""
    return AlterPartitionReassignmentsResponse(
        error_code=ErrorCode.NOT_CONTROLLER, error_message=NOT_CONTROLLER_TEXT, responses=[]
    )


def list_reassignments_refused() -> ListPartitionReassignmentsResponse:
    """ListPartitionReassignments at a broker that is not the controller."""
    return ListPartitionReassignmentsResponse(
        error_code=ErrorCode.NOT_CONTROLLER, error_message=NOT_CONTROLLER_TEXT, topics=[]
    )
