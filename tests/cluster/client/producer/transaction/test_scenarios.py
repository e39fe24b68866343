"""Whole transactions as Kafka plays them, request by request.

Owns the written-out walks: a first transaction, consume-transform-produce, a zombie, a coordinator that moves, a record
that was lost, a transaction that timed out.
"""

from __future__ import annotations

import pytest

from cluster.client.producer.transaction.transaction_errors import ProducerFenced, TransactionError
from cluster.client.producer.transaction.txn_requests import (
    AddTxnOffsets,
    AddTxnPartitions,
    CommitTxnOffsets,
    EndTransaction,
    FindTxnCoordinator,
    InitTxnProducerId,
    TxnAnswer,
    TxnIdentity,
)
from tests.cluster.client.producer.transaction.txn_bench import (
    BACKOFF_MS,
    EPOCH,
    GROUP,
    GROUP_KEY,
    ID,
    ME,
    OFFSETS,
    PID,
    T0,
    T1,
    TIMEOUT_MS,
    TXN_KEY,
    U0,
    Bench,
    E,
    S,
)

RAISED = TxnIdentity(ID, PID, EPOCH + 1)


def test_find_init_add_produce_commit():
    """The coordinator, the id, a partition before its first batch, and the end after its last one."""
    bench = Bench()
    bench.manager.init_transactions()
    bench.tick()
    assert bench.succeed_all() == [FindTxnCoordinator(TXN_KEY), InitTxnProducerId(TxnIdentity(ID), TIMEOUT_MS)]
    bench.manager.acknowledged(bench.finished[-1])
    for _ in range(2):
        bench.manager.begin_transaction()
        assert bench.tick() is None
        bench.manager.use_partition(T0)
        bench.manager.use_partition(U0)
        bench.has_batches = True
        assert bench.tick() == AddTxnPartitions(ME, (T0, U0))
        assert not bench.manager.may_send(T0)
        bench.succeed()
        assert bench.manager.may_send(T0) and bench.manager.may_send(U0)
        call = bench.manager.commit_transaction()
        assert bench.tick() is None
        bench.has_batches = False
        assert bench.tick() == EndTransaction(ME, True)
        bench.succeed()
        bench.manager.acknowledged(call)
    assert bench.identities == [(PID, EPOCH)]


def test_consume_transform_produce():
    """Records and offsets of one transaction: the group is added at the transaction's coordinator, and its offsets are
    committed at its own."""
    bench = Bench().start()
    bench.manager.begin_transaction()
    bench.manager.use_partition(U0)
    offsets = bench.manager.send_offsets_to_transaction(OFFSETS, GROUP)
    commit = bench.manager.commit_transaction()
    bench.tick()
    assert bench.succeed_all() == [
        AddTxnOffsets(ME, GROUP, OFFSETS),
        AddTxnPartitions(ME, (U0,)),
        FindTxnCoordinator(GROUP_KEY),
        CommitTxnOffsets(ME, GROUP, OFFSETS),
        EndTransaction(ME, True),
    ]
    assert bench.finished[-2:] == [offsets, commit] and commit.error is None


def test_the_id_of_a_producer_that_died():
    """The coordinator aborts what the other one left, and asks to wait: CONCURRENT_TRANSACTIONS until it has."""
    bench = Bench()
    call = bench.manager.init_transactions()
    bench.tick()
    bench.succeed()
    for _ in range(3):
        assert bench.answer(E.CONCURRENT_TRANSACTIONS) is None and bench.state is S.INITIALIZING
        assert bench.later() == InitTxnProducerId(TxnIdentity(ID), TIMEOUT_MS)
    bench.succeed()
    assert call.error is None


def test_a_zombie_is_fenced_at_its_next_step():
    """Another producer has taken the id: adding, committing and aborting all end this one."""
    for step in ("add", "commit", "abort"):
        bench = Bench().begin(T0)
        if step == "add":
            bench.manager.use_partition(T1)
        else:
            getattr(bench.manager, f"{step}_transaction")()
        bench.tick()
        bench.answer(E.PRODUCER_FENCED)
        assert bench.state is S.FATAL_ERROR
        assert isinstance(bench.manager.error, ProducerFenced)


