"""IdentityQuestion: whom to ask for a producer id, and when to ask again (Kafka's Sender).

Owns the one InitProducerId in flight. Does not own the identity itself (``idempotence.py``). Pure.
"""

from __future__ import annotations

from collections.abc import Callable

from cluster.client.cluster_view import ClusterView
from cluster.client.producer.actions import Action, AskProducerId
from cluster.client.producer.connections import Connections
from cluster.client.producer.idempotence import IdentityState, ProducerIdentity
from cluster.protocol.errors import ErrorCode


class IdentityQuestion:
    """NOT thread-safe. ``backoff_ms`` gives the pause by the number of failures before the last one."""

    def __init__(self, backoff_ms: Callable[[int], int]) -> None:
        self._backoff_ms = backoff_ms
        self._node: int | None = None
        self._failures = 0
        #: When to look again: the end of a pause.
        self.wake_at_ms: int | None = None

    def __repr__(self) -> str:
        return f"IdentityQuestion(asked {self._node}, {self._failures} failures)"

    def ask(self, identity: ProducerIdentity, view: ClusterView, connections: Connections, now_ms: int) -> list[Action]:
        """Ask the least loaded node, if an id is needed; without a connection, ask for one to any node."""
        if identity.state is IdentityState.FATAL:
            self.wake_at_ms = None
        if identity.state is not IdentityState.UNINITIALIZED:
            return []
        if self.wake_at_ms is not None and now_ms < self.wake_at_ms:
            return []
        self.wake_at_ms = None
        node = connections.least_loaded(view.brokers)
        if node is not None:
            identity.asked()
            self._node = node
            return [AskProducerId(node)]
        if not view.brokers or connections.is_wanted(view.brokers):
            return []
        # Another one after each failure: the first may be down.
        brokers = sorted(view.brokers)
        return [*connections.want(brokers[self._failures % len(brokers)])]

    def answered(
        self,
        now_ms: int,
        error_code: ErrorCode,
        identity: ProducerIdentity,
        producer_id: int,
        producer_epoch: int,
    ) -> None:
        """The broker's answer, or why there is none (nor in time). What is not retriable is fatal."""
        if identity.state is not IdentityState.INITIALIZING:
            return
        if error_code is ErrorCode.NONE:
            self._node = self.wake_at_ms = None
            self._failures = 0
            identity.initialize(producer_id, producer_epoch)
        elif error_code.retriable:
            self._again(identity, now_ms)
        else:
            identity.fail(error_code)

    def lost(self, node: int, now_ms: int, identity: ProducerIdentity | None) -> None:
        """The connection to ``node`` is lost, or could not be had."""
        if identity is None or identity.is_ready:
            return
        if identity.state is IdentityState.UNINITIALIZED:
            self._failures += 1
        elif node == self._node:
            self._again(identity, now_ms)

    def _again(self, identity: ProducerIdentity, now_ms: int) -> None:
        self._node = None
        self.wake_at_ms = now_ms + self._backoff_ms(self._failures)
        self._failures += 1
        identity.not_answered()
