"""Every kind of request and every error code: the step, and what it makes of the producer and the waiting call."""

from __future__ import annotations

import pytest

from cluster.client.producer.transaction.answers import TxnStep, decisive_code, is_undecided, txn_step
from cluster.client.producer.transaction.transaction_errors import ProducerFenced, TransactionError
from cluster.client.producer.transaction.txn_requests import (
    AddTxnOffsets,
    AddTxnPartitions,
    CommitTxnOffsets,
    EndTransaction,
    FindTxnCoordinator,
    InitTxnProducerId,
)
from tests.cluster.client.producer.transaction.txn_bench import BACKOFF_MS, FLYING, E, S

KINDS = (FindTxnCoordinator, InitTxnProducerId, AddTxnPartitions, AddTxnOffsets, CommitTxnOffsets, EndTransaction)
_, R, F, A, B, U, X = TxnStep

#: Code -> the step in the answer to each kind, in the order of KINDS.
TABLE = {
    E.NONE: (TxnStep.DONE,) * 6,
    E.COORDINATOR_LOAD_IN_PROGRESS: (R, R, R, R, R, R),
    E.COORDINATOR_NOT_AVAILABLE: (R, F, F, F, F, F),
    E.NOT_COORDINATOR: (R, F, F, F, F, F),
    E.NETWORK_EXCEPTION: (R, F, F, F, F, F),
    E.REQUEST_TIMED_OUT: (R, F, F, F, F, F),
    E.CONCURRENT_TRANSACTIONS: (R, R, R, R, R, R),
    E.UNKNOWN_TOPIC_OR_PARTITION: (R, R, R, R, R, R),
    E.THROTTLING_QUOTA_EXCEEDED: (R, R, R, R, R, R),
    E.INVALID_PRODUCER_EPOCH: (X, X, X, X, X, X),
    E.PRODUCER_FENCED: (X, X, X, X, X, X),
    E.INVALID_TXN_STATE: (X, X, X, X, X, X),
    E.UNSUPPORTED_VERSION: (X, X, X, X, X, X),
    E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: (X, U, X, X, X, X),
    E.CLUSTER_AUTHORIZATION_FAILED: (X, U, A, X, X, X),
    E.TRANSACTION_ABORTABLE: (A, U, A, A, A, A),
    E.INVALID_TRANSACTION_TIMEOUT: (X, X, A, X, X, X),
    E.UNKNOWN_PRODUCER_ID: (X, X, B, B, B, B),
    E.INVALID_PRODUCER_ID_MAPPING: (X, X, B, B, B, B),
    E.GROUP_AUTHORIZATION_FAILED: (A, X, A, A, A, X),
    E.TOPIC_AUTHORIZATION_FAILED: (X, X, A, X, A, X),
    E.OPERATION_NOT_ATTEMPTED: (X, X, A, X, X, X),
    E.FENCED_INSTANCE_ID: (X, X, A, X, A, X),
    E.UNKNOWN_MEMBER_ID: (X, X, A, X, A, X),
    E.ILLEGAL_GENERATION: (X, X, A, X, A, X),
    E.UNSUPPORTED_FOR_MESSAGE_FORMAT: (X, X, A, X, X, X),
    E.UNKNOWN_SERVER_ERROR: (X, X, A, X, X, X),
}


@pytest.mark.parametrize("code", TABLE, ids=lambda code: code.name)
def test_the_step_of_each_code(code):
    """As in Kafka's handlers, with every retriable code retried."""
    assert tuple(txn_step(kind, code) for kind in KINDS) == TABLE[code]


def test_codes_without_a_row():
    """What is retriable is retried; the rest is fatal, and abortable for partitions."""
    for code in set(E) - TABLE.keys():
        for kind in KINDS:
            end = TxnStep.ABORTABLE if kind is AddTxnPartitions else TxnStep.FATAL
            assert txn_step(kind, code) is (TxnStep.RETRY if code.retriable else end)


