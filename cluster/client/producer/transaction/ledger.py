"""TransactionLedger: everything a transactional producer knows, and the steps that keep it consistent.

Owns the state with its error, the identity, the coordinators, and what becomes of waiting requests and calls when the
state changes. Does not own which event leads to which step (``manager.py``, ``answering.py``). Pure.

Stricter than Kafka, which leaves these transactions to their timeout (the first), or its producer stuck (the others):

* An addition that may have reached the coordinator counts (*in doubt*): the abort is sent although nothing was
  confirmed, and the epoch is raised after it, so that the lost request cannot begin a transaction that has no end.
* Whether the epoch has to be raised is decided when the abort is confirmed, with all that is known by then.
* A coordinator that does not know the id (INVALID_PRODUCER_ID_MAPPING, UNKNOWN_PRODUCER_ID) has nothing to abort.
"""

from __future__ import annotations

from collections.abc import Callable

from cluster.client.producer.transaction.calls import PendingTransition, TxnCall
from cluster.client.producer.transaction.request_queue import TxnRequestQueue
from cluster.client.producer.transaction.states import (
    IllegalTxnProducerTransition,
    TxnProducerState,
    is_transition_valid,
)
from cluster.client.producer.transaction.transaction_errors import TransactionError
from cluster.client.producer.transaction.txn_actions import FinishTxnCall, TxnAction
from cluster.client.producer.transaction.txn_partitions import TxnPartitions
from cluster.client.producer.transaction.txn_requests import (
    CoordinatorKey,
    CoordinatorKind,
    EndTransaction,
    FindTxnCoordinator,
    InitTxnProducerId,
    TxnIdentity,
)

_S = TxnProducerState


class TransactionLedger:
    """NOT thread-safe. Belongs to one ``TransactionManager``."""

    def __init__(self, transactional_id: str, timeout_ms: int, backoff_ms: Callable[[int], int]) -> None:
        self.state = _S.UNINITIALIZED
        #: Why the state is an error.
        self.error: TransactionError | None = None
        self.identity = TxnIdentity(transactional_id)
        self.timeout_ms = timeout_ms
        #: Whether the coordinator serves InitProducerId 3 (KIP-360).
        self.can_bump_epoch = False
        self.is_bump_required = False
        #: The coordinator confirmed a partition or a group.
        self.is_started = False
        #: It may have one that it did not confirm.
        self.is_in_doubt = False
        #: It has nothing under this id: an abort need not be sent.
        self.is_unknown_there = False
        #: A commit was asked for without an answer that counts.
        self.is_commit_lost = False
        self.partitions = TxnPartitions()
        self.coordinators: dict[CoordinatorKey, int] = {}
        self.queue = TxnRequestQueue(backoff_ms)
        self.transition = PendingTransition()
        self._actions: list[TxnAction] = []

    def __repr__(self) -> str:
        numbers = f"id {self.identity.producer_id}, epoch {self.identity.producer_epoch}"
        return f"TransactionLedger({self.state.value}, {numbers}, {self.partitions!r}, {self.queue!r})"

    @property
    def may_be_committed(self) -> bool:
        """Whether a commit is with the coordinator, or may have been without an answer."""
        flying = self.queue.in_flight
        is_flying = flying is not None and isinstance(flying.request, EndTransaction) and flying.request.commit
        return self.is_commit_lost or is_flying

    def needs_end_txn(self, *, commit: bool) -> bool:
        """Whether the coordinator has to be asked to end the transaction."""
        return not self.is_unknown_there and (self.is_started or (self.is_in_doubt and not commit))

    def act(self, action: TxnAction) -> None:
        self._actions.append(action)

    def take_actions(self) -> list[TxnAction]:
        actions, self._actions = self._actions, []
        return actions

    def transition_to(self, target: TxnProducerState, error: TransactionError | None = None) -> None:
        """The one place where the state changes."""
        if not is_transition_valid(self.state, target):
            raise IllegalTxnProducerTransition(f"{self} cannot become {target.value}")
        self.state = target
        self.error = error

    def finish(self, call: TxnCall | None, error: TransactionError | None = None) -> None:
        """``call`` has its outcome, unless it had one before."""
        if call is not None and not call.is_done:
            call.is_done = True
            call.error = error
            self.act(FinishTxnCall(call))

    def fail_waiting(self, error: TransactionError, *, lookups_too: bool) -> None:
        """Nothing that waits is sent anymore; a lookup of the transaction's coordinator may still be of use."""
        for queued in self.queue.waiting:
            request = queued.request
            is_useful = isinstance(request, FindTxnCoordinator) and request.key.kind is CoordinatorKind.TRANSACTION
            if lookups_too or not is_useful:
                self.queue.remove(queued)
                self.finish(queued.call, error)

    def fail_abortable(self, error: TransactionError, *, bump: bool = False) -> None:
        """The transaction has to be aborted: by the program, unless it is doing so already.

        ``bump``: the epoch has to be raised after the abort, where it can be.
        """
        if self.state is _S.FATAL_ERROR:
            return
        if self.state is _S.INITIALIZING:
            self.reinitialize(error)
            return
        self.is_bump_required |= bump and self.can_bump_epoch
        if self.state is not _S.ABORTING_TRANSACTION:
            # The first error is the cause; what it made fail says less.
            self.transition_to(_S.ABORTABLE_ERROR, self.error or error)
            self.partitions.drop_unasked()
            self.fail_waiting(error, lookups_too=False)

    def fail_fatal(self, error: TransactionError) -> None:
        """The producer can do nothing anymore."""
        if self.state is not _S.FATAL_ERROR:
            self.transition_to(_S.FATAL_ERROR, error)
            self.partitions.drop_unasked()
            self.fail_waiting(error, lookups_too=True)
            if self.queue.in_flight is not None:
                self.finish(self.queue.in_flight.call, error)
            self.finish(self.transition.call, error)

    def reinitialize(self, error: TransactionError) -> None:
        """The producer has no id, and may ask for one again."""
        self.transition_to(_S.ABORTABLE_ERROR, error)
        self.transition_to(_S.UNINITIALIZED)
        self.identity = TxnIdentity(self.identity.transactional_id)
        self.fail_waiting(error, lookups_too=True)
        self.finish(self.transition.call, error)

    def complete(self, call: TxnCall | None) -> None:
        """The transaction is over. ``call`` is done now, or when the epoch is raised."""
        is_bump_required = self.is_bump_required
        self.is_bump_required = self.is_started = self.is_in_doubt = False
        self.is_unknown_there = self.is_commit_lost = False
        self.partitions.clear()
        if is_bump_required:
            self.transition_to(_S.INITIALIZING)
            self.queue.add(InitTxnProducerId(self.identity, self.timeout_ms), call)
        else:
            self.transition_to(_S.READY)
            self.finish(call)
