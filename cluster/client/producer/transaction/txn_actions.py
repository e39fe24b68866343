"""What a transaction wants done: the actions of ``TransactionManager.tick``, in order. Owns their shapes alone."""

from __future__ import annotations

from typing import NamedTuple

from cluster.client.producer.transaction.calls import TxnCall
from cluster.client.producer.transaction.transaction_errors import TransactionError
from cluster.client.producer.transaction.txn_requests import TxnRequest


class SendTxnRequest(NamedTuple):
    """Send this to ``node``, or to any node if that is None; the end is ``TransactionManager.answered``.

    A node that cannot be reached is an answer, too: NETWORK_EXCEPTION.
    """

    request_id: int
    node: int | None
    request: TxnRequest


class UseTxnIdentity(NamedTuple):
    """Batches that are numbered from now on have this id and epoch, and every partition's numbers start from 0."""

    producer_id: int
    producer_epoch: int


class DropBatches(NamedTuple):
    """Fail the batches that were never sent; with ``sent_too``, all: nothing more is asked about those at brokers.

    Asked for in every tick in which a batch has no outcome; that one of them has it now is followed by a tick.
    """

    error: TransactionError
    sent_too: bool = False


class FinishTxnCall(NamedTuple):
    """``call`` has its outcome: wake the program that waits for it, if it still does."""

    call: TxnCall


TxnAction = SendTxnRequest | UseTxnIdentity | DropBatches | FinishTxnCall
