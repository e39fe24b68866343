"""ElectLeaders (43): partitions get their preferred leaders, or any leader at all (KIP-460); named twice is named once.

Version 0 has no error of the whole: each partition tells it.
"""

from __future__ import annotations

from cluster.broker.control.controller.elections import ElectionOutcome
from cluster.broker.exchange import Exchange
from cluster.broker.pauses import Pauses
from cluster.broker.services import Services
from cluster.controller.context import TopicPartition
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import ElectLeadersRequest, ElectLeadersResponse

_Result = ElectLeadersResponse.ReplicaElectionResult


async def handle(services: Services, request: ElectLeadersRequest, exchange: Exchange) -> ElectLeadersResponse:
    apis, pause = services.control.apis, Pauses(services.shares)
    until_ms, election_type = apis.until_ms(request.timeout_ms), request.election_type
    wanted = await _wanted(request, pause)
    del request
    done = await apis.elect_leaders(election_type, wanted)
    del wanted
    exchange.let_go()
    await apis.told(done, until_ms, exchange.connection.is_gone)
    return await _answer(done, pause)


async def _wanted(request: ElectLeadersRequest, pause: Pauses) -> list[TopicPartition] | None:
    """None: all there are."""
    if request.topic_partitions is None:
        return None
    wanted: dict[TopicPartition, None] = {}
    for topic in request.topic_partitions:
        for number in topic.partitions:
            wanted[TopicPartition(topic.topic, number)] = None
            await pause()
        await pause()
    return [*wanted]


async def _answer(done: ElectionOutcome, pause: Pauses) -> ElectLeadersResponse:
    topics: dict[str, list[_Result.PartitionResult]] = {}
    for (topic, partition), refusal in done.results.items():
        await pause()
        topics.setdefault(topic, []).append(
            _Result.PartitionResult(
                partition_id=partition,
                error_code=ErrorCode.NONE if refusal is None else refusal.error_code,
                error_message=None if refusal is None else refusal.message,
            )
        )
    return ElectLeadersResponse(
        error_code=done.error_code,
        replica_election_results=[_Result(topic=topic, partition_result=results) for topic, results in topics.items()],
    )
