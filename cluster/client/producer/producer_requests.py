"""The producer's requests: Produce and InitProducerId on their way, and what the network says about them.

Owns connecting to the nodes that the sender wants, sending when a connection takes a request, and telling the sender
the outcome. Does not own when something is sent, or sent again. Belongs to the producer's thread.
"""

from __future__ import annotations

import logging
from collections import deque

from cluster.client.errors import UnsupportedVersion
from cluster.client.exchange import ClientResponse, InFlightRequest, Polled
from cluster.client.nodes import NodeState
from cluster.client.producer.actions import AskProducerId, ProduceResults, SendProduce
from cluster.client.producer.metrics import ProducerMetrics
from cluster.client.producer.produce_codec import ProduceAnswer, encode_request, response_decoder
from cluster.client.producer.shared_state import ProducerShared
from cluster.client.producer.transaction_requests import TransactionRequests, TxnSent
from cluster.client.wiring import ClientIo
from cluster.protocol.apis import PRODUCE_MIN_VERSION, ApiKey
from cluster.protocol.batch import CODEC_NONE, CODEC_ZSTD, INT32_MAX
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import InitProducerIdRequest, InitProducerIdResponse

logger = logging.getLogger(__name__)

#: The least version whose brokers know zstd.
_ZSTD_VERSION = 7


class _SentProduce:
    """What is kept with a Produce request in flight."""

    __slots__ = ("action", "sent_ms")

    def __init__(self, action: SendProduce, sent_ms: int) -> None:
        self.action = action
        self.sent_ms = sent_ms


