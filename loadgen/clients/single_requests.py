"""The requests of a transactional producer, one at a time, for a program that is its own transaction manager.

Owns which broker each request goes to, and how its response is read. Does not own sequences, or when to send which
request: it is for request orders that no real client produces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cluster.client.cluster_calls import require
from cluster.client.cluster_view import BrokerAddress
from cluster.client.coordinator_lookup import TRANSACTION
from cluster.client.negotiation import choose_version
from cluster.client.producer.produce_codec import decode_response, encode_request
from cluster.client.retried_calls import Retriable
from cluster.client.transaction_admin_calls import ANY_PRODUCER, TransactionAdminCalls
from cluster.protocol.apis import ApiKey
from cluster.protocol.by_topic import by_topic
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest
from cluster.protocol.messages import encode_request_header
from cluster.seams.clock import Clock
from cluster.seams.transport import Transport
from cluster.topic_partition import TopicPartition

_ALL = -1

#: Producer id and epoch.
Identity = tuple[int, int]


class SingleRequests(TransactionAdminCalls):
    """Of one ``transactional_id``. Every call raises ``TimeoutError`` at the deadline, and ``AdminError`` for what
    waiting does not change."""

    def __init__(
        self, bootstrap: Sequence[str], transport: Transport, clock: Clock, timeout_ms: int, *, transactional_id: str
    ) -> None:
        super().__init__(bootstrap, transport, clock, timeout_ms, client_id=transactional_id)
        self._transactional_id = transactional_id

    async def initialize(self, transaction_timeout_ms: int) -> Identity:
        """Get a producer id and epoch. Aborts the transaction that another producer with this id left open."""
        order = InitProducerIdRequest(
            transactional_id=self._transactional_id,
            transaction_timeout_ms=transaction_timeout_ms,
            producer_id=ANY_PRODUCER,
            producer_epoch=ANY_PRODUCER,
        )

        async def ask(coordinator: BrokerAddress) -> Identity:
            answer = await self._ask_coordinator(coordinator, order)
            require(answer.error_code, f"no producer id for {self._transactional_id}")
            return answer.producer_id, answer.producer_epoch

        return await self._of_coordinator("InitProducerId", self._transactional_id, ask, TRANSACTION)

    async def add(self, identity: Identity, partitions: Iterable[TopicPartition]) -> None:
        """Add these partitions to the transaction. The first ones begin it."""
        topic_class = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        order = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._transactional_id,
            v3_and_below_producer_id=identity[0],
            v3_and_below_producer_epoch=identity[1],
            v3_and_below_topics=[
                topic_class(name=topic, partitions=numbers) for topic, numbers in by_topic(partitions).items()
            ],
        )

        async def ask(coordinator: BrokerAddress) -> None:
            answer = await self._ask_coordinator(coordinator, order)
            for topic in answer.results_by_topic_v3_and_below:
                for each in topic.results_by_partition:
                    require(each.partition_error_code, f"{topic.name}-{each.partition_index} is not added")

        await self._of_coordinator("AddPartitionsToTxn", self._transactional_id, ask, TRANSACTION)

    async def end(self, identity: Identity, *, is_commit: bool) -> None:
        """Commit or abort the transaction. Does not wait for its markers."""
        order = EndTxnRequest(
            transactional_id=self._transactional_id,
            producer_id=identity[0],
            producer_epoch=identity[1],
            committed=is_commit,
        )

        async def ask(coordinator: BrokerAddress) -> None:
            answer = await self._ask_coordinator(coordinator, order)
            require(answer.error_code, f"the transaction of {self._transactional_id} does not end")

        await self._of_coordinator("EndTxn", self._transactional_id, ask, TRANSACTION)

    async def until_complete(self) -> None:
        """Wait until every partition has the transaction's marker."""

        async def attempt() -> None:
            found = (await self.describe_transactions([self._transactional_id]))[self._transactional_id]
            if not found.state.startswith("Complete"):
                raise Retriable(f"the transaction of {self._transactional_id} is {found.state}")

        await self._retrying("waiting for markers", attempt)

    async def append(self, place: TopicPartition, batch: bytes) -> int:
        """Have the leader append a batch; returns its offset."""

        async def ask(leader: int, _asked: Mapping[TopicPartition, None]) -> Mapping[TopicPartition, int | ErrorCode]:
            node = await self._node(self._address_of(leader))
            version = choose_version(ApiKey.PRODUCE, node.windows)
            correlation_id = node.connection.next_correlation_id()
            header = encode_request_header(ApiKey.PRODUCE, version, correlation_id, self._client_id)
            body = encode_request(
                version, _ALL, self._request_timeout_ms, [(*place, batch)], transactional_id=self._transactional_id
            )
            answer = await node.connection.exchange(
                b"".join((header, *body)), lambda frame: decode_response(version, frame), self._request_timeout_ms
            )
            result = answer.results[place]
            return {place: result.error_code or result.base_offset}

        found = await self._of_leaders("Produce", "a record of", {place: None}, ask)
        return found[place]
