"""CreatePartitions (37): topics get more partitions, each for itself; ``count`` is the new total."""

from __future__ import annotations

from cluster.broker.control.controller.topic_outcomes import AdminOutcome
from cluster.broker.exchange import Exchange
from cluster.broker.pauses import Pauses
from cluster.broker.services import Services
from cluster.controller.topics import GrowthRequest
from cluster.protocol.message_classes import CreatePartitionsRequest, CreatePartitionsResponse


async def handle(services: Services, request: CreatePartitionsRequest, exchange: Exchange) -> CreatePartitionsResponse:
    apis, pause = services.control.apis, Pauses(services.shares)
    until_ms, validate_only = apis.until_ms(request.timeout_ms), request.validate_only
    wanted = await _wanted(request, pause)
    del request
    done = await apis.create_partitions(wanted, validate_only=validate_only)
    del wanted
    exchange.let_go()
    await apis.told(done, until_ms, exchange.connection.is_gone)
    return await _answer(done, pause)


async def _wanted(request: CreatePartitionsRequest, pause: Pauses) -> list[GrowthRequest]:
    wanted = []
    for topic in request.topics:
        await pause()
        given = topic.assignments
        assignments = None if given is None else [tuple(entry.broker_ids) for entry in given]
        wanted.append(GrowthRequest(topic.name, topic.count, assignments))
    return wanted


async def _answer(done: AdminOutcome, pause: Pauses) -> CreatePartitionsResponse:
    results = []
    for topic in done.topics:
        await pause()
        results.append(
            CreatePartitionsResponse.CreatePartitionsTopicResult(
                name=topic.name, error_code=topic.error_code, error_message=topic.message
            )
        )
    return CreatePartitionsResponse(results=results)
