"""What an error code means for a transaction, by the kind of the request: tables, as pure functions.

Owns the classification (the handlers of Kafka's TransactionManager). Does not own carrying it out (``answering.py``).

* What Kafka retries with the same coordinator, and everything else that is retriable: RETRY.
* The coordinator is elsewhere, or did not answer: FIND_AND_RETRY.
* INVALID_PRODUCER_EPOCH of a coordinator is PRODUCER_FENCED in the words of older brokers: FATAL. In the answer to
  Produce it is abortable (``produce_errors.py``): the EndTxn that follows says which of the two it was.
* UNKNOWN_PRODUCER_ID and INVALID_PRODUCER_ID_MAPPING: abortable where the epoch can be raised, else fatal (BUMP).
* An InitProducerId that is not permitted leaves the producer as it was before (REINITIALIZE). So does
  TRANSACTION_ABORTABLE there: Kafka lets the program abort what never began and calls the producer ready without an id.
* A code that no one expects is fatal, except in AddPartitionsToTxn, where Kafka makes it abortable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum

from cluster.client.producer.transaction.txn_requests import (
    AddTxnOffsets,
    AddTxnPartitions,
    CommitTxnOffsets,
    EndTransaction,
    FindTxnCoordinator,
    InitTxnProducerId,
    TxnRequest,
)
from cluster.protocol.errors import ErrorCode


class TxnStep(IntEnum):
    """What an answer leads to; of several partitions, the highest counts."""

    DONE = 0
    RETRY = 1
    FIND_AND_RETRY = 2
    ABORTABLE = 3
    BUMP = 4
    REINITIALIZE = 5
    FATAL = 6


_E = ErrorCode
_COORDINATOR_ELSEWHERE = frozenset(
    {_E.COORDINATOR_NOT_AVAILABLE, _E.NOT_COORDINATOR, _E.REQUEST_TIMED_OUT, _E.NETWORK_EXCEPTION}
)
_BUMP = {_E.UNKNOWN_PRODUCER_ID: TxnStep.BUMP, _E.INVALID_PRODUCER_ID_MAPPING: TxnStep.BUMP}
_ABORTABLE = {_E.TRANSACTION_ABORTABLE: TxnStep.ABORTABLE}
_FATAL = dict.fromkeys(
    (
        _E.INVALID_PRODUCER_EPOCH,
        _E.PRODUCER_FENCED,
        _E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        _E.INVALID_TXN_STATE,
        _E.UNSUPPORTED_VERSION,
    ),
    TxnStep.FATAL,
)

_OF_KIND: Mapping[type[TxnRequest], Mapping[ErrorCode, TxnStep]] = {
    FindTxnCoordinator: _FATAL | _ABORTABLE | {_E.GROUP_AUTHORIZATION_FAILED: TxnStep.ABORTABLE},
    InitTxnProducerId: _FATAL
    | dict.fromkeys(
        (_E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, _E.CLUSTER_AUTHORIZATION_FAILED, _E.TRANSACTION_ABORTABLE),
        TxnStep.REINITIALIZE,
    ),
    AddTxnPartitions: _FATAL | _ABORTABLE | _BUMP,
    AddTxnOffsets: _FATAL | _ABORTABLE | _BUMP | {_E.GROUP_AUTHORIZATION_FAILED: TxnStep.ABORTABLE},
    CommitTxnOffsets: _FATAL
    | _ABORTABLE
    | _BUMP
    | dict.fromkeys(
        (
            _E.GROUP_AUTHORIZATION_FAILED,
            _E.TOPIC_AUTHORIZATION_FAILED,
            _E.FENCED_INSTANCE_ID,
            _E.UNKNOWN_MEMBER_ID,
            _E.ILLEGAL_GENERATION,
        ),
        TxnStep.ABORTABLE,
    ),
    EndTransaction: _FATAL | _ABORTABLE | _BUMP,
}


def is_undecided(error_code: ErrorCode) -> bool:
    """Whether the coordinator may have done what it was asked although the answer is this code.

    A coordinator that is no longer one may have written its record before (NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE).
    """
    return error_code in _COORDINATOR_ELSEWHERE or error_code is ErrorCode.UNKNOWN_SERVER_ERROR


def txn_step(kind: type[TxnRequest], error_code: ErrorCode) -> TxnStep:
    """What one code means in the answer to a request of this kind."""
    if error_code is ErrorCode.NONE:
        return TxnStep.DONE
    known = _OF_KIND[kind].get(error_code)
    if known is not None:
        return known
    if error_code in _COORDINATOR_ELSEWHERE:
        return TxnStep.RETRY if kind is FindTxnCoordinator else TxnStep.FIND_AND_RETRY
    if error_code.retriable:
        return TxnStep.RETRY
    return TxnStep.ABORTABLE if kind is AddTxnPartitions else TxnStep.FATAL


def decisive_code(kind: type[TxnRequest], error_codes: Iterable[ErrorCode]) -> ErrorCode:
    """Of the codes of several partitions, the one that decides.

    OPERATION_NOT_ATTEMPTED says that another partition has the cause, and decides only if none has.
    """
    codes = sorted(set(error_codes) - {ErrorCode.NONE})
    causes = [code for code in codes if code is not ErrorCode.OPERATION_NOT_ATTEMPTED] or codes
    return max(causes, key=lambda code: txn_step(kind, code), default=ErrorCode.NONE)
