"""What always holds of a transactional producer, between two of its events.

``validate``:

* ``error-told``: an error is known exactly in the two error states.
* ``identity-known``: an id and an epoch are known in every state from READY on, but not before it is first reached.
* ``sets-apart``: a partition is new, pending or added, and only one of them.
* ``open-only``: without an open transaction there are no partitions, and nothing is started, in doubt or lost.
* ``added-counts``: a transaction with an added partition is started.
* ``pending-asked``: while the transaction can be committed, pending partitions are in a request that waits or flies.
* ``additions-useful``: additions wait only while the transaction can be committed.
* ``one-end``: while the transaction is completing there is one EndTxn, as the state says; otherwise there is none.
* ``one-init``: while the producer is initializing there is one InitProducerId; otherwise there is none.
* ``same-identity``: requests name the producer's present id and epoch.
* ``call-waits``: init, commit and abort have no outcome exactly as long as the producer is on its way there.
* ``fatal-is-quiet``: after a fatal error nothing waits to be sent.
* ``bump-after-abort``: the epoch has to be raised only while an abort is due.

``validate_successor``, before and after one event:

* ``state-follows``: the state is the same, or follows it; a refused initialization passes ABORTABLE_ERROR.
* ``identity-ascends``: under one producer id the epoch never goes back.
"""

from __future__ import annotations

from typing import NamedTuple

from cluster.client.producer.transaction.ledger import TransactionLedger
from cluster.client.producer.transaction.manager import TransactionManager
from cluster.client.producer.transaction.states import COMPLETING, ERRORS, OPEN, VALID_SOURCES, TxnProducerState
from cluster.client.producer.transaction.txn_requests import (
    ADDITIONS,
    AddTxnPartitions,
    EndTransaction,
    FindTxnCoordinator,
    InitTxnProducerId,
    TxnIdentity,
    TxnRequest,
)
from cluster.invariants import InvariantBroken

_S = TxnProducerState
_COMMITTABLE = (_S.IN_TRANSACTION, _S.COMMITTING_TRANSACTION)


def validate(manager: TransactionManager) -> None:
    """Raises ``InvariantBroken``."""
    ledger = manager._ledger
    state = ledger.state
    if (ledger.error is not None) is not (state in ERRORS):
        raise InvariantBroken(manager, "error-told", f"{ledger.error!r} in {state.name}")
    if state is not _S.FATAL_ERROR:
        _validate_identity(ledger)
        _validate_transaction(ledger)
        _validate_requests(ledger)
    elif ledger.queue.waiting:
        raise InvariantBroken(ledger, "fatal-is-quiet", f"{ledger.queue}")
    call = ledger.transition.call
    is_waiting = call is not None and not call.is_done
    if is_waiting is not (state in COMPLETING or state is _S.INITIALIZING):
        raise InvariantBroken(ledger, "call-waits", f"{call} in {state.name}")


def _validate_identity(ledger: TransactionLedger) -> None:
    identity = ledger.identity
    is_known = identity.producer_id >= 0 and identity.producer_epoch >= 0
    is_due = ledger.state in OPEN or ledger.state is _S.READY
    if (is_due and not is_known) or (ledger.state is _S.UNINITIALIZED and is_known):
        raise InvariantBroken(ledger, "identity-known", f"{identity} in {ledger.state.name}")


def _validate_transaction(ledger: TransactionLedger) -> None:
    partitions = ledger.partitions
    count = len(partitions.new | partitions.pending | partitions.added)
    if count != len(partitions.new) + len(partitions.pending) + len(partitions.added):
        raise InvariantBroken(ledger, "sets-apart", f"{partitions.new}, {partitions.pending}, {partitions.added}")
    is_any = bool(count) or ledger.is_started or ledger.is_in_doubt or ledger.is_commit_lost
    if is_any and ledger.state not in OPEN:
        raise InvariantBroken(ledger, "open-only", ledger.state.name)
    if partitions.added and not ledger.is_started:
        raise InvariantBroken(ledger, "added-counts", f"{partitions.added}")
    if ledger.is_bump_required and ledger.state not in (_S.ABORTABLE_ERROR, _S.ABORTING_TRANSACTION):
        raise InvariantBroken(ledger, "bump-after-abort", ledger.state.name)


def _validate_requests(ledger: TransactionLedger) -> None:
    state = ledger.state
    waiting = [queued.request for queued in ledger.queue.waiting]
    flying = ledger.queue.in_flight
    requests: list[TxnRequest] = waiting if flying is None else [flying.request, *waiting]
    is_asked = any(isinstance(each, AddTxnPartitions) for each in requests)
    if state in _COMMITTABLE and ledger.partitions.pending and not is_asked:
        raise InvariantBroken(ledger, "pending-asked", f"{ledger.partitions.pending}")
    if state not in _COMMITTABLE and any(isinstance(each, ADDITIONS) for each in waiting):
        raise InvariantBroken(ledger, "additions-useful", f"{waiting} in {state.name}")
    ends = [each.commit for each in requests if isinstance(each, EndTransaction)]
    if ends != ([state is _S.COMMITTING_TRANSACTION] if state in COMPLETING else []):
        raise InvariantBroken(ledger, "one-end", f"{requests} in {state.name}")
    inits = [each for each in requests if isinstance(each, InitTxnProducerId)]
    if len(inits) != (state is _S.INITIALIZING):
        raise InvariantBroken(ledger, "one-init", f"{requests} in {state.name}")
    for each in requests:
        if not isinstance(each, FindTxnCoordinator) and each.identity != ledger.identity:
            raise InvariantBroken(ledger, "same-identity", f"{each}, now it is {ledger.identity}")


class TxnSnapshot(NamedTuple):
    """What ``validate_successor`` compares."""

    state: TxnProducerState
    identity: TxnIdentity

    @classmethod
    def of(cls, manager: TransactionManager) -> TxnSnapshot:
        """The manager as it is now."""
        return cls(manager._ledger.state, manager._ledger.identity)


def validate_successor(before: TxnSnapshot, after: TxnSnapshot) -> None:
    """Around one event. Raises ``InvariantBroken``."""
    sources = VALID_SOURCES[after.state] | {after.state}
    is_reset = before.state is _S.INITIALIZING and after.state is _S.UNINITIALIZED
    if before.state not in sources and not is_reset:
        raise InvariantBroken(after, "state-follows", f"{before.state.name}, then {after.state.name}")
    one, other = before.identity, after.identity
    if one.producer_id == other.producer_id and other.producer_epoch < one.producer_epoch:
        raise InvariantBroken(after, "identity-ascends", f"{one}, then {other}")
