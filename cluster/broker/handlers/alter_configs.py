"""AlterConfigs (33) and IncrementalAlterConfigs (44, KIP-339): changing what is set on topics and brokers.

Owns both layouts, which have one answer. Any broker serves them, as in Kafka with ZooKeeper; its own settings each
alone.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from cluster.broker.exchange import Exchange
from cluster.broker.pauses import Pauses
from cluster.broker.replicas.host import RequestRefused
from cluster.broker.services import Services
from cluster.broker.settings import REFUSALS, SettingsChange, alter, refusal
from cluster.config.alteration import Alteration, altered, replaced
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from cluster.seams.units import seconds_of_ms

_Response = TypeVar("_Response", AlterConfigsResponse, IncrementalAlterConfigsResponse)


async def handle_incremental(
    services: Services, request: IncrementalAlterConfigsRequest, _exchange: Exchange
) -> IncrementalAlterConfigsResponse:
    return await _alter(services, request, IncrementalAlterConfigsResponse, _incremental)


async def handle_whole(services: Services, request: AlterConfigsRequest, _exchange: Exchange) -> AlterConfigsResponse:
    return await _alter(services, request, AlterConfigsResponse, _whole)


def _incremental(
    entries: Sequence[IncrementalAlterConfigsRequest.AlterConfigsResource.AlterableConfig],
) -> SettingsChange:
    asked = [Alteration(entry.name, entry.config_operation, entry.value) for entry in entries]
    return lambda table, stored: altered(table, stored, asked)


def _whole(entries: Sequence[AlterConfigsRequest.AlterConfigsResource.AlterableConfig]) -> SettingsChange:
    asked = [(entry.name, entry.value) for entry in entries]
    return lambda table, _stored: replaced(table, asked)


async def _alter(
    services: Services,
    request: AlterConfigsRequest | IncrementalAlterConfigsRequest,
    response: type[_Response],
    change: Callable[[Any], SettingsChange],
) -> _Response:
    times = Counter((asked.resource_type, asked.resource_name) for asked in request.resources)
    results, pause = [], Pauses(services.shares)
    for asked in request.resources:
        await pause()
        kind, name = asked.resource_type, asked.resource_name
        code, message = ErrorCode.NONE, None
        try:
            if times[kind, name] > 1:
                raise RequestRefused(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            async with asyncio.timeout(seconds_of_ms(services.config["request.timeout.ms"])):
                await alter(services, kind, name, change(asked.configs), validate_only=request.validate_only)
        except REFUSALS as error:
            code, message = refusal(error, name)
        results.append(
            response.AlterConfigsResourceResponse(
                error_code=code, error_message=message, resource_type=kind, resource_name=name
            )
        )
    return response(responses=results)