class ProducerRequests:
    """Not thread-safe. ``tell`` alone is called with the lock of ``ProducerShared``."""

    def __init__(
        self,
        shared: ProducerShared,
        io: ClientIo,
        metrics: ProducerMetrics,
        transactions: TransactionRequests | None = None,
    ) -> None:
        self._shared = shared
        self._transactions = transactions
        self._transactional_id = shared.settings.config["transactional.id"]
        self._io = io
        self._metrics = metrics
        self._connecting: set[int] = set()
        # What the sender has sent and a connection has not taken yet: its socket is full, or it was just throttled.
        self._unsent: dict[int, deque[SendProduce]] = {}
        self._asking: int | None = None
        # What has happened without a poll, and is told in the next turn.
        self._connected: list[int] = []
        self._failed: list[tuple[SendProduce, ErrorCode]] = []
        self._id_error: ErrorCode | None = None
        #: Nodes to which records were sent since their connection was opened.
        self._carrying: set[int] = set()
        # By topic and codec, what compression has left of batches that were just built.
        self._ratios: list[tuple[str, int, float]] = []

    def __repr__(self) -> str:
        return f"ProducerRequests(connecting to {sorted(self._connecting)}, {self._unsent!r})"

    # What the sender wants

    def connect(self, node: int) -> None:
        self._connecting.add(node)

    def ask_producer_id(self, node: int) -> None:
        self._asking = node

    def produce(self, action: SendProduce) -> None:
        self._unsent.setdefault(action.node, deque()).append(action)

    # What is done about it

    def send(self, now_ms: int) -> int | None:
        """Connect and send as far as possible. Returns after how many milliseconds to try again, if not by an event."""
        delays: list[int | None] = []
        network = self._io.network
        if self._transactions is not None:
            delays.append(self._transactions.send())
        if self._connecting:
            delays += self._connect()
        if self._asking is not None:
            delays.append(self._ask(self._asking))
        if self._unsent:
            for node, queue in list(self._unsent.items()):
                while queue and network.can_send(node, now_ms):
                    self._send(queue.popleft(), now_ms)
                if queue:
                    delays.append(network.delay_ms(node))
                else:
                    del self._unsent[node]
        if self._connected or self._failed or self._id_error is not None:
            return 0
        return min((each for each in delays if each is not None), default=None) if delays else None

    def _connect(self) -> list[int | None]:
        delays: list[int | None] = []
        network, metadata = self._io.network, self._io.metadata
        for node in list(self._connecting):
            broker = metadata.view.brokers.get(node)
            if broker is None:
                # It leads something, and is not alive as far as is known.
                metadata.request_update()
            elif network.ready(broker) or network.nodes.state(node) is NodeState.READY:
                self._connecting.discard(node)
                self._connected.append(node)
            else:
                delays.append(network.delay_ms(node))
        return delays

    def _ask(self, node: int) -> int | None:
        network = self._io.network
        if not network.can_send(node):
            return network.delay_ms(node)
        self._asking = None
        question = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=INT32_MAX)
        try:
            network.send_message(node, question, AskProducerId(node))
        except UnsupportedVersion as error:
            logger.error("node %d gives no producer id: %s", node, error)
            self._id_error = ErrorCode.UNSUPPORTED_VERSION
        return None

    def _send(self, action: SendProduce, now_ms: int) -> None:
        network = self._io.network
        batches = []
        for batch in action.batches:
            is_new = batch.attempts == 0
            data = batch.build()
            batches.append((batch.topic, batch.partition, data))
            self._metrics.sent(batch.record_count, len(data), batch.compression_ratio, not is_new)
            if is_new and batch.codec != CODEC_NONE:
                self._ratios.append((batch.topic, batch.codec, batch.compression_ratio))
        try:
            version = network.nodes.version(action.node, ApiKey.PRODUCE)
        except UnsupportedVersion:
            version = -1
        code = _refusal(version, action)
        if code is not ErrorCode.NONE:
            logger.error("node %d takes no such batches: Produce %d: %s", action.node, version, code.name)
            self._failed.append((action, code))
            return
        body = encode_request(version, action.acks, action.timeout_ms, batches, self._transactional_id)
        self._metrics.request_total += 1
        request = InFlightRequest(ApiKey.PRODUCE, version, response_decoder(version), _SentProduce(action, now_ms))
        network.send_now(action.node, request, body, now_ms, expects_response=action.acks != 0)
        self._carrying.add(action.node)

    # Outcomes

    def tell(self, polled: Polled, now_ms: int) -> None:
        """Tell the sender what has happened since the last turn, answers before losses."""
        shared = self._shared
        core = shared.core
        if self._ratios:
            for topic, codec, ratio in self._ratios:
                shared.ratios.update(topic, codec, ratio)
            self._ratios.clear()
        if self._transactions is not None:
            self._transactions.tell(now_ms)
        for response in polled.responses:
            self._tell_response(response, now_ms)
        if self._failed:
            for action, code in self._failed:
                core.produced(action.node, action.request_id, code, now_ms)
            self._failed.clear()
        if self._id_error is not None:
            core.producer_id(now_ms, self._id_error)
            self._id_error = None
        if polled.lost:
            # All that was in flight to a lost node ends together, in an order that the sender knows to keep.
            late = {response.node_id for response in polled.responses if response.is_timeout}
            for lost in polled.lost:
                if lost.node_id in self._carrying:
                    self._carrying.discard(lost.node_id)
                    self._metrics.disconnect_total += 1
                self._forget(lost.node_id)
                if self._transactions is not None:
                    self._transactions.tell_lost(lost.node_id, now_ms)
                core.disconnected(lost.node_id, now_ms, lost.node_id in late)
        if polled.ready or self._connected:
            for node in (*polled.ready, *self._connected):
                if self._io.network.nodes.state(node) is NodeState.READY:
                    self._connecting.discard(node)
                    core.connected(node)
            self._connected.clear()

    def _tell_response(self, response: ClientResponse, now_ms: int) -> None:
        core, context = self._shared.core, response.context
        if isinstance(context, _SentProduce):
            if response.failure is None:
                self._metrics.answered(now_ms - context.sent_ms)
                self._tell_produced(context.action, response.answer, now_ms)
        elif isinstance(context, AskProducerId):
            if response.failure is not None:
                code = ErrorCode.REQUEST_TIMED_OUT if response.is_timeout else ErrorCode.NETWORK_EXCEPTION
                core.producer_id(now_ms, code)
            else:
                answer: InitProducerIdResponse = response.answer
                code = ErrorCode.of(answer.error_code)
                core.producer_id(now_ms, code, answer.producer_id, answer.producer_epoch)
        elif isinstance(context, TxnSent) and self._transactions is not None:
            self._transactions.tell_response(context, response, now_ms)

    def _tell_produced(self, action: SendProduce, answer: ProduceAnswer | None, now_ms: int) -> None:
        results: ProduceResults = {}
        throttle_ms = 0
        if answer is not None:
            results, throttle_ms = answer
        self._shared.core.produced(action.node, action.request_id, results, now_ms, throttle_ms)

    def _forget(self, node: int) -> None:
        self._unsent.pop(node, None)
        self._connecting.discard(node)
        if self._asking == node:
            self._asking = None


def _refusal(version: int, action: SendProduce) -> ErrorCode:
    """Why a broker that speaks ``version`` cannot be sent this."""
    if version < PRODUCE_MIN_VERSION:
        return ErrorCode.UNSUPPORTED_VERSION
    if version < _ZSTD_VERSION and any(batch.codec == CODEC_ZSTD for batch in action.batches):
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    return ErrorCode.NONE
