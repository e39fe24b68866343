"""Questions and orders about transactions: list and describe them, fence producers, end what hangs (KIP-664).

Owns the calls, and whom each goes to: all brokers, the coordinator of a transactional id, the leader of a partition.
Does not own a producer's own transactions (``cluster.client.producer.transaction``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cluster.client.argument_checks import checked_integer, checked_key, checked_list, checked_long, checked_text
from cluster.client.cluster_calls import require
from cluster.client.cluster_view import BrokerAddress
from cluster.client.coordinator_lookup import TRANSACTION
from cluster.client.group_calls import GroupCalls
from cluster.client.transaction_descriptions import (
    DescribedTransaction,
    FencedProducer,
    ListedTransaction,
    described_transaction,
)
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import (
    DescribeTransactionsRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
    WriteTxnMarkersRequest,
)
from cluster.topic_partition import TopicPartition

#: From this version on ListTransactions has a filter by duration (KIP-994).
DURATION_VERSION = 1
#: InitProducerId: any producer of the transactional id is fenced.
ANY_PRODUCER = -1


class TransactionAdminCalls(GroupCalls):
    """Every call raises ``TimeoutError`` at the deadline, and ``AdminError`` for what waiting does not change."""

    async def list_transactions(
        self, states: Iterable[str] = (), producer_ids: Iterable[int] = (), *, longer_than_ms: int = -1
    ) -> list[ListedTransaction]:
        """All transactional ids, or those in these states, of these producers, and whose transaction began longer ago
        than that, as brokers have it: whatever its state. All must answer. A state that they do not know is no one's.
        """
        wanted = [checked_text(each, "the state of a transaction") for each in checked_list(states, "states")]
        ids = [checked_long(each, "the id of a producer") for each in checked_list(producer_ids, "ids of producers")]
        checked_long(longer_than_ms, "a duration")
        question = ListTransactionsRequest(
            state_filters=wanted, producer_id_filters=ids, duration_filter=longer_than_ms, transactional_id_pattern=None
        )

        async def attempt() -> list[ListedTransaction]:
            view = await self._metadata([])
            found: dict[str, ListedTransaction] = {}
            for broker_id in view.brokers:
                if longer_than_ms >= 0:
                    await self._require_version(broker_id, ApiKey.LIST_TRANSACTIONS, DURATION_VERSION)
                response = await self._ask_broker(broker_id, question)
                require(response.error_code, f"transactions of broker {broker_id}")
                for each in response.transaction_states:
                    found[each.transactional_id] = ListedTransaction(
                        each.transactional_id, each.producer_id, each.transaction_state, broker_id
                    )
            return [found[transactional_id] for transactional_id in sorted(found)]

        return await self._retrying("ListTransactions", attempt)

    async def describe_transactions(self, transactional_ids: Iterable[str]) -> dict[str, DescribedTransaction]:
        """State, producer and partitions. One that its coordinator does not know is TRANSACTIONAL_ID_NOT_FOUND."""
        return {each: await self._describe_transaction(each) for each in _checked_ids(transactional_ids)}

    async def _describe_transaction(self, transactional_id: str) -> DescribedTransaction:
        async def ask(coordinator: BrokerAddress) -> DescribedTransaction:
            question = DescribeTransactionsRequest(transactional_ids=[transactional_id])
            [told] = (await self._ask_coordinator(coordinator, question)).transaction_states
            require(told.error_code, f"transactional id {transactional_id}")
            return described_transaction(told, coordinator.broker_id)

        return await self._of_coordinator("DescribeTransactions", transactional_id, ask, TRANSACTION)

    async def fence_producers(self, transactional_ids: Iterable[str]) -> dict[str, FencedProducer]:
        """No producer that has one of these ids now can do anything more, and what it left open is aborted."""
        return {each: await self._fence(each) for each in _checked_ids(transactional_ids)}

    async def _fence(self, transactional_id: str) -> FencedProducer:
        # A coordinator that already has a transaction to abort says CONCURRENT_TRANSACTIONS, and is asked again.
        order = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=self._request_timeout_ms,
            producer_id=ANY_PRODUCER,
            producer_epoch=ANY_PRODUCER,
        )

        async def ask(coordinator: BrokerAddress) -> FencedProducer:
            response = await self._ask_coordinator(coordinator, order)
            require(response.error_code, f"the producers of {transactional_id} are not fenced")
            return FencedProducer(response.producer_id, response.producer_epoch)

        return await self._of_coordinator("InitProducerId", transactional_id, ask, TRANSACTION)

    async def abort_transaction(
        self, partition: TopicPartition, producer_id: int, producer_epoch: int, coordinator_epoch: int = -1
    ) -> None:
        """Write an abort marker into one partition, whatever the coordinator knows: for a transaction that hangs there.

        All is as ``describe_producers`` tells it; an unknown coordinator epoch becomes 0.
        """
        key = checked_key(partition)
        marker_class = WriteTxnMarkersRequest.WritableTxnMarker
        marker = marker_class(
            producer_id=checked_long(producer_id, "the id of a producer"),
            producer_epoch=checked_integer(producer_epoch, "the epoch of a producer", 16),
            transaction_result=False,
            topics=[marker_class.WritableTxnMarkerTopic(name=key[0], partition_indexes=[key[1]])],
            coordinator_epoch=max(0, checked_integer(coordinator_epoch, "the epoch of a coordinator", 32)),
        )

        async def ask(leader: int, _asked: Mapping[TopicPartition, None]) -> Mapping[TopicPartition, bool | ErrorCode]:
            response = await self._ask_broker(leader, WriteTxnMarkersRequest(markers=[marker]))
            return {
                (topic.name, result.partition_index): ErrorCode.of(result.error_code) or True
                for each in response.markers
                for topic in each.topics
                for result in topic.partitions
            }

        await self._of_leaders("WriteTxnMarkers", "no marker in", {key: None}, ask)


def _checked_ids(transactional_ids: object) -> list[str]:
    return [checked_text(each, "a transactional id") for each in checked_list(transactional_ids, "transactional ids")]
