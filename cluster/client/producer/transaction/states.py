"""The states of a transactional producer and how one leads to another (Kafka's TransactionManager.State).

Owns the table. Does not own what brings a transition about (``manager.py``, ``answering.py``). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class TxnProducerState(Enum):
    """UNINITIALIZED -> INITIALIZING -> READY -> IN_TRANSACTION -> COMMITTING or ABORTING -> READY.

    After an abort that has to raise the epoch, INITIALIZING comes before READY. FATAL_ERROR is forever.
    """

    UNINITIALIZED = "uninitialized"
    INITIALIZING = "initializing"
    READY = "ready"
    IN_TRANSACTION = "in transaction"
    COMMITTING_TRANSACTION = "committing transaction"
    ABORTING_TRANSACTION = "aborting transaction"
    ABORTABLE_ERROR = "abortable error"
    FATAL_ERROR = "fatal error"


_S = TxnProducerState

#: From which states each one can be reached. READY to UNINITIALIZED is in Kafka's table for producers without
#: transactions, which share it.
VALID_SOURCES: Mapping[TxnProducerState, frozenset[TxnProducerState]] = {
    _S.UNINITIALIZED: frozenset({_S.READY, _S.ABORTABLE_ERROR}),
    _S.INITIALIZING: frozenset({_S.UNINITIALIZED, _S.COMMITTING_TRANSACTION, _S.ABORTING_TRANSACTION}),
    _S.READY: frozenset({_S.INITIALIZING, _S.COMMITTING_TRANSACTION, _S.ABORTING_TRANSACTION}),
    _S.IN_TRANSACTION: frozenset({_S.READY}),
    _S.COMMITTING_TRANSACTION: frozenset({_S.IN_TRANSACTION}),
    _S.ABORTING_TRANSACTION: frozenset({_S.IN_TRANSACTION, _S.ABORTABLE_ERROR}),
    _S.ABORTABLE_ERROR: frozenset({_S.IN_TRANSACTION, _S.COMMITTING_TRANSACTION, _S.ABORTABLE_ERROR, _S.INITIALIZING}),
    _S.FATAL_ERROR: frozenset(_S),
}
#: An end of the transaction was asked for and is not confirmed.
COMPLETING = frozenset({_S.COMMITTING_TRANSACTION, _S.ABORTING_TRANSACTION})
#: The producer has a transaction, as far as it knows.
OPEN = COMPLETING | {_S.IN_TRANSACTION, _S.ABORTABLE_ERROR}
ERRORS = frozenset({_S.ABORTABLE_ERROR, _S.FATAL_ERROR})


def is_transition_valid(source: TxnProducerState, target: TxnProducerState) -> bool:
    """Whether a producer in ``source`` may become ``target``."""
    return source in VALID_SOURCES[target]


class IllegalTxnProducerTransition(Exception):
    """A transition that cannot be: a mistake of this room, never of a program or a broker."""
