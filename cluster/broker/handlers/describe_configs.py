"""DescribeConfigs (32): the settings of a topic, of this broker or of all, with where each value comes from.

Owns the answer. What is stored is read from ZooKeeper, as in Kafka: a client sees what it has just set, whichever
broker it asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from cluster.broker.control.config_store import ALL_BROKERS, BROKERS
from cluster.broker.handlers.config_resources import REFUSALS, Resource, find, refusal
from cluster.broker.portions import Pauses
from cluster.broker.server import Exchange
from cluster.broker.services import Services
from cluster.config.keys import Kind, TypedConfig
from cluster.config.layers import (
    DYNAMIC_BROKER_KEYS,
    BrokerLayers,
    Source,
    Synonym,
    broker_synonyms,
    shown,
    strongest,
    topic_synonyms,
    type_number,
)
from cluster.config.topic import validate
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import response_class


async def handle(services: Services, request: Any, _exchange: Exchange) -> Any:
    response = response_class(ApiKey.DESCRIBE_CONFIGS)
    results, pause = [], Pauses(services.counters.now_ns)
    # Of a resource that is named twice the last word counts, in the first place.
    for asked in {(asked.resource_type, asked.resource_name): asked for asked in request.resources}.values():
        await pause()
        code, message, configs = ErrorCode.NONE, None, []
        try:
            async with asyncio.timeout(services.config["request.timeout.ms"] / 1000):
                resource = find(services, asked.resource_type, asked.resource_name)
                configs = await _describe(services, resource, asked.configuration_keys, request)
        except REFUSALS as error:
            code, message = refusal(error, asked.resource_name)
        results.append(
            response.DescribeConfigsResult(
                error_code=code,
                error_message=message,
                resource_type=asked.resource_type,
                resource_name=asked.resource_name,
                configs=configs,
            )
        )
    return response(results=results)


async def _describe(services: Services, resource: Resource, names: list[str] | None, request: Any) -> list[Any]:
    store = services.control.configs.store
    stored = await store.read(resource.kind, resource.name)
    if resource.is_topic:
        config: TypedConfig = validate(stored, services.control.configs.broker_config)
        layers = services.control.configs.layers
        wanted = list(config)
    else:
        layers = await _layers(services)
        config = layers.effective()
        # Of all brokers together nothing is known but what was set on all of them.
        wanted = list(stored) if resource.name == ALL_BROKERS else list(config)
    if names is not None:
        known = set(wanted)
        wanted = [name for name in dict.fromkeys(names) if name in known]
    return [_entry(resource, config, stored, layers, name, request) for name in wanted]


async def _layers(services: Services) -> BrokerLayers:
    configs = services.control.configs
    own = await configs.store.read(BROKERS, str(services.config.broker_id))
    return BrokerLayers(services.config, own, await configs.store.read(BROKERS, ALL_BROKERS))


def _entry(
    resource: Resource,
    config: TypedConfig,
    stored: Mapping[str, str],
    layers: BrokerLayers,
    name: str,
    request: Any,
) -> Any:
    entry = response_class(ApiKey.DESCRIBE_CONFIGS).DescribeConfigsResult.DescribeConfigsResourceResult
    key = resource.table.keys[name]
    synonyms = topic_synonyms(layers, stored, name) if resource.is_topic else broker_synonyms(layers, name)
    if resource.name == ALL_BROKERS and not resource.is_topic:
        synonyms = [synonym for synonym in synonyms if synonym.source >= Source.DYNAMIC_DEFAULT_BROKER]
        value = shown(key, key.parse(stored[name], resource.table.what))
    else:
        value = shown(key, config[name])
    return entry(
        name=name,
        value=value,
        read_only=not resource.is_topic and name not in DYNAMIC_BROKER_KEYS,
        config_source=_source(name, synonyms, is_topic=resource.is_topic),
        is_sensitive=key.kind is Kind.PASSWORD,
        synonyms=[
            entry.DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in synonyms
        ]
        if request.include_synonyms
        else [],
        config_type=type_number(resource.table, name),
        documentation=key.doc if request.include_documentation else None,
    )


def _source(name: str, synonyms: list[Synonym], *, is_topic: bool) -> Source:
    """Of a topic's value: the strongest word there is. Of a broker's: the strongest on that very key."""
    return strongest(synonyms if is_topic else [synonym for synonym in synonyms if synonym.name == name])
