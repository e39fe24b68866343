"""The answers to CreateTopics, DeleteTopics and CreatePartitions. Owns their layout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from cluster.broker.control.controller.epoch_fence import NOT_CONTROLLER_TEXT
from cluster.broker.control.controller.topics import AdminOutcome, TopicOutcome
from cluster.broker.dynamic_configs import DynamicConfigs
from cluster.broker.pauses import Pauses
from cluster.config.keys import KeyType
from cluster.config.layers import shown, strongest, topic_synonyms
from cluster.config.topic import TOPIC_KEYS, validate
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import response_class

#: TOPIC_DELETION_DISABLED is known from this version of DeleteTopics.
_DELETION_DISABLED_SINCE = 3
_NO_TOPIC = UUID(int=0)


def not_controller(names: Iterable[str]) -> list[TopicOutcome]:
    """Every topic refused: clients look for the controller in Metadata and go there."""
    return [TopicOutcome(name, ErrorCode.NOT_CONTROLLER, NOT_CONTROLLER_TEXT) for name in names]


async def create_topics_response(outcome: AdminOutcome, configs: DynamicConfigs, version: int, pause: Pauses) -> Any:
    response = response_class(ApiKey.CREATE_TOPICS)
    topics = []
    for topic in outcome.topics:
        await pause()
        topics.append(_created(response, topic, configs))
    return response(version=version, topics=topics)


def _created(response: Any, topic: TopicOutcome, configs: DynamicConfigs) -> Any:
    replicas = next(iter(topic.assignment.values()), ())
    is_refused = topic.error_code not in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT)
    return response.CreatableTopicResult(
        name=topic.name,
        topic_id=topic.topic_id,
        error_code=topic.error_code,
        error_message=topic.message,
        num_partitions=-1 if is_refused else len(topic.assignment),
        replication_factor=-1 if is_refused else len(replicas),
        configs=[] if is_refused else list(_configuration(response, topic.config, configs)),
    )


def _configuration(response: Any, given: Mapping[str, str], configs: DynamicConfigs) -> Iterable[Any]:
    """Every setting the topic has, as DescribeConfigs would tell it (KIP-525): most of them no one has set."""
    for name, value in validate(given, configs.broker_config).items():
        yield response.CreatableTopicResult.CreatableTopicConfigs(
            name=name,
            value=shown(TOPIC_KEYS.keys[name], value),
            read_only=False,
            config_source=strongest(topic_synonyms(configs.layers, given, name)),
            is_sensitive=TOPIC_KEYS.keys[name].kind is KeyType.PASSWORD,
        )


async def delete_topics_response(outcome: AdminOutcome, version: int, pause: Pauses) -> Any:
    response = response_class(ApiKey.DELETE_TOPICS)
    results = []
    for topic in outcome.topics:
        await pause()
        code = topic.error_code
        if code is ErrorCode.TOPIC_DELETION_DISABLED and version < _DELETION_DISABLED_SINCE:
            code = ErrorCode.INVALID_REQUEST
        # A topic that was asked for by an unknown id has no name.
        name = None if not topic.name and topic.topic_id != _NO_TOPIC else topic.name
        results.append(
            response.DeletableTopicResult(
                name=name, topic_id=topic.topic_id, error_code=code, error_message=topic.message
            )
        )
    return response(version=version, responses=results)


async def create_partitions_response(outcome: AdminOutcome, version: int, pause: Pauses) -> Any:
    response = response_class(ApiKey.CREATE_PARTITIONS)
    results = []
    for topic in outcome.topics:
        await pause()
        results.append(
            response.CreatePartitionsTopicResult(
                name=topic.name, error_code=topic.error_code, error_message=topic.message
            )
        )
    return response(version=version, results=results)
