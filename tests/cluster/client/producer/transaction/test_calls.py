"""A call that a program stopped waiting for is made again before any other."""

from __future__ import annotations

import pytest

from cluster.client.producer.transaction.calls import PendingTransition, TxnOperation, copy_of
from cluster.client.producer.transaction.transaction_errors import (
    FatalTransactionError,
    IllegalTransactionCall,
    TransactionAborted,
)
from tests.cluster.client.producer.transaction.txn_bench import E


def test_the_same_call_again():
    """Until the program was told the outcome, the same call is the same one, and every other is refused."""
    pending = PendingTransition()
    assert pending.again(TxnOperation.COMMIT) is None
    call = pending.begin(TxnOperation.COMMIT)
    pending.acknowledged(call)
    assert pending.again(TxnOperation.COMMIT) is call
    for operation in set(TxnOperation) - {TxnOperation.COMMIT}:
        with pytest.raises(IllegalTransactionCall, match="`commit_transaction` timed out and must be retried"):
            pending.again(operation)
    call.is_done = True
    assert pending.again(TxnOperation.COMMIT) is call
    pending.acknowledged(call)
    assert pending.again(TxnOperation.ABORT) is None


def test_an_error_is_copied_for_each_call():
    """What is raised twice does not gather tracebacks."""
    for error in (FatalTransactionError(E.PRODUCER_FENCED, "text"), TransactionAborted()):
        copied = copy_of(error)
        assert copied is not error and type(copied) is type(error)
        assert (str(copied), copied.is_fatal, copied.error_code) == (str(error), error.is_fatal, error.error_code)
        assert not copied.retriable
