"""SenderCore: which requests to send, and when (Kafka's Sender). Pure: events go in, ``tick`` returns what to do.

Owns the order of decisions in a turn. Does not own what becomes of the batches in a request (``batch_results.py``),
queues (``accumulator.py``), sequences (``idempotence.py``) or connections.
"""

from __future__ import annotations

from collections.abc import Callable

from cluster.client.cluster_view import ClusterView
from cluster.client.producer import failures
from cluster.client.producer.accumulator import RecordAccumulator
from cluster.client.producer.actions import (
    Action,
    FailBatch,
    PartitionResult,
    ProduceResults,
    RefreshMetadata,
    SendProduce,
    WakeAt,
)
from cluster.client.producer.batch_results import BatchResults
from cluster.client.producer.connections import Connections
from cluster.client.producer.delivery import DeliveryTimeout, ProduceError
from cluster.client.producer.idempotence import IdentityState, ProducerIdentity
from cluster.client.producer.identity_question import IdentityQuestion
from cluster.client.producer.ready import earlier
from cluster.client.producer.sender_settings import SenderSettings
from cluster.protocol.errors import ErrorCode

_ACKS_NONE = 0
_LOST = PartitionResult(ErrorCode.NETWORK_EXCEPTION)
_TIMED_OUT = PartitionResult(ErrorCode.REQUEST_TIMED_OUT)


class SenderCore(BatchResults):
    """NOT thread-safe: its owner holds the lock of the accumulator in every call. ``now_ms`` never goes back.

    ``identity`` is None without idempotence. ``backoff_ms`` gives the pause by the number of failures before the last
    (``ExponentialBackoff.delay_ms``). Every event is followed by a ``tick``.
    """

    def __init__(
        self,
        settings: SenderSettings,
        accumulator: RecordAccumulator,
        identity: ProducerIdentity | None,
        backoff_ms: Callable[[int], int],
    ) -> None:
        super().__init__(settings, accumulator, identity, backoff_ms)
        self._view = ClusterView(None, -1, {}, {})
        self._connections = Connections(settings.max_in_flight)
        self._question = IdentityQuestion(backoff_ms)
        self._is_all_stale = False
        # Nothing that was there at the last tick expires before.
        self._expiry_ms = 0

    def __repr__(self) -> str:
        return f"SenderCore({len(self._requests)} requests in flight, {self._identity!r})"

    @property
    def is_idle(self) -> bool:
        """Whether no request is in flight."""
        return not self._requests

    @property
    def requests_in_flight(self) -> int:
        """How many Produce requests have no answer yet."""
        return len(self._requests)

    def blocked_ms(self, node: int, now_ms: int) -> int:
        """For how long there has been something for ``node`` that it does not take: the partitioner may avoid it."""
        return self._connections.blocked_ms(node, now_ms)

    def metadata(self, view: ClusterView) -> None:
        """The cluster is known to be like this."""
        self._view = view

    def connected(self, node: int) -> None:
        """``node`` takes requests."""
        self._connections.connected(node)

    def disconnected(self, node: int, now_ms: int, is_timeout: bool = False) -> None:
        """The connection to ``node`` is lost, or could not be had: what was in flight to it has no answer.

        ``is_timeout``: it was abandoned because an answer did not come within request.timeout.ms.
        """
        self._connections.disconnected(node)
        self._question.lost(node, now_ms, self._identity)
        self._is_all_stale = True
        self._lose(node, _TIMED_OUT if is_timeout else _LOST, now_ms)

    def producer_id(self, now_ms: int, error_code: ErrorCode, producer_id: int = -1, producer_epoch: int = -1) -> None:
        """The answer to ``AskProducerId``."""
        if self._identity is None:
            return
        self._question.answered(now_ms, error_code, self._identity, producer_id, producer_epoch)
        if self._identity.state is IdentityState.FATAL:
            self._abort_fatally()

    def produced(
        self, node: int, request_id: int, results: ProduceResults | ErrorCode, now_ms: int, throttle_ms: int = 0
    ) -> None:
        """The end of a request: what the broker says about each partition, or one error for all.

        A request that was abandoned before is no news. With acks 0 ``results`` is empty, and means that it was sent.
        """
        batches = self._requests.end(request_id)
        if batches:
            self._connections.answered(node, now_ms + throttle_ms)
        for batch in batches:
            if isinstance(results, ErrorCode):
                result = PartitionResult(results)
            elif self._settings.acks == _ACKS_NONE:
                result = PartitionResult(ErrorCode.NONE)
            else:
                # A partition that the answer leaves out is as unknown as a lost answer.
                result = results.get((batch.topic, batch.partition), _LOST)
            self._judge(batch, result, now_ms)

    def tick(self, now_ms: int) -> list[Action]:
        """Everything that is to be done now, in order."""
        if now_ms >= self._expiry_ms:
            self._expire(now_ms)
        is_fatal = self._identity is not None and self._settle(self._identity, now_ms)
        delay_ms = None if is_fatal else self._send(now_ms)
        if self._stale_topics or self._is_all_stale:
            self._actions.append(RefreshMetadata(() if self._is_all_stale else tuple(sorted(self._stale_topics))))
            self._stale_topics.clear()
            self._is_all_stale = False
        wake_at_ms = self._wake_at_ms(now_ms, delay_ms)
        if wake_at_ms is not None:
            self._actions.append(WakeAt(max(wake_at_ms, now_ms)))
        actions = self._actions
        self._actions = []
        return actions

    def abort(self, error: ProduceError) -> None:
        """Give up every batch, also those at brokers: the producer is closed without waiting."""
        for batch in self._accumulator.abort_all():
            self._actions.append(FailBatch(batch, error))
        self._doubtful.clear()

    def _settle(self, identity: ProducerIdentity, now_ms: int) -> bool:
        """What has to be done before batches are numbered; whether that cannot be anymore."""
        if identity.is_troubled:
            for batch in identity.settle(self._doubtful):
                self._fail(batch, failures.not_sent_again(batch))
        if not identity.is_ready:
            self._actions += self._question.ask(identity, self._view, self._connections, now_ms)
            if identity.state is IdentityState.FATAL:
                self._abort_fatally()
        return identity.state is IdentityState.FATAL

    def _send(self, now_ms: int) -> int | None:
        """Send until nothing is ready or no node takes more; returns in how long something may be, without an event."""
        settings = self._settings
        accumulator = self._accumulator
        while True:
            ready = accumulator.ready(self._view, now_ms)
            usable, connect = self._connections.usable(ready.nodes, ready.leaders, now_ms)
            self._actions += connect
            if not usable:
                break
            drained = accumulator.drain(self._view, usable, settings.max_request_size, now_ms, self._identity)
            if not drained:
                break
            for node, drained_batches in drained.items():
                request_id, batches = self._requests.add(node, drained_batches)
                self._connections.sent(node)
                if settings.max_in_flight == 1:
                    for batch in batches:
                        accumulator.mute((batch.topic, batch.partition))
                self._actions.append(SendProduce(node, request_id, settings.acks, settings.request_timeout_ms, batches))
            if not accumulator.has_queued:
                return None
        self._stale_topics.update(ready.unknown_leader_topics)
        return ready.next_check_delay_ms

    def _expire(self, now_ms: int) -> None:
        expired = self._accumulator.expired(now_ms)
        expired += self._requests.expired(now_ms - self._settings.delivery_timeout_ms)
        for batch in expired:
            age_ms = now_ms - batch.created_ms
            self._fail(batch, DeliveryTimeout.of(batch.record_count, batch.topic, batch.partition, age_ms))

    def _lose(self, node: int, result: PartitionResult, now_ms: int) -> None:
        lost = self._requests.end_all(node)
        if self._identity is None:
            # Without sequences a retry goes to the front of its queue: the last first keeps their order.
            lost.reverse()
        for batch in lost:
            self._judge(batch, result, now_ms)

    def _wake_at_ms(self, now_ms: int, delay_ms: int | None) -> int | None:
        timeout_ms = self._settings.delivery_timeout_ms
        wake_at_ms = earlier(self._accumulator.next_expiry_ms(), self._requests.next_expiry_ms(timeout_ms))
        # What is made later does not expire earlier than what would be made now.
        self._expiry_ms = now_ms + timeout_ms if wake_at_ms is None else min(wake_at_ms, now_ms + timeout_ms)
        if delay_ms is not None:
            wake_at_ms = earlier(wake_at_ms, now_ms + delay_ms)
        return earlier(earlier(wake_at_ms, self._question.wake_at_ms), self._connections.wake_at_ms(now_ms))