@pytest.mark.parametrize(
    ("codes", "decisive"),
    [
        ([], E.NONE),
        ([E.NONE, E.NONE], E.NONE),
        ([E.NONE, E.OPERATION_NOT_ATTEMPTED], E.OPERATION_NOT_ATTEMPTED),
        ([E.OPERATION_NOT_ATTEMPTED, E.UNKNOWN_TOPIC_OR_PARTITION], E.UNKNOWN_TOPIC_OR_PARTITION),
        ([E.OPERATION_NOT_ATTEMPTED, E.TOPIC_AUTHORIZATION_FAILED], E.TOPIC_AUTHORIZATION_FAILED),
        ([E.NOT_COORDINATOR, E.CONCURRENT_TRANSACTIONS], E.NOT_COORDINATOR),
        ([E.TOPIC_AUTHORIZATION_FAILED, E.UNKNOWN_PRODUCER_ID, E.NONE], E.UNKNOWN_PRODUCER_ID),
        ([E.UNKNOWN_PRODUCER_ID, E.PRODUCER_FENCED], E.PRODUCER_FENCED),
    ],
)
def test_one_code_decides(codes, decisive):
    """The one with the gravest step; that another partition failed is no cause."""
    assert decisive_code(AddTxnPartitions, codes) is decisive
    assert decisive_code(AddTxnPartitions, codes[::-1]) is decisive


def test_what_leaves_it_open():
    """Silence, a coordinator that went away, and a failure without a name."""
    open_codes = {code for code in E if is_undecided(code)}
    assert open_codes == {
        E.UNKNOWN_SERVER_ERROR, E.REQUEST_TIMED_OUT, E.NETWORK_EXCEPTION, E.COORDINATOR_NOT_AVAILABLE,
        E.NOT_COORDINATOR,
    }  # fmt: skip


@pytest.mark.parametrize("code", [code for code in TABLE if code is not E.NONE], ids=lambda code: code.name)
@pytest.mark.parametrize("name", FLYING)
def test_what_each_code_leads_to(name, code):
    """A retry comes after the pause, an abortable error is for the program to abort, a fatal one is forever."""
    make, kind = FLYING[name]
    bench, call = make()
    request, before = bench.flying.request, bench.state
    assert type(request) is kind
    step = txn_step(kind, code)
    bench.answer(code)
    if name == "abort" and step is TxnStep.BUMP:
        assert bench.state is S.INITIALIZING
        bench.succeed_all()
        assert bench.state is S.READY and call.error is None
    elif step in (TxnStep.RETRY, TxnStep.FIND_AND_RETRY):
        assert bench.state is before and bench.flying is None
        again = bench.later()
        if step is TxnStep.FIND_AND_RETRY:
            assert again == FindTxnCoordinator(request.coordinator)
            again = bench.succeed()
        assert again == request
        bench.succeed_all()
        assert call is None or call.error is None
    elif step is TxnStep.REINITIALIZE or (step is TxnStep.ABORTABLE and name == "find"):
        assert bench.state is S.UNINITIALIZED and not call.error.is_fatal
        assert call.error.error_code is code
        bench.manager.acknowledged(call)
        bench.start()
    elif step is TxnStep.FATAL or (step is TxnStep.ABORTABLE and name == "abort"):
        assert bench.state is S.FATAL_ERROR
        assert call is None or call.error.is_fatal
        _is_over(bench, code)
    else:
        assert bench.state is S.ABORTABLE_ERROR
        assert call is None or (call.error.error_code is code and not call.error.is_fatal)
        _is_aborted(bench, call)


def _is_over(bench, code):
    bench.has_batches = True
    assert bench.later(10 * BACKOFF_MS) is None
    assert bench.dropped[-1].sent_too
    if bench.manager._ledger.transition.call is not None:
        bench.manager.acknowledged(bench.manager._ledger.transition.call)
    for refused in (bench.manager.init_transactions, bench.manager.begin_transaction, bench.manager.abort_transaction):
        with pytest.raises(TransactionError) as caught:
            refused()
        is_fenced = code in (E.PRODUCER_FENCED, E.INVALID_PRODUCER_EPOCH)
        assert caught.value.is_fatal and not caught.value.retriable
        assert isinstance(caught.value, ProducerFenced) is is_fenced
        assert caught.value.error_code is (E.PRODUCER_FENCED if is_fenced else code)


def _is_aborted(bench, call):
    if call is not None:
        bench.manager.acknowledged(call)
    with pytest.raises(TransactionError):
        bench.manager.begin_transaction()
    aborted = bench.manager.abort_transaction()
    bench.tick()
    bench.succeed_all()
    assert aborted.is_done and aborted.error is None
    bench.manager.acknowledged(aborted)
    bench.manager.begin_transaction()
    assert bench.state is S.IN_TRANSACTION
