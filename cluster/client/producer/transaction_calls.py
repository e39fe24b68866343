"""TransactionCalls: the program's calls about transactions, and how long each waits for its outcome (KafkaProducer).

Owns max.block.ms of these calls, who may wait, and the end of what is open when the producer is closed. Does not own
what a call does (``transaction/manager.py``), nor what is sent.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from cluster.client.argument_checks import checked_integer, checked_key, checked_long, checked_mapping, checked_text
from cluster.client.committed_offset import OffsetAndMetadata
from cluster.client.group_metadata import ConsumerGroupMetadata
from cluster.client.producer.delivery import FatalProducerError
from cluster.client.producer.io_thread import ProducerIo
from cluster.client.producer.metrics import ProducerMetrics
from cluster.client.producer.shared_state import ProducerShared
from cluster.client.producer.transaction.calls import TxnCall, TxnOperation, copy_of
from cluster.client.producer.transaction.manager import TransactionManager
from cluster.client.producer.transaction.transaction_errors import TransactionError, TransactionTimeout
from cluster.client.wiring import no_broker_answered
from cluster.seams.units import ms_of_seconds, seconds_of_ms, whole_ms_of_ns
from cluster.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


class TransactionCalls:
    """Safe from any thread. In a callback nothing is waited for: a call that has no outcome at once times out."""

    def __init__(
        self, shared: ProducerShared, io: ProducerIo, manager: TransactionManager, metrics: ProducerMetrics
    ) -> None:
        self._shared = shared
        self._io = io
        self._manager = manager
        self._metrics = metrics
        self._is_closing = False
        # Of this transaction, the offsets whose call timed out: the same ones again are not another call.
        self._offsets: tuple[Mapping[TopicPartition, OffsetAndMetadata], ConsumerGroupMetadata, TxnCall] | None = None

    def __repr__(self) -> str:
        return f"TransactionCalls({self._manager!r})"

    def init(self) -> None:
        self._make(self._manager.init_transactions)

    def begin(self) -> None:
        self._io.check_alive()
        clock = self._shared.clock
        began_ns = clock.monotonic_ns()
        with self._shared.lock:
            self._refuse_if_closed()
            self._manager.begin_transaction()
            self._offsets = None
            self._metrics.called(TxnOperation.BEGIN, clock.monotonic_ns() - began_ns)

    def send_offsets(self, offsets: Mapping[TopicPartition, object], group: object) -> None:
        """Raises ``TypeError`` and ``ValueError`` for what cannot be sent."""
        checked, checked_group = _checked_offsets(offsets), _checked_group(group)
        self._make(lambda: self._sent_offsets(checked, checked_group))

    def commit(self) -> None:
        self._make(lambda: self._ended(self._manager.commit_transaction()))

    def abort(self) -> None:
        self._make(lambda: self._ended(self._manager.abort_transaction()))

    def close(self, timeout_s: float | None) -> None:
        """End what is open, within ``timeout_s``, or max.block.ms, and let nothing begin anymore."""
        shared = self._shared
        timeout_ms = shared.settings.max_block_ms if timeout_s is None else ms_of_seconds(timeout_s)
        with shared.lock:
            self._is_closing = True
            call = self._manager.end_for_close()
            shared.accumulator.close_open()
            try:
                is_open = call is not None and not self._wait(call, self._deadline_ms(timeout_ms))
            except FatalProducerError:
                is_open = True
            self._manager.close()
        if is_open:
            logger.warning("closed with an open transaction: its coordinator aborts it after transaction.timeout.ms")

    def _ended(self, call: TxnCall) -> TxnCall:
        """No record gets into what is there, which is sent, if it is to be sent, without lingering."""
        self._shared.accumulator.close_open()
        return call

    def _sent_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata
    ) -> TxnCall:
        if self._offsets is not None and self._offsets[:2] == (offsets, group):
            return self._offsets[2]
        call = self._manager.send_offsets_to_transaction(offsets, group)
        self._offsets = offsets, group, call
        return call

    def _make(self, begin: Callable[[], TxnCall]) -> None:
        """Begin a call, or repeat it, and wait for its outcome. Raises what the call raises."""
        self._io.check_alive()
        shared = self._shared
        began_ns = shared.clock.monotonic_ns()
        with shared.lock:
            self._refuse_if_closed()
            call = begin()
            is_done = self._wait(call, self._deadline_ms(shared.settings.max_block_ms))
            elapsed_ns = shared.clock.monotonic_ns() - began_ns
            if not is_done:
                waited_ms = whole_ms_of_ns(elapsed_ns)
                reason = "" if shared.version else f". {no_broker_answered(shared.settings.config)}"
                raise TransactionTimeout.of(call.operation.value, waited_ms, reason)
            self._manager.acknowledged(call)
            if call.error is None:
                self._metrics.called(call.operation, elapsed_ns)
            if self._offsets is not None and self._offsets[2] is call:
                self._offsets = None
        if isinstance(call.error, TransactionError):
            raise copy_of(call.error)

    def _deadline_ms(self, timeout_ms: float) -> float:
        may_wait = not (self._io.is_current_thread or self._io.has_ended)
        return self._shared.clock.monotonic_ms() + (timeout_ms if may_wait else 0)

    def _wait(self, call: TxnCall, deadline_ms: float) -> bool:
        """With the lock, which is let go while this waits. False if time ran out.

        Raises ``FatalProducerError`` if no one carries on the producer anymore.
        """
        shared = self._shared
        self._io.wakeup()
        while not call.is_done:
            if isinstance(shared.abort_error, FatalProducerError):
                raise shared.abort_error.with_traceback(None)
            left_ms = deadline_ms - shared.clock.monotonic_ms()
            if left_ms <= 0:
                return False
            shared.changed.wait(min(seconds_of_ms(left_ms), threading.TIMEOUT_MAX))
        return True

    def _refuse_if_closed(self) -> None:
        if self._is_closing or self._shared.is_closing:
            raise self._shared.refusal


def _checked_offsets(offsets: object) -> dict[TopicPartition, OffsetAndMetadata]:
    checked = {}
    for key, value in checked_mapping(offsets, "offsets").items():
        topic_partition = checked_key(key)
        given = value if isinstance(value, OffsetAndMetadata) else OffsetAndMetadata(value)
        offset = checked_long(given.offset, f"the offset of {topic_partition[0]}-{topic_partition[1]}")
        if offset < 0:
            raise ValueError(f"Invalid negative offset: {offset} of {topic_partition[0]}-{topic_partition[1]}")
        leader_epoch = checked_integer(given.leader_epoch, "a leader epoch", 32)
        checked[topic_partition] = OffsetAndMetadata(
            offset, leader_epoch, checked_text(given.metadata, "the metadata of an offset")
        )
    return checked


def _checked_group(group: object) -> ConsumerGroupMetadata:
    if isinstance(group, str):
        group = ConsumerGroupMetadata(group)
    if not isinstance(group, ConsumerGroupMetadata):
        raise TypeError(f"a group is a ConsumerGroupMetadata or its id, not {type(group).__name__}")
    instance_id = group.group_instance_id
    return ConsumerGroupMetadata(
        checked_text(group.group_id, "a group id"),
        checked_integer(group.generation_id, "a generation", 32),
        checked_text(group.member_id, "a member id"),
        None if instance_id is None else checked_text(instance_id, "a group instance id"),
    )
