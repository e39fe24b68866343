"""CreateTopics (19): topics are made, each for itself, and the answer waits until the brokers know them.

From version 5 it tells how each topic was made, with every setting that it has (KIP-525).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cluster.broker.control.controller.topic_outcomes import AdminOutcome, TopicOutcome
from cluster.broker.dynamic_configs import DynamicConfigs
from cluster.broker.exchange import Exchange
from cluster.broker.pauses import Pauses
from cluster.broker.services import Services
from cluster.config.keys import KeyType
from cluster.config.layers import shown, strongest, topic_synonyms
from cluster.config.topic import TOPIC_KEYS, validate
from cluster.controller.topics import TopicRequest
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import CreateTopicsRequest, CreateTopicsResponse

_Created = CreateTopicsResponse.CreatableTopicResult
#: A topic that timed out is made nevertheless.
_MADE = (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT)


async def handle(services: Services, request: CreateTopicsRequest, exchange: Exchange) -> CreateTopicsResponse:
    apis, pause = services.control.apis, Pauses(services.shares)
    until_ms, validate_only = apis.until_ms(request.timeout_ms), request.validate_only
    wanted = await _wanted(request, pause)
    del request
    done = await apis.create_topics(wanted, validate_only=validate_only)
    del wanted
    exchange.let_go()
    await apis.told(done, until_ms, exchange.connection.is_gone)
    return await _answer(done, services.control.configs, pause)


async def _wanted(request: CreateTopicsRequest, pause: Pauses) -> list[TopicRequest]:
    wanted = []
    for topic in request.topics:
        await pause()
        wanted.append(
            TopicRequest(
                topic.name,
                topic.num_partitions,
                topic.replication_factor,
                [(entry.partition_index, tuple(entry.broker_ids)) for entry in topic.assignments],
                [(entry.name, entry.value) for entry in topic.configs],
            )
        )
    return wanted


async def _answer(done: AdminOutcome, configs: DynamicConfigs, pause: Pauses) -> CreateTopicsResponse:
    topics = []
    for topic in done.topics:
        await pause()
        topics.append(_created(topic, configs))
    return CreateTopicsResponse(topics=topics)


def _created(topic: TopicOutcome, configs: DynamicConfigs) -> _Created:
    replicas = next(iter(topic.assignment.values()), ())
    is_made = topic.error_code in _MADE
    return _Created(
        name=topic.name,
        topic_id=topic.topic_id,
        error_code=topic.error_code,
        error_message=topic.message,
        num_partitions=len(topic.assignment) if is_made else -1,
        replication_factor=len(replicas) if is_made else -1,
        configs=list(_configuration(topic.config, configs)) if is_made else [],
    )


def _configuration(given: Mapping[str, str], configs: DynamicConfigs) -> Iterable[_Created.CreatableTopicConfigs]:
    """Every setting the topic has, as DescribeConfigs would tell it: most of them no one has set."""
    for name, value in validate(given, configs.broker_config).items():
        yield _Created.CreatableTopicConfigs(
            name=name,
            value=shown(TOPIC_KEYS.keys[name], value),
            read_only=False,
            config_source=strongest(topic_synonyms(configs.layers, given, name)),
            is_sensitive=TOPIC_KEYS.keys[name].kind is KeyType.PASSWORD,
        )
