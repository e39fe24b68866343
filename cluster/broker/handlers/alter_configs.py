"""AlterConfigs (33) and IncrementalAlterConfigs (44, KIP-339): changing what is set on topics and brokers.

Owns the checks and the answers. Any broker serves them, as in Kafka with ZooKeeper; its own settings each alone.
Does not own the storing (``config_store``), nor how brokers take the news (``dynamic_configs``).
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import Any

from cluster.broker.control.config_store import ALL_BROKERS
from cluster.broker.handlers.config_resources import REFUSALS, Resource, ResourceRefused, find, refusal
from cluster.broker.portions import Pauses
from cluster.broker.server import Exchange
from cluster.broker.services import Services
from cluster.config.alteration import Alteration, altered, replaced
from cluster.config.layers import BrokerLayers, check_dynamic
from cluster.config.topic import check_asked, validate
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import response_class

logger = logging.getLogger(__name__)

#: (the resource, what is stored, the request's entries) -> what to store. Raises ConfigError.
_Change = Callable[[Resource, dict[str, str], list[Any]], dict[str, str]]


async def handle_incremental(services: Services, request: Any, _exchange: Exchange) -> Any:
    return await _alter(services, request, ApiKey.INCREMENTAL_ALTER_CONFIGS, _incremental)


async def handle_whole(services: Services, request: Any, _exchange: Exchange) -> Any:
    return await _alter(services, request, ApiKey.ALTER_CONFIGS, _whole)


def _incremental(resource: Resource, stored: dict[str, str], entries: list[Any]) -> dict[str, str]:
    return altered(
        resource.table, stored, (Alteration(entry.name, entry.config_operation, entry.value) for entry in entries)
    )


def _whole(resource: Resource, _stored: dict[str, str], entries: list[Any]) -> dict[str, str]:
    return replaced(resource.table, ((entry.name, entry.value) for entry in entries))


async def _alter(services: Services, request: Any, api_key: ApiKey, change: _Change) -> Any:
    response = response_class(api_key)
    times = Counter((asked.resource_type, asked.resource_name) for asked in request.resources)
    results, pause = [], Pauses(services.counters.now_ns)
    for asked in request.resources:
        await pause()
        code, message = ErrorCode.NONE, None
        try:
            if times[asked.resource_type, asked.resource_name] > 1:
                raise ResourceRefused(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            async with asyncio.timeout(services.config["request.timeout.ms"] / 1000):
                await _alter_one(services, asked, change, validate_only=request.validate_only)
        except REFUSALS as error:
            code, message = refusal(error, asked.resource_name)
        results.append(
            response.AlterConfigsResourceResponse(
                error_code=code,
                error_message=message,
                resource_type=asked.resource_type,
                resource_name=asked.resource_name,
            )
        )
    return response(responses=results)


async def _alter_one(services: Services, asked: Any, change: _Change, *, validate_only: bool) -> None:
    resource = find(services, asked.resource_type, asked.resource_name)

    def checked(stored: dict[str, str]) -> dict[str, str]:
        wanted = change(resource, stored, asked.configs)
        _check(services, resource, wanted)
        check_asked(wanted, stored, services.config["gapless.min.segment.bytes"])
        return wanted

    store = services.control.configs.store
    if validate_only:
        await store.check(resource.kind, resource.name, checked)
    else:
        await store.alter(resource.kind, resource.name, checked)


def _check(services: Services, resource: Resource, wanted: dict[str, str]) -> None:
    """What is stored must be legal as a whole, with this broker's other layers. Raises ConfigError."""
    configs = services.control.configs
    if resource.is_topic:
        validate(wanted, configs.broker_config)
        return
    check_dynamic(wanted)
    layers = configs.layers
    if resource.name == ALL_BROKERS:
        BrokerLayers(layers.static, layers.own, wanted).effective()
    else:
        BrokerLayers(layers.static, wanted, layers.shared).effective()
