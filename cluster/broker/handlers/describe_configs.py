"""DescribeConfigs (32): the settings of a topic, of this broker or of all, with where each value comes from."""

from __future__ import annotations

import asyncio

from cluster.broker.exchange import Exchange
from cluster.broker.pauses import Pauses
from cluster.broker.services import Services
from cluster.broker.settings import REFUSALS, Setting, describe, refusal
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import DescribeConfigsRequest, DescribeConfigsResponse
from cluster.seams.units import seconds_of_ms

_Entry = DescribeConfigsResponse.DescribeConfigsResult.DescribeConfigsResourceResult


async def handle(services: Services, request: DescribeConfigsRequest, _exchange: Exchange) -> DescribeConfigsResponse:
    results, pause = [], Pauses(services.shares)
    # Of a resource that is named twice the last word counts, in the first place.
    for asked in {(asked.resource_type, asked.resource_name): asked for asked in request.resources}.values():
        await pause()
        code, message = ErrorCode.NONE, None
        found: list[Setting] = []
        try:
            async with asyncio.timeout(seconds_of_ms(services.config["request.timeout.ms"])):
                found = await describe(services, asked.resource_type, asked.resource_name, asked.configuration_keys)
        except REFUSALS as error:
            code, message = refusal(error, asked.resource_name)
        results.append(
            DescribeConfigsResponse.DescribeConfigsResult(
                error_code=code,
                error_message=message,
                resource_type=asked.resource_type,
                resource_name=asked.resource_name,
                configs=[_entry(setting, request) for setting in found],
            )
        )
    return DescribeConfigsResponse(results=results)


def _entry(setting: Setting, request: DescribeConfigsRequest) -> _Entry:
    return _Entry(
        name=setting.name,
        value=setting.value,
        read_only=setting.read_only,
        config_source=setting.source,
        is_sensitive=setting.is_sensitive,
        synonyms=[
            _Entry.DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in setting.synonyms
        ]
        if request.include_synonyms
        else [],
        config_type=setting.type_number,
        documentation=setting.doc if request.include_documentation else None,
    )
