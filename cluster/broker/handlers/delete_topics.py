"""DeleteTopics (20): topics are deleted, by name or, from version 6, by id; named twice is named once.

The answer waits until they are gone from ZooKeeper.
"""

from __future__ import annotations

from cluster.broker.control.controller.topic_deletion import DoomedTopic
from cluster.broker.control.controller.topic_outcomes import NO_TOPIC, AdminOutcome
from cluster.broker.exchange import Exchange
from cluster.broker.pauses import Pauses
from cluster.broker.services import Services
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import DeleteTopicsRequest, DeleteTopicsResponse

#: TOPIC_DELETION_DISABLED is known from this version.
DELETION_DISABLED_SINCE = 3


async def handle(services: Services, request: DeleteTopicsRequest, exchange: Exchange) -> DeleteTopicsResponse:
    apis = services.control.apis
    until_ms = apis.until_ms(request.timeout_ms)
    wanted = _wanted(request)
    del request
    done = await apis.delete_topics(wanted)
    del wanted
    exchange.let_go()
    await apis.told(done, until_ms, exchange.connection.is_gone)
    return await _answer(done, exchange.api_version, Pauses(services.shares))


def _wanted(request: DeleteTopicsRequest) -> list[DoomedTopic]:
    named: list[DoomedTopic] = [(name, None) for name in request.topic_names]
    named += [(topic.name, topic.topic_id) for topic in request.topics]
    return [*dict.fromkeys(named)]


async def _answer(done: AdminOutcome, version: int, pause: Pauses) -> DeleteTopicsResponse:
    results = []
    for topic in done.topics:
        await pause()
        code = topic.error_code
        if code is ErrorCode.TOPIC_DELETION_DISABLED and version < DELETION_DISABLED_SINCE:
            code = ErrorCode.INVALID_REQUEST
        # A topic that was asked for by an unknown id has no name.
        name = None if not topic.name and topic.topic_id != NO_TOPIC else topic.name
        results.append(
            DeleteTopicsResponse.DeletableTopicResult(
                name=name, topic_id=topic.topic_id, error_code=code, error_message=topic.message
            )
        )
    return DeleteTopicsResponse(responses=results)
