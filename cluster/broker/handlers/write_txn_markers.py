"""WriteTxnMarkers (27): the end of transactions in partitions that are led here, as their coordinators decided."""

from __future__ import annotations

from cluster.broker.exchange import Exchange
from cluster.broker.pauses import Pauses
from cluster.broker.services import Services
from cluster.broker.transactions.marker_writing import MarkerErrors
from cluster.coordinator.transaction.decisions import TransactionMarkers
from cluster.protocol.by_topic import by_topic
from cluster.protocol.message_classes import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from cluster.topic_partition import TopicPartition

#: The coordinator's own affair, which it does not tell.
_UNTOLD_PARTITION, _UNTOLD_ID = -1, ""


async def handle(services: Services, request: WriteTxnMarkersRequest, _exchange: Exchange) -> WriteTxnMarkersResponse:
    asked, pause = [], Pauses(services.shares)
    for marker in request.markers:
        partitions: set[TopicPartition] = set()
        for topic in marker.topics:
            partitions.update((topic.name, number) for number in topic.partition_indexes)
            await pause()
        asked.append(
            TransactionMarkers(
                transaction_partition=_UNTOLD_PARTITION,
                coordinator_epoch=marker.coordinator_epoch,
                transactional_id=_UNTOLD_ID,
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                commit=marker.transaction_result,
                topic_partitions=frozenset(partitions),
            )
        )
    results = []
    for markers, errors in zip(asked, await services.markers.write(asked), strict=True):
        results.append(await _result(markers.producer_id, errors, pause))
    return WriteTxnMarkersResponse(markers=results)


async def _result(
    producer_id: int, errors: MarkerErrors, pause: Pauses
) -> WriteTxnMarkersResponse.WritableTxnMarkerResult:
    result_class = WriteTxnMarkersResponse.WritableTxnMarkerResult
    topic_class = result_class.WritableTxnMarkerTopicResult
    topics = []
    for topic, numbers in by_topic(sorted(errors)).items():
        partitions = []
        for number in numbers:
            partitions.append(
                topic_class.WritableTxnMarkerPartitionResult(partition_index=number, error_code=errors[topic, number])
            )
            await pause()
        topics.append(topic_class(name=topic, partitions=partitions))
    return result_class(producer_id=producer_id, topics=topics)
