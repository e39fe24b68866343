"""WriteTxnMarkers and the verification of partitions, as a broker asks them of another one.

Owns both messages and the connections, two for each broker: a producer that waits for a verification does not wait for
the markers of others, nor loses its answer when theirs takes too long. Does not own when something is asked, nor asking
it again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

from cluster.broker.control.links.peers import Peer
from cluster.coordinator.transaction.decisions import TransactionMarkers
from cluster.protocol.apis import ApiKey
from cluster.protocol.by_topic import by_topic
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import AddPartitionsToTxnRequest, WriteTxnMarkersRequest
from cluster.topic_partition import TopicPartition

WRITE_TXN_MARKERS_VERSION = 1
#: AddPartitionsToTxn, as brokers ask each other.
VERIFY_VERSION = 4


class MarkerLinks:
    """Of one broker. ``link_to`` makes a connection of its own to a broker."""

    def __init__(self, link_to: Callable[[int], Peer]) -> None:
        self._link_to = link_to
        #: By what they are for, and to which broker.
        self._peers: dict[tuple[ApiKey, int], Peer] = {}

    def __repr__(self) -> str:
        return f"<MarkerLinks to {sorted({broker_id for _, broker_id in self._peers})}>"

    def close(self) -> None:
        for peer in self._peers.values():
            peer.close()
        self._peers.clear()

    async def write(self, broker_id: int, asked: Sequence[TransactionMarkers]) -> list[dict[TopicPartition, ErrorCode]]:
        """What a broker answers to each of these, in the order of ``asked``: an error code for each partition that its
        answer names. Raises OSError or StoreError if it is out of reach."""
        answer = await self._peer(ApiKey.WRITE_TXN_MARKERS, broker_id).ask(_request(asked), WRITE_TXN_MARKERS_VERSION)
        errors: dict[int, dict[TopicPartition, ErrorCode]] = {}
        for result in answer.markers:
            of_producer = errors.setdefault(result.producer_id, {})
            for topic in result.topics:
                for each in topic.partitions:
                    of_producer[topic.name, each.partition_index] = ErrorCode.of(each.error_code)
        return [errors.get(markers.producer_id, {}) for markers in asked]

    async def verify(
        self,
        broker_id: int,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        topic_partitions: Set[TopicPartition],
    ) -> dict[TopicPartition, ErrorCode]:
        """What a broker, as the coordinator of the transaction, answers for each of these: NONE if it is in it.
        Raises as ``write`` does."""
        transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
        asked = transaction(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            verify_only=True,
            topics=[
                transaction.AddPartitionsToTxnTopic(name=topic, partitions=numbers)
                for topic, numbers in by_topic(sorted(topic_partitions)).items()
            ],
        )
        answer = await self._peer(ApiKey.ADD_PARTITIONS_TO_TXN, broker_id).ask(
            AddPartitionsToTxnRequest(transactions=[asked]), VERIFY_VERSION
        )
        return {
            (topic.name, each.partition_index): ErrorCode.of(each.partition_error_code)
            for result in answer.results_by_transaction
            for topic in result.topic_results
            for each in topic.results_by_partition
        }

    def _peer(self, purpose: ApiKey, broker_id: int) -> Peer:
        peer = self._peers.get((purpose, broker_id))
        if peer is None:
            peer = self._peers[purpose, broker_id] = self._link_to(broker_id)
        return peer


def _request(asked: Sequence[TransactionMarkers]) -> WriteTxnMarkersRequest:
    marker_class = WriteTxnMarkersRequest.WritableTxnMarker
    return WriteTxnMarkersRequest(
        markers=[
            marker_class(
                producer_id=markers.producer_id,
                producer_epoch=markers.producer_epoch,
                transaction_result=markers.commit,
                coordinator_epoch=markers.coordinator_epoch,
                topics=[
                    marker_class.WritableTxnMarkerTopic(name=topic, partition_indexes=numbers)
                    for topic, numbers in by_topic(sorted(markers.topic_partitions)).items()
                ],
            )
            for markers in asked
        ]
    )
