"""Which state may follow which: Kafka's table, written out."""

from __future__ import annotations

import pytest

from cluster.client.producer.transaction.ledger import TransactionLedger
from cluster.client.producer.transaction.states import IllegalTxnProducerTransition, is_transition_valid
from cluster.client.producer.transaction.transaction_errors import TransactionError
from tests.cluster.client.producer.transaction.txn_bench import E, S

FOLLOWERS = {
    S.UNINITIALIZED: {S.INITIALIZING},
    S.INITIALIZING: {S.READY, S.ABORTABLE_ERROR},
    S.READY: {S.UNINITIALIZED, S.IN_TRANSACTION},
    S.IN_TRANSACTION: {S.COMMITTING_TRANSACTION, S.ABORTING_TRANSACTION, S.ABORTABLE_ERROR},
    S.COMMITTING_TRANSACTION: {S.READY, S.INITIALIZING, S.ABORTABLE_ERROR},
    S.ABORTING_TRANSACTION: {S.READY, S.INITIALIZING},
    S.ABORTABLE_ERROR: {S.ABORTING_TRANSACTION, S.ABORTABLE_ERROR, S.UNINITIALIZED},
    S.FATAL_ERROR: set(),
}


@pytest.mark.parametrize("source", S, ids=lambda state: state.name)
def test_what_may_follow(source):
    """These states, and the fatal one from everywhere; everything else is a mistake, and raises."""
    assert {target for target in S if is_transition_valid(source, target)} == FOLLOWERS[source] | {S.FATAL_ERROR}
    for target in S:
        ledger = TransactionLedger("id", 1000, lambda failures: 1)
        ledger.state = source
        error = TransactionError(E.NETWORK_EXCEPTION, "")
        if is_transition_valid(source, target):
            ledger.transition_to(target, error)
            assert (ledger.state, ledger.error) == (target, error)
        else:
            with pytest.raises(IllegalTxnProducerTransition):
                ledger.transition_to(target)
