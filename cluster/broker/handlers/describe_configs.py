"""DescribeConfigs (32): the settings of a topic, of this broker or of all, with where each value comes from."""

from __future__ import annotations

import asyncio
from typing import Any

from cluster.broker.exchange import Exchange
from cluster.broker.pauses import Pauses
from cluster.broker.services import Services
from cluster.broker.settings import REFUSALS, Setting, describe, refusal
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import response_class


async def handle(services: Services, request: Any, _exchange: Exchange) -> Any:
    response = response_class(ApiKey.DESCRIBE_CONFIGS)
    results, pause = [], Pauses(services.shares)
    # Of a resource that is named twice the last word counts, in the first place.
    for asked in {(asked.resource_type, asked.resource_name): asked for asked in request.resources}.values():
        await pause()
        code, message = ErrorCode.NONE, None
        found: list[Setting] = []
        try:
            async with asyncio.timeout(services.config["request.timeout.ms"] / 1000):
                found = await describe(services, asked.resource_type, asked.resource_name, asked.configuration_keys)
        except REFUSALS as error:
            code, message = refusal(error, asked.resource_name)
        results.append(
            response.DescribeConfigsResult(
                error_code=code,
                error_message=message,
                resource_type=asked.resource_type,
                resource_name=asked.resource_name,
                configs=[_entry(setting, request) for setting in found],
            )
        )
    return response(results=results)


def _entry(setting: Setting, request: Any) -> Any:
    entry = response_class(ApiKey.DESCRIBE_CONFIGS).DescribeConfigsResult.DescribeConfigsResourceResult
    return entry(
        name=setting.name,
        value=setting.value,
        read_only=setting.read_only,
        config_source=setting.source,
        is_sensitive=setting.is_sensitive,
        synonyms=[
            entry.DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in setting.synonyms
        ]
        if request.include_synonyms
        else [],
        config_type=setting.type_number,
        documentation=setting.doc if request.include_documentation else None,
    )
