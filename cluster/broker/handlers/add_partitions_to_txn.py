"""AddPartitionsToTxn (24): partitions become part of a transaction, all of them or none. In version 4 brokers ask each
other whether they are (KIP-890)."""

from __future__ import annotations

from cluster.broker.exchange import Exchange
from cluster.broker.internal_topics import INTERNAL_TOPICS
from cluster.broker.pauses import Pauses
from cluster.broker.portions import chunks
from cluster.broker.services import Services
from cluster.broker.transactions.marker_links import VERIFY_VERSION
from cluster.coordinator.transaction.describing import verify_partitions
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from cluster.topic_partition import TopicPartition

#: Before it a producer that was fenced is told INVALID_PRODUCER_EPOCH. So are EndTxn and AddOffsetsToTxn answered.
FENCED_VERSION = 2
#: Partitions that are verified in one go.
PARTITIONS_AT_ONCE = 500


def told(error_code: ErrorCode, version: int) -> ErrorCode:
    """The code as a client of that version knows it."""
    is_new = error_code is ErrorCode.PRODUCER_FENCED and version < FENCED_VERSION
    return ErrorCode.INVALID_PRODUCER_EPOCH if is_new else error_code


async def handle(
    services: Services, request: AddPartitionsToTxnRequest, exchange: Exchange
) -> AddPartitionsToTxnResponse:
    if exchange.api_version >= VERIFY_VERSION:
        return await _verified(services, request)
    pause = Pauses(services.shares)
    topics: dict[str, dict[int, ErrorCode]] = {}
    wanted: set[TopicPartition] = set()
    is_wrong = False
    for topic in request.v3_and_below_topics:
        codes = topics.setdefault(topic.name, {})
        for number in topic.partitions:
            codes[number] = code = _check(services, topic.name, number)
            is_wrong = is_wrong or code is not ErrorCode.NONE
            wanted.add((topic.name, number))
            await pause()
        await pause()
    if not is_wrong:
        code = await services.transactions.add_partitions(
            request.v3_and_below_transactional_id,
            request.v3_and_below_producer_id,
            request.v3_and_below_producer_epoch,
            wanted,
            exchange.connection.ip,
        )
    else:
        code = ErrorCode.OPERATION_NOT_ATTEMPTED
    code = told(code, exchange.api_version)
    topic_class = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
    answered = []
    for name, codes in topics.items():
        results = []
        for number, own in codes.items():
            results.append(
                topic_class.AddPartitionsToTxnPartitionResult(
                    partition_index=number, partition_error_code=code if own is ErrorCode.NONE else own
                )
            )
            await pause()
        answered.append(topic_class(name=name, results_by_partition=results))
        await pause()
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=answered)


async def _verified(services: Services, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
    result_class = AddPartitionsToTxnResponse.AddPartitionsToTxnResult
    topic_class = result_class.AddPartitionsToTxnTopicResult
    owned, pause, results = services.transactions.coordinator.owned, Pauses(services.shares), []
    for asked in request.transactions:
        topics = []
        for topic in asked.topics:
            partitions = []
            for some in chunks([*dict.fromkeys(topic.partitions)], PARTITIONS_AT_ONCE):
                wanted = frozenset((topic.name, number) for number in some)
                if asked.verify_only:
                    producer = asked.producer_id, asked.producer_epoch
                    found = verify_partitions(owned, asked.transactional_id, *producer, wanted)
                else:
                    # Producers of KIP-890's second part are not served.
                    found = dict.fromkeys(wanted, ErrorCode.INVALID_REQUEST)
                partitions += [
                    topic_class.AddPartitionsToTxnPartitionResult(
                        partition_index=number, partition_error_code=found[topic.name, number]
                    )
                    for number in some
                ]
                await pause()
            topics.append(topic_class(name=topic.name, results_by_partition=partitions))
            await pause()
        results.append(result_class(transactional_id=asked.transactional_id, topic_results=topics))
        await pause()
    return AddPartitionsToTxnResponse(error_code=ErrorCode.NONE, results_by_transaction=results)


def _check(services: Services, topic: str, number: int) -> ErrorCode:
    """Kafka lets no client add partitions of internal topics: AddOffsetsToTxn does."""
    if topic in INTERNAL_TOPICS:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if services.metadata.partition(topic, number) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE
