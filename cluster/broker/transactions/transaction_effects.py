"""TransactionEffects: decisions of the transaction coordinator are carried out, and what became of them is reported.

Owns that who waits is answered, that records are appended, again after a while if they must be, and that markers are
sent. Does not own any decision (``TransactionCoordinator``), nor how markers reach their partitions (``MarkerSender``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial

from cluster.broker.internal_topics import TRANSACTIONS_TOPIC
from cluster.broker.metrics import Counters
from cluster.broker.replicas.ordered_appends import OrderedAppends, OwnAppend
from cluster.broker.transactions.marker_sending import Gone, MarkersAnswered, MarkerSender
from cluster.coordinator.transaction.coordinator import TransactionCoordinator
from cluster.coordinator.transaction.decisions import (
    AppendRecord,
    SendMarkers,
    TransactionAnswer,
    TransactionMarkers,
    TxnDecision,
)
from cluster.coordinator.transaction.state import IllegalTxnTransition
from cluster.protocol.errors import ErrorCode
from cluster.protocol.records import NewRecord, build_batch
from cluster.seams.clock import Clock
from cluster.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

#: The pause before a record that could not be appended, and must be, is tried again.
RETRY_S = 0.1

TransactionWaiter = asyncio.Future[TransactionAnswer]


class TransactionEffects:
    """Of one broker. ``make_sender`` is called once, with who learns of the markers."""

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        appends: OrderedAppends,
        make_sender: Callable[[MarkersAnswered, Gone], MarkerSender],
        counters: Counters,
        clock: Clock,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._coordinator = coordinator
        self._appends = appends
        self._sender = make_sender(self._markers_answered, self._markers_gone)
        self._counters = counters
        self._clock = clock
        self._retries: dict[AppendRecord, asyncio.TimerHandle] = {}

    def __repr__(self) -> str:
        return f"<TransactionEffects, {len(self._retries)} appends to be tried again>"

    def cancel_retries(self) -> None:
        """What could not be appended is not tried again."""
        for handle in self._retries.values():
            handle.cancel()
        self._retries.clear()

    async def close(self) -> None:
        """Send no more markers."""
        await self._sender.close()

    def queue_sizes(self) -> dict[str, int]:
        """Transactions by what their end waits for: markers, or another try of their record. For any thread."""
        return {**self._sender.queue_sizes(), "log append retry": len(self._retries)}

    def carry_out(self, decision: TxnDecision, waiter: TransactionWaiter | None = None) -> None:
        """Answer who waits, and begin what is to be done."""
        if waiter is not None and decision.answer is not None and not waiter.done():
            waiter.set_result(decision.answer)
        for effect in decision.effects:
            if isinstance(effect, AppendRecord):
                self._append(effect, waiter)
            elif isinstance(effect, SendMarkers):
                self._sender.add(effect.markers, is_retry=effect.is_retry)
            else:
                self._sender.drop(effect.transaction_partition)

    def _append(self, append: AppendRecord, waiter: TransactionWaiter | None) -> None:
        if append.is_retry and append not in self._retries:
            self._retries[append] = self._loop.call_later(RETRY_S, self._append, append, waiter)
            return
        self._retries.pop(append, None)

        def build(wall_ms: int) -> bytes:
            return build_batch([NewRecord(wall_ms, append.key, append.value)])

        number = append.transaction_partition
        epoch = append.coordinator_epoch
        told = partial(self._append_settled, append, waiter)
        self._appends.add([OwnAppend(TRANSACTIONS_TOPIC, number, epoch, build, told, in_that_epoch=True)])

    def _append_settled(
        self, append: AppendRecord, waiter: TransactionWaiter | None, error_code: ErrorCode, _position: int
    ) -> None:
        if error_code is ErrorCode.NONE:
            self._counters.coordinators.transaction_stored(append.transit.state, is_asked=waiter is not None)
        try:
            decision = self._coordinator.appended(append, error_code, self._clock.wall_ms())
        except IllegalTxnTransition:
            # A mistake of ours, which must not end the append or the fetch that has moved the high watermark.
            logger.exception("the result of %r", append)
            decision = TxnDecision(TransactionAnswer(ErrorCode.UNKNOWN_SERVER_ERROR))
        self.carry_out(decision, waiter)

    def _markers_answered(self, markers: TransactionMarkers, errors: Mapping[TopicPartition, ErrorCode] | None) -> None:
        self.carry_out(self._coordinator.markers_answered(markers, errors))

    def _markers_gone(self, markers: TransactionMarkers) -> None:
        self.carry_out(self._coordinator.markers_gone(markers))
