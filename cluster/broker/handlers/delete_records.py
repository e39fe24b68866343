"""DeleteRecords (21): forget what lies below an offset, on every replica (Kafka's KafkaApis, KIP-107)."""

from __future__ import annotations

from cluster.broker.handlers.naming import named
from cluster.broker.replicas.record_deletion import DeletionResult, WantedDeletion
from cluster.broker.server import Exchange
from cluster.broker.services import Services
from cluster.protocol.apis import ApiKey
from cluster.protocol.messages import decode_request, encode_response, response_class


def handle(services: Services, exchange: Exchange, body: memoryview) -> None:
    request = decode_request(ApiKey.DELETE_RECORDS, exchange.api_version, body)
    topics = named(
        (topic.name, ((asked.partition_index, asked.offset) for asked in topic.partitions)) for topic in request.topics
    )
    wanted = [
        WantedDeletion(topic, partition, offset)
        for topic, offsets in topics.items()
        for partition, offset in offsets.items()
    ]
    services.replicas.deletion.delete(wanted, request.timeout_ms, lambda results: _answer(exchange, results))


def _answer(exchange: Exchange, results: list[DeletionResult]) -> None:
    response = response_class(ApiKey.DELETE_RECORDS)
    topic_class = response.DeleteRecordsTopicResult
    topics: dict[str, list[object]] = {}
    for result in results:
        if result.error_code:
            exchange.connection.counters.api.failed(ApiKey.DELETE_RECORDS, result.error_code)
        topics.setdefault(result.topic, []).append(
            topic_class.DeleteRecordsPartitionResult(
                partition_index=result.partition, low_watermark=result.low_watermark, error_code=result.error_code
            )
        )
    message = response(topics=[topic_class(name=name, partitions=partitions) for name, partitions in topics.items()])
    exchange.respond([encode_response(ApiKey.DELETE_RECORDS, exchange.api_version, exchange.correlation_id, message)])
