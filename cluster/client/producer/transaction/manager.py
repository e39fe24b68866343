"""TransactionManager: the calls of a program, the events of its producer, and which request is sent next (KIP-98).

Owns the order of decisions, and what may be called in which state (Kafka's TransactionManager, the transactional part).
Does not own what is known (``ledger.py``), what answers mean (``answers.py``, ``answering.py``), batches or sequences.
Pure: events go in, ``tick`` returns what is to be done.

* A batch goes to a partition only when the coordinator has confirmed the partition (``may_send``).
* EndTxn waits until no batch is without an outcome, and everything else that was to be added is.
* One request is in flight, in the order FindCoordinator, InitProducerId, additions, EndTxn, raising the epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from cluster.client.committed_offset import OffsetAndMetadata
from cluster.client.group_metadata import ConsumerGroupMetadata
from cluster.client.producer.actions import WakeAt
from cluster.client.producer.transaction.answering import take_answer
from cluster.client.producer.transaction.calls import TxnCall, TxnOperation, copy_of, illegal_call
from cluster.client.producer.transaction.ledger import TransactionLedger
from cluster.client.producer.transaction.produce_errors import FailureStep, failure_step
from cluster.client.producer.transaction.states import COMPLETING, ERRORS, OPEN, TxnProducerState
from cluster.client.producer.transaction.transaction_errors import (
    TransactionAborted,
    TransactionError,
    abortable,
    closed,
    fatal_to_transactions,
)
from cluster.client.producer.transaction.txn_actions import DropBatches, SendTxnRequest, TxnAction
from cluster.client.producer.transaction.txn_requests import (
    ADDITIONS,
    AddTxnOffsets,
    AddTxnPartitions,
    CoordinatorKind,
    EndTransaction,
    FindTxnCoordinator,
    InitTxnProducerId,
    TxnAnswer,
)
from cluster.protocol.errors import ErrorCode
from cluster.topic_partition import TopicPartition

_S = TxnProducerState
_OP = TxnOperation


class TransactionManager:
    """NOT thread-safe: its owner holds the producer's lock in every call. ``now_ms`` never goes back.

    Every call of the program and every event is followed by a ``tick``. ``backoff_ms`` gives the pause by the number
    of failures before the last one.
    """

    def __init__(self, transactional_id: str, timeout_ms: int, backoff_ms: Callable[[int], int]) -> None:
        self._ledger = TransactionLedger(transactional_id, timeout_ms, backoff_ms)

    def __repr__(self) -> str:
        return f"TransactionManager({self._ledger!r})"

    @property
    def state(self) -> TxnProducerState:
        return self._ledger.state

    @property
    def error(self) -> TransactionError | None:
        """Why the state is an error."""
        return self._ledger.error

    # What a program calls. A refusal is raised at once; the rest is in the call that is returned.

    def init_transactions(self) -> TxnCall:
        """Get a producer id. What another producer with the same transactional id has left open is aborted."""
        call = self._ledger.transition.again(_OP.INIT)
        if call is not None:
            return call
        self._raise_error()
        self._require(_OP.INIT, _S.UNINITIALIZED)
        self._ledger.transition_to(_S.INITIALIZING)
        call = self._ledger.transition.begin(_OP.INIT)
        self._ledger.queue.add(InitTxnProducerId(self._ledger.identity, self._ledger.timeout_ms), call)
        return call

    def begin_transaction(self) -> None:
        """Of the coordinator, nothing is asked before the first record or offset."""
        self._ensure_free(_OP.BEGIN)
        self._require(_OP.BEGIN, _S.READY)
        self._ledger.transition_to(_S.IN_TRANSACTION)

    def ensure_may_send(self) -> None:
        """Raises if a record cannot be part of a transaction now."""
        self._ensure_free(_OP.SEND)
        self._require(_OP.SEND, _S.IN_TRANSACTION)

    def use_partition(self, topic_partition: TopicPartition) -> None:
        """A record is to be sent there: the partition is added to the transaction before."""
        self.ensure_may_send()
        self._ledger.partitions.use(topic_partition)

    def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata
    ) -> TxnCall:
        """Commit what a consumer has read as part of the transaction.

        Raises ``ValueError`` for a group that names no one: such a commit could not be fenced (KIP-447).
        """
        if not group.group_id or (group.generation_id > 0 and not group.member_id):
            raise ValueError(
                f"{group} has no group id, or a generation without a member id; pass what group_metadata() of the "
                "consumer returns"
            )
        self._ensure_free(_OP.SEND_OFFSETS)
        self._require(_OP.SEND_OFFSETS, _S.IN_TRANSACTION)
        call = TxnCall(_OP.SEND_OFFSETS)
        if offsets:
            self._ledger.queue.add(AddTxnOffsets(self._ledger.identity, group, dict(offsets)), call)
        else:
            self._ledger.finish(call)
        return call

    def commit_transaction(self) -> TxnCall:
        """Commit when all records have their outcome; fails if one of them failed."""
        call = self._ledger.transition.again(_OP.COMMIT)
        if call is not None:
            return call
        self._raise_error()
        self._require(_OP.COMMIT, _S.IN_TRANSACTION)
        self._ledger.transition_to(_S.COMMITTING_TRANSACTION)
        return self._end(_OP.COMMIT)

    def abort_transaction(self) -> TxnCall:
        """Abort: records that were not sent fail, those at brokers are waited for."""
        ledger = self._ledger
        call = ledger.transition.again(_OP.ABORT)
        if call is not None:
            return call
        if ledger.state is not _S.ABORTABLE_ERROR:
            self._raise_error()
        self._require(_OP.ABORT, _S.IN_TRANSACTION, _S.ABORTABLE_ERROR)
        ledger.transition_to(_S.ABORTING_TRANSACTION)
        ledger.partitions.drop_unasked()
        for queued in ledger.queue.waiting:
            request = queued.request
            is_for_group = isinstance(request, FindTxnCoordinator) and request.key.kind is CoordinatorKind.GROUP
            if isinstance(request, ADDITIONS) or is_for_group:
                ledger.queue.remove(queued)
                ledger.finish(queued.call, TransactionAborted())
        return self._end(_OP.ABORT)

    def acknowledged(self, call: TxnCall) -> None:
        """The program was told the outcome of ``call``. One that stopped waiting was not, and has to call again."""
        self._ledger.transition.acknowledged(call)

    def end_for_close(self) -> TxnCall | None:
        """The program closes the producer and waits: abort what is open, or wait for the end that is under way.

        Returns the call to wait for before ``close``, or None.
        """
        ledger = self._ledger
        call = ledger.transition.call
        if ledger.state in COMPLETING:
            return call
        if ledger.state not in OPEN:
            return None
        if call is not None:
            # A program that does not ask for its commit again learns nothing more about it.
            ledger.transition.acknowledged(call)
        return self.abort_transaction()

    # What happens.

    def coordinator_ready(self, *, can_bump_epoch: bool) -> None:
        """There is a connection to the coordinator, which serves InitProducerId 3 or does not."""
        self._ledger.can_bump_epoch = can_bump_epoch

    def node_lost(self, node: int) -> None:
        """The connection to ``node`` is lost: its coordinators may be elsewhere. A request to it is also answered."""
        coordinators = self._ledger.coordinators
        for key in [key for key, where in coordinators.items() if where == node]:
            del coordinators[key]

    def answered(self, request_id: int, answer: TxnAnswer, now_ms: int) -> None:
        """The end of a request. One that is not in flight (anymore) is no news."""
        ended = self._ledger.queue.end(request_id)
        if ended is not None:
            take_answer(self._ledger, ended, answer, now_ms)

    def batch_failed(self, error_code: ErrorCode, *, was_numbered: bool) -> None:
        """A batch of the transaction has failed for good: by its answer, or as too old; ``was_numbered``: it was sent.

        Not to be called for batches that ``DropBatches`` made fail.
        """
        ledger = self._ledger
        step = failure_step(error_code, was_numbered=was_numbered, can_bump_epoch=ledger.can_bump_epoch)
        what = "a record of the transaction was not stored, as far as is known"
        if step is FailureStep.FATAL:
            ledger.fail_fatal(fatal_to_transactions(error_code, what))
        else:
            ledger.fail_abortable(abortable(error_code, what), bump=step is FailureStep.ABORTABLE_AND_BUMP)

    def record_failed(self, error_code: ErrorCode) -> None:
        """A record got into no batch: a transaction without it must not be committed, whether or not anyone looks at
        its future.
        """
        if self._ledger.state is _S.IN_TRANSACTION:
            self._ledger.fail_abortable(abortable(error_code, "a record of the transaction was not sent"))

    def close(self) -> None:
        """The program closes the producer without waiting: what waits for answers fails, nothing more is sent."""
        self._ledger.fail_fatal(closed(may_be_committed=self._ledger.may_be_committed))

    # What is to be done.

    def may_send(self, topic_partition: TopicPartition, *, is_retry: bool = False) -> bool:
        """Whether a batch may go to this partition now. A transaction that is not to be committed sends nothing new."""
        ledger = self._ledger
        if topic_partition not in ledger.partitions.added or ledger.state is _S.FATAL_ERROR:
            return False
        return is_retry or ledger.state in (_S.IN_TRANSACTION, _S.COMMITTING_TRANSACTION)

    def tick(self, now_ms: int, *, has_incomplete_batches: bool) -> list[TxnAction | WakeAt]:
        """Everything that is to be done now, in order. ``has_incomplete_batches``: one has no outcome."""
        ledger = self._ledger
        if has_incomplete_batches:
            self._drop_batches()
        wake_at_ms = None
        if ledger.queue.in_flight is None:
            wake_at_ms = self._send_next(now_ms, has_incomplete_batches)
        wake = [] if wake_at_ms is None else [WakeAt(wake_at_ms)]
        return [*ledger.take_actions(), *wake]

    def _drop_batches(self) -> None:
        ledger = self._ledger
        if ledger.state in ERRORS and ledger.error is not None:
            ledger.act(DropBatches(ledger.error, sent_too=ledger.state is _S.FATAL_ERROR))
        elif ledger.state is _S.ABORTING_TRANSACTION:
            ledger.act(DropBatches(TransactionAborted()))

    def _send_next(self, now_ms: int, has_incomplete_batches: bool) -> int | None:
        """Send the request that is due; returns when it is, if it has to wait for that time alone."""
        ledger = self._ledger
        while True:
            if ledger.partitions.new and not ledger.queue.has(AddTxnPartitions):
                ledger.queue.add(AddTxnPartitions(ledger.identity))
            queued = ledger.queue.first
            if queued is None:
                return None
            if now_ms < queued.ready_at_ms:
                return queued.ready_at_ms
            request = queued.request
            if isinstance(request, EndTransaction):
                if has_incomplete_batches:
                    return None
                if not ledger.needs_end_txn(commit=request.commit):
                    ledger.queue.remove(queued)
                    ledger.complete(queued.call)
                    continue
                # What was lost must not arrive after the end and begin a transaction that no one ends.
                ledger.is_bump_required |= ledger.is_in_doubt and not request.commit and ledger.can_bump_epoch
            node = None
            if request.coordinator is not None:
                node = ledger.coordinators.get(request.coordinator)
                if node is None:
                    ledger.queue.add(FindTxnCoordinator(request.coordinator))
                    continue
            if isinstance(request, AddTxnPartitions):
                request = queued.request = replace(request, topic_partitions=ledger.partitions.ask())
            ledger.act(SendTxnRequest(ledger.queue.send(queued), node, request))
            return None

    def _end(self, operation: TxnOperation) -> TxnCall:
        call = self._ledger.transition.begin(operation)
        self._ledger.queue.add(EndTransaction(self._ledger.identity, operation is _OP.COMMIT), call)
        return call

    def _ensure_free(self, operation: TxnOperation) -> None:
        """Raise if another call has to be repeated first, or an error is the state."""
        self._ledger.transition.again(operation)
        self._raise_error()

    def _raise_error(self) -> None:
        if self._ledger.state in ERRORS and self._ledger.error is not None:
            raise copy_of(self._ledger.error)

    def _require(self, operation: TxnOperation, *states: TxnProducerState) -> None:
        if self._ledger.state not in states:
            raise illegal_call(operation, self._ledger.state)
