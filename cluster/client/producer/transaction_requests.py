"""The requests of a transactional producer to its coordinators, and what the network says about them.

Owns the one that waits for its connection, how coordinators are reached, and telling the manager the outcome. Does
not own when one is sent, nor sent again (``transaction/manager.py``). Belongs to the producer's thread.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from cluster.client.cluster_view import BrokerAddress
from cluster.client.errors import UnsupportedVersion
from cluster.client.exchange import ClientResponse
from cluster.client.producer.transaction.manager import TransactionManager
from cluster.client.producer.transaction.txn_actions import SendTxnRequest
from cluster.client.producer.transaction.txn_codec import (
    API_OF,
    BUMP_VERSION,
    answer_of,
    coordinator_address,
    least_version,
    message_of,
)
from cluster.client.producer.transaction.txn_requests import CoordinatorKind, FindTxnCoordinator, TxnAnswer
from cluster.client.wiring import ClientIo
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode

logger = logging.getLogger(__name__)


class TxnSent(NamedTuple):
    """What is kept with a request in flight; ``version`` is that in which it was sent."""

    action: SendTxnRequest
    version: int


class TransactionRequests:
    """Not thread-safe. Methods that begin with ``tell`` are called with the lock of ``ProducerShared``."""

    def __init__(self, manager: TransactionManager, io: ClientIo) -> None:
        self._manager = manager
        self._io = io
        self._unsent: SendTxnRequest | None = None
        # Where FindCoordinator found each node: metadata may not have it yet.
        self._addresses: dict[int, BrokerAddress] = {}
        # What has happened without a poll, and is told in the next turn.
        self._failed: list[tuple[int, ErrorCode]] = []
        self._can_bump_epoch: bool | None = None

    def __repr__(self) -> str:
        return f"TransactionRequests({self._unsent!r}, coordinators {sorted(self._addresses)})"

    def ask(self, action: SendTxnRequest) -> None:
        """The manager wants this sent."""
        self._unsent = action

    def send(self) -> int | None:
        """Connect and send, if that can be now. Returns after how many milliseconds to try again, if not by an
        event."""
        action = self._unsent
        if action is None:
            return None
        network = self._io.network
        broker = self._broker(action.node)
        if broker is None:
            return self._least_delay_ms()
        if not network.ready(broker):
            return network.delay_ms(broker.broker_id)
        self._unsent = None
        self._send(action, broker.broker_id)
        return 0 if self._failed else None

    def _broker(self, node: int | None) -> BrokerAddress | None:
        """Whom to ask; None if all have to be left alone for now."""
        if node is not None:
            return self._addresses[node]
        brokers = self._io.metadata.view.brokers
        chosen = self._io.network.least_loaded(brokers)
        return None if chosen is None else brokers[chosen]

    def _least_delay_ms(self) -> int | None:
        delays = [self._io.network.delay_ms(node) for node in self._io.metadata.view.brokers]
        return min([each for each in delays if each is not None], default=None)

    def _send(self, action: SendTxnRequest, node: int) -> None:
        request = action.request
        if request.coordinator is not None and request.coordinator.kind is CoordinatorKind.TRANSACTION:
            self._can_bump_epoch = self._version(node, ApiKey.INIT_PRODUCER_ID) >= BUMP_VERSION
        version = self._version(node, API_OF[type(request)])
        if version < least_version(request):
            logger.error("node %d does not serve what transactions need: %s %d", node, type(request).__name__, version)
            self._failed.append((action.request_id, ErrorCode.UNSUPPORTED_VERSION))
            return
        logger.debug("asking node %d: %r", node, request)
        self._io.network.send_message(node, message_of(request), TxnSent(action, version))

    def _version(self, node: int, api_key: ApiKey) -> int:
        try:
            return self._io.network.nodes.version(node, api_key)
        except UnsupportedVersion:
            return -1

    # Outcomes

    def tell(self, now_ms: int) -> None:
        """What has happened without a poll; before what the poll told."""
        if self._can_bump_epoch is not None:
            self._manager.coordinator_ready(can_bump_epoch=self._can_bump_epoch)
            self._can_bump_epoch = None
        for request_id, code in self._failed:
            self._manager.answered(request_id, TxnAnswer(code), now_ms)
        self._failed.clear()

    def tell_response(self, sent: TxnSent, response: ClientResponse, now_ms: int) -> None:
        """The end of a request that was sent."""
        request = sent.action.request
        if response.failure is not None:
            code = ErrorCode.REQUEST_TIMED_OUT if response.is_timeout else ErrorCode.NETWORK_EXCEPTION
            answer = TxnAnswer(code)
        else:
            answer = answer_of(request, response.answer, sent.version)
            if isinstance(request, FindTxnCoordinator):
                address = coordinator_address(response.answer, sent.version)
                if address is not None:
                    self._addresses[address.broker_id] = address
        self._manager.answered(sent.action.request_id, answer, now_ms)

    def tell_lost(self, node: int, now_ms: int) -> None:
        """The connection to ``node`` is lost, or could not be had: what waits for it is not sent to it."""
        action = self._unsent
        if action is not None and action.node == node:
            self._unsent = None
            self._manager.answered(action.request_id, TxnAnswer(ErrorCode.NETWORK_EXCEPTION), now_ms)