def test_a_transaction_that_timed_out():
    """The coordinator has raised the epoch and aborted: the batch is refused, the abort is tried, and then it is clear
    that this producer is fenced."""
    bench = Bench().begin(T0)
    bench.manager.batch_failed(E.INVALID_PRODUCER_EPOCH, was_numbered=True)
    with pytest.raises(TransactionError, match="INVALID_PRODUCER_EPOCH"):
        bench.manager.commit_transaction()
    call = bench.manager.abort_transaction()
    assert bench.tick() == EndTransaction(ME, False)
    bench.answer(E.PRODUCER_FENCED)
    assert isinstance(call.error, ProducerFenced) and bench.state is S.FATAL_ERROR


def test_the_coordinator_moves_during_a_commit():
    """Its answer is lost, another broker loads, and the same EndTxn is repeated: the commit is done once."""
    bench = Bench().begin(T0)
    call = bench.manager.commit_transaction()
    bench.tick()
    bench.answer(E.NETWORK_EXCEPTION)
    assert bench.later() == FindTxnCoordinator(TXN_KEY)
    bench.answer(E.COORDINATOR_NOT_AVAILABLE)
    assert bench.later() == FindTxnCoordinator(TXN_KEY)
    assert bench.answer(TxnAnswer(node=3)) == EndTransaction(ME, True) and bench.flying.node == 3
    for code in (E.COORDINATOR_LOAD_IN_PROGRESS, E.CONCURRENT_TRANSACTIONS):
        bench.answer(code)
        assert bench.later() == EndTransaction(ME, True)
    bench.succeed()
    assert call.error is None and bench.state is S.READY


def test_a_record_is_lost_and_the_next_transaction_succeeds():
    """A batch expires: abort, raise the epoch under the same id (KIP-360), number from 0, and continue."""
    bench = Bench().begin(T0)
    bench.manager.batch_failed(E.REQUEST_TIMED_OUT, was_numbered=True)
    bench.tick()
    call = bench.manager.abort_transaction()
    bench.tick()
    assert bench.succeed_all() == [EndTransaction(ME, False), InitTxnProducerId(ME, TIMEOUT_MS)]
    assert call.error is None and bench.identities == [(PID, EPOCH), (PID, EPOCH + 1)]
    bench.manager.acknowledged(call)
    bench.manager.begin_transaction()
    bench.manager.use_partition(T0)
    bench.manager.commit_transaction()
    bench.tick()
    assert bench.succeed_all() == [AddTxnPartitions(RAISED, (T0,)), EndTransaction(RAISED, True)]


def test_an_epoch_that_is_used_up():
    """The coordinator gives a new producer id instead."""
    bench = Bench().begin(T0)
    bench.manager.batch_failed(E.REQUEST_TIMED_OUT, was_numbered=True)
    bench.manager.abort_transaction()
    bench.tick()
    bench.succeed()
    bench.answer(TxnAnswer(producer_id=PID + 1, producer_epoch=0))
    assert bench.state is S.READY and bench.identities[-1] == (PID + 1, 0)


def test_two_transactions_right_after_each_other():
    """The markers of the first are on their way while the second begins: a few short waits."""
    bench = Bench().begin(T0)
    bench.manager.acknowledged(bench.manager.commit_transaction())
    bench.tick()
    bench.succeed()
    bench.manager.acknowledged(bench.finished[-1])
    bench.manager.begin_transaction()
    bench.manager.use_partition(T0)
    bench.tick()
    begun_ms = bench.now_ms
    for _ in range(4):
        bench.answer(E.CONCURRENT_TRANSACTIONS)
        bench.now_ms = bench.wake_at_ms
        assert bench.tick() == AddTxnPartitions(ME, (T0,))
    bench.succeed()
    assert bench.now_ms - begun_ms == 80 < BACKOFF_MS


def test_a_member_that_lost_its_partitions_commits_nothing():
    """KIP-447: the generation is fenced by the group's coordinator; the transaction is aborted, the producer lives."""
    for code in (E.ILLEGAL_GENERATION, E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID):
        bench = Bench().begin(U0)
        call = bench.manager.send_offsets_to_transaction(OFFSETS, GROUP)
        bench.tick()
        bench.succeed()
        bench.succeed()
        bench.answer(TxnAnswer(partitions={T0: code, T1: code}))
        assert call.error.error_code is code and bench.state is S.ABORTABLE_ERROR
        abort = bench.manager.abort_transaction()
        assert bench.tick() == EndTransaction(ME, False)
        bench.succeed()
        assert abort.error is None and bench.state is S.READY
