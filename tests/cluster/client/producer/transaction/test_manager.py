"""Each transition by each call and event, and what is sent when."""

from __future__ import annotations

import pytest

from cluster.client.group_metadata import ConsumerGroupMetadata
from cluster.client.producer.transaction.answering import ADD_PARTITIONS_RETRY_BACKOFF_MS
from cluster.client.producer.transaction.transaction_errors import (
    IllegalTransactionCall,
    TransactionAborted,
    TransactionError,
)
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
    FLYING,
    GROUP,
    GROUP_KEY,
    GROUP_NODE,
    ID,
    ME,
    NODE,
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


def in_state(state):
    """A bench in this state, whose last call was acknowledged if it had an outcome."""
    if state is S.UNINITIALIZED:
        return Bench()
    if state is S.INITIALIZING:
        return FLYING["init"][0]()[0]
    if state is S.READY:
        return Bench().start()
    bench = Bench().begin(T0)
    if state is S.COMMITTING_TRANSACTION:
        bench.manager.commit_transaction()
    elif state is S.ABORTING_TRANSACTION:
        bench.manager.abort_transaction()
    elif state is S.ABORTABLE_ERROR:
        bench.manager.batch_failed(E.REQUEST_TIMED_OUT, was_numbered=True)
    elif state is S.FATAL_ERROR:
        bench.manager.batch_failed(E.PRODUCER_FENCED, was_numbered=True)
    return bench


CALLS = {
    "init": lambda manager: manager.init_transactions(),
    "begin": lambda manager: manager.begin_transaction(),
    "send": lambda manager: manager.use_partition(U0),
    "offsets": lambda manager: manager.send_offsets_to_transaction(OFFSETS, GROUP),
    "commit": lambda manager: manager.commit_transaction(),
    "abort": lambda manager: manager.abort_transaction(),
}
#: Call -> state -> the state that follows. Elsewhere it is refused; in an error state, with that error.
ALLOWED = {
    "init": {S.UNINITIALIZED: S.INITIALIZING, S.INITIALIZING: S.INITIALIZING},
    "begin": {S.READY: S.IN_TRANSACTION},
    "send": {S.IN_TRANSACTION: S.IN_TRANSACTION},
    "offsets": {S.IN_TRANSACTION: S.IN_TRANSACTION},
    "commit": {
        S.IN_TRANSACTION: S.COMMITTING_TRANSACTION,
        S.COMMITTING_TRANSACTION: S.COMMITTING_TRANSACTION,
    },
    "abort": {
        S.IN_TRANSACTION: S.ABORTING_TRANSACTION,
        S.ABORTABLE_ERROR: S.ABORTING_TRANSACTION,
        S.ABORTING_TRANSACTION: S.ABORTING_TRANSACTION,
    },
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("state", S, ids=lambda state: state.name)
def test_each_call_in_each_state(name, state):
    """Either it leads on, or it is refused and changes nothing."""
    bench = in_state(state)
    assert bench.state is state
    after = ALLOWED[name].get(state)
    if after is not None:
        CALLS[name](bench.manager)
    else:
        is_error = state in (S.ABORTABLE_ERROR, S.FATAL_ERROR)
        with pytest.raises(TransactionError if is_error else IllegalTransactionCall):
            CALLS[name](bench.manager)
    assert bench.state is (after or state)


def test_init_finds_the_coordinator_first():
    """Any node is asked for it; the id then comes from the coordinator."""
    bench = Bench()
    call = bench.manager.init_transactions()
    assert bench.tick() == FindTxnCoordinator(TXN_KEY) and bench.flying.node is None
    assert bench.succeed() == InitTxnProducerId(TxnIdentity(ID), TIMEOUT_MS) and bench.flying.node == NODE
    assert not call.is_done
    bench.succeed()
    assert bench.finished == [call] and bench.identities == [(PID, EPOCH)]
    assert bench.state is S.READY


def test_one_request_is_in_flight():
    """Whatever is due waits for the answer; a stray answer is no news."""
    bench, _ = FLYING["add"][0]()
    flying = bench.flying
    bench.manager.send_offsets_to_transaction(OFFSETS, GROUP)
    bench.manager.use_partition(T1)
    bench.manager.commit_transaction()
    assert bench.tick() is None
    bench.manager.answered(flying.request_id + 1, TxnAnswer(), 0)
    assert bench.tick() is None
    sent = [bench.succeed()]
    assert sent == [AddTxnOffsets(ME, GROUP, OFFSETS)]
    assert [type(each) for each in bench.succeed_all()[1:]] == [
        AddTxnPartitions, FindTxnCoordinator, CommitTxnOffsets, EndTransaction,
    ]  # fmt: skip


def test_what_is_new_joins_what_is_repeated():
    """One request has all partitions that are due."""
    bench, _ = FLYING["add"][0]()
    bench.manager.use_partition(T1)
    bench.answer(E.COORDINATOR_LOAD_IN_PROGRESS)
    assert bench.wake_at_ms == BACKOFF_MS
    assert bench.later() == AddTxnPartitions(ME, (T0, T1))
    bench.answer(TxnAnswer(partitions={T0: E.NONE, T1: E.NONE}))
    assert bench.manager.may_send(T0) and bench.manager.may_send(T1)


def test_the_first_addition_asks_again_soon():
    """The transaction before is being completed; later ones take the usual pause."""
    bench, _ = FLYING["add"][0]()
    bench.answer(E.CONCURRENT_TRANSACTIONS)
    assert bench.wake_at_ms == ADD_PARTITIONS_RETRY_BACKOFF_MS
    bench.later(ADD_PARTITIONS_RETRY_BACKOFF_MS)
    bench.succeed()
    bench.manager.use_partition(T1)
    bench.tick()
    bench.answer(E.CONCURRENT_TRANSACTIONS)
    assert bench.wake_at_ms == bench.now_ms + BACKOFF_MS


def test_the_codes_of_partitions():
    """The gravest decides, the cause is told; a partition without a code is as if there were no answer."""
    bench, _ = FLYING["add"][0]()
    bench.answer(TxnAnswer(partitions={}))
    assert bench.later() == FindTxnCoordinator(TXN_KEY)
    bench.succeed()
    bench.answer(TxnAnswer(partitions={T0: E.OPERATION_NOT_ATTEMPTED, T1: E.TOPIC_AUTHORIZATION_FAILED}))
    assert bench.state is S.ABORTABLE_ERROR
    assert str(bench.manager.error) == (
        "TOPIC_AUTHORIZATION_FAILED: t-0 could not be added to the transaction; abort the transaction"
    )


def test_end_txn_waits_for_batches_and_additions():
    """It is the last of the transaction."""
    bench = Bench().start()
    bench.manager.begin_transaction()
    bench.manager.use_partition(T0)
    bench.has_batches = True
    call = bench.manager.commit_transaction()
    assert bench.tick() == AddTxnPartitions(ME, (T0,))
    assert bench.succeed() is None and bench.manager.may_send(T0)
    bench.has_batches = False
    assert bench.tick() == EndTransaction(ME, True)
    assert not bench.manager.may_send(U0)
    bench.succeed()
    assert call.error is None and bench.state is S.READY and not bench.manager.may_send(T0)


@pytest.mark.parametrize("name", ["commit", "abort"])
def test_nothing_was_added(name):
    """The coordinator knows nothing of the transaction: it is over without a request."""
    bench = Bench().start()
    bench.manager.begin_transaction()
    call = CALLS[name](bench.manager)
    assert bench.tick() is None
    assert bench.finished[-1] is call and call.error is None and bench.state is S.READY


def test_an_abort_drops_what_was_not_asked():
    """New partitions and offsets are not added anymore; batches that were not sent fail."""
    bench, _ = FLYING["add"][0]()
    offsets = bench.manager.send_offsets_to_transaction(OFFSETS, GROUP)
    bench.manager.use_partition(T1)
    bench.has_batches = True
    bench.manager.abort_transaction()
    assert bench.tick() is None
    assert isinstance(offsets.error, TransactionAborted)
    assert isinstance(bench.dropped[-1].error, TransactionAborted) and not bench.dropped[-1].sent_too
    bench.has_batches = False
    assert bench.succeed() == EndTransaction(ME, False)
    bench.succeed_all()
    assert bench.state is S.READY and bench.identities == [(PID, EPOCH)]


def test_an_addition_in_doubt_is_aborted():
    """Its answer is lost, the abort asks the coordinator, which knows no such transaction; then the epoch is raised."""
    for answer in (E.INVALID_TXN_STATE, E.NONE):
        bench, _ = FLYING["add"][0]()
        call = bench.manager.abort_transaction()
        bench.tick()
        assert bench.answer(E.NETWORK_EXCEPTION) == FindTxnCoordinator(TXN_KEY)
        assert bench.succeed() == EndTransaction(ME, False)
        assert bench.answer(answer) == InitTxnProducerId(ME, TIMEOUT_MS)
        bench.succeed()
        assert call.error is None and bench.identities[-1] == (PID, EPOCH + 1)
        bench.manager.acknowledged(call)
        bench.manager.begin_transaction()
        bench.manager.use_partition(T0)
        assert bench.tick() == AddTxnPartitions(RAISED, (T0,))


def test_an_addition_that_was_refused_is_not_in_doubt():
    """After a refused AddPartitionsToTxn there is nothing to abort: no EndTxn is sent."""
    bench, _ = FLYING["add"][0]()
    bench.answer(E.CONCURRENT_TRANSACTIONS)
    call = bench.manager.abort_transaction()
    assert bench.tick() is None
    assert call.is_done and call.error is None


def test_offsets_go_to_the_coordinator_of_the_group():
    """After the transaction has the group; what was committed is not repeated."""
    bench = Bench().begin()
    call = bench.manager.send_offsets_to_transaction(OFFSETS, GROUP)
    assert bench.tick() == AddTxnOffsets(ME, GROUP, OFFSETS) and bench.flying.node == NODE
    assert bench.succeed() == FindTxnCoordinator(GROUP_KEY)
    assert bench.succeed() == CommitTxnOffsets(ME, GROUP, OFFSETS) and bench.flying.node == GROUP_NODE
    bench.answer(TxnAnswer(partitions={T0: E.NONE, T1: E.COORDINATOR_LOAD_IN_PROGRESS}))
    assert bench.later() == CommitTxnOffsets(ME, GROUP, {T1: OFFSETS[T1]})
    bench.answer(TxnAnswer(partitions={T1: E.NONE}))
    assert bench.finished[-1] is call and call.error is None


def test_offsets_that_no_one_could_fence_are_refused():
    """A group without a name, or a generation without a member."""
    bench = Bench().begin()
    for group in (ConsumerGroupMetadata(""), ConsumerGroupMetadata("group", 5)):
        with pytest.raises(ValueError, match="group"):
            bench.manager.send_offsets_to_transaction(OFFSETS, group)
    call = bench.manager.send_offsets_to_transaction({}, GROUP)
    assert bench.tick() is None and call.is_done


def test_one_group_is_remembered():
    """The coordinator of another one is looked for; that of the transaction stays known."""
    bench = Bench().begin()
    for group in ("a", "b", "a"):
        bench.manager.send_offsets_to_transaction(OFFSETS, ConsumerGroupMetadata(group))
        bench.tick()
        assert [type(each) for each in bench.succeed_all()] == [AddTxnOffsets, FindTxnCoordinator, CommitTxnOffsets]


def test_a_lost_node_has_no_coordinators():
    """They are looked for before the next request."""
    bench = Bench().begin(T0)
    bench.manager.node_lost(GROUP_NODE)
    bench.manager.use_partition(T1)
    assert bench.tick() == AddTxnPartitions(ME, (T1,))
    bench.manager.node_lost(NODE)
    assert bench.answer(E.NETWORK_EXCEPTION) is None
    assert bench.later() == FindTxnCoordinator(TXN_KEY)
    assert bench.succeed() == AddTxnPartitions(ME, (T1,))


def test_a_commit_that_timed_out_is_made_again():
    """The program waits for the same outcome; it must not abort what may be committed."""
    bench, call = FLYING["commit"][0]()
    with pytest.raises(IllegalTransactionCall, match="must be retried"):
        bench.manager.abort_transaction()
    assert bench.manager.commit_transaction() is call
    bench.succeed()
    assert bench.manager.commit_transaction() is call
    with pytest.raises(IllegalTransactionCall, match="must be retried"):
        bench.manager.begin_transaction()
    bench.manager.acknowledged(call)
    bench.manager.begin_transaction()


def test_a_commit_without_an_answer_may_have_happened():
    """The error says so, if what ends the producer is not an answer to the first attempt."""
    for first, second, expected in (
        (None, E.PRODUCER_FENCED, False),
        (E.CONCURRENT_TRANSACTIONS, E.PRODUCER_FENCED, False),
        (E.NETWORK_EXCEPTION, E.PRODUCER_FENCED, True),
        (E.NOT_COORDINATOR, E.INVALID_TXN_STATE, True),
        (None, E.UNKNOWN_SERVER_ERROR, True),
        (E.REQUEST_TIMED_OUT, E.TRANSACTION_ABORTABLE, True),
    ):
        bench, call = FLYING["commit"][0]()
        if first is not None:
            bench.answer(first)
            if isinstance(bench.later(), FindTxnCoordinator):
                bench.succeed()
        bench.answer(second)
        assert call.error.may_be_committed is expected, (first, second)


def test_an_id_that_is_not_known_needs_no_abort():
    """The coordinator would refuse EndTxn: the epoch is raised at once, when all batches have their outcome."""
    bench, _ = FLYING["add"][0]()
    bench.answer(E.INVALID_PRODUCER_ID_MAPPING)
    call = bench.manager.abort_transaction()
    bench.has_batches = True
    assert bench.tick() is None
    bench.has_batches = False
    assert bench.tick() == InitTxnProducerId(ME, TIMEOUT_MS)
    bench.succeed()
    assert call.error is None and bench.state is S.READY


@pytest.mark.parametrize("code", [E.UNKNOWN_PRODUCER_ID, E.INVALID_PRODUCER_ID_MAPPING])
@pytest.mark.parametrize("name", ["add", "offsets", "commit offsets", "commit", "abort"])
def test_a_coordinator_that_cannot_raise_the_epoch(name, code):
    """What would be abortable is fatal there."""
    bench, call = FLYING[name][0]()
    bench.manager.coordinator_ready(can_bump_epoch=False)
    bench.answer(code)
    assert bench.state is S.FATAL_ERROR and (call is None or call.error.is_fatal)


def test_raising_the_epoch_that_is_refused():
    """The call fails, and the producer may begin again without an id."""
    bench, call = FLYING["bump"][0]()
    assert bench.flying.request == InitTxnProducerId(ME, TIMEOUT_MS)
    bench.answer(E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    assert bench.state is S.UNINITIALIZED
    assert str(call.error).endswith(
        "InitProducerId was refused; call init_transactions again when the cause is remedied"
    )
    bench.manager.acknowledged(call)
    bench.manager.init_transactions()
    assert bench.tick() == InitTxnProducerId(TxnIdentity(ID), TIMEOUT_MS)


def test_an_abort_while_an_addition_flies():
    """A retriable answer is not followed by a retry, and an error changes nothing: it is aborted anyway."""
    for name in ("add", "offsets", "find group", "commit offsets"):
        for code in (E.COORDINATOR_LOAD_IN_PROGRESS, E.GROUP_AUTHORIZATION_FAILED, E.TRANSACTION_ABORTABLE, E.NONE):
            bench, offsets = FLYING[name][0]()
            call = bench.manager.abort_transaction()
            assert bench.tick() is None
            bench.answer(code)
            bench.later()
            bench.succeed_all()
            assert bench.state is S.READY and call.error is None, (name, code)
            assert offsets is None or offsets.is_done


def test_closing_ends_what_waits():
    """Also the call of a program that waits; what is in flight is no news."""
    for make, _ in FLYING.values():
        bench, call = make()
        bench.manager.close()
        bench.tick()
        assert call is None or (call in bench.finished and call.error.is_fatal)
        bench.succeed_all()
        assert bench.state is S.FATAL_ERROR
    bench, call = FLYING["commit"][0]()
    bench.manager.close()
    assert call.error.may_be_committed and str(call.error) == "Producer is closed forcefully."


@pytest.mark.parametrize("state", S, ids=lambda state: state.name)
def test_closing_aborts_what_is_open(state):
    """What is under way is waited for; without a transaction there is nothing to do."""
    bench = in_state(state)
    is_open = state in (
        S.IN_TRANSACTION, S.ABORTABLE_ERROR, S.COMMITTING_TRANSACTION, S.ABORTING_TRANSACTION,
    )  # fmt: skip
    call = bench.manager.end_for_close()
    assert (call is not None) is is_open
    if call is not None:
        request = bench.tick()
        assert request == EndTransaction(ME, state is S.COMMITTING_TRANSACTION)
        bench.succeed_all()
        assert call.is_done and call.error is None


def test_closing_after_a_commit_that_failed_unnoticed():
    """The program stopped waiting; its transaction is aborted anyway."""
    bench = Bench().begin(T0)
    bench.manager.commit_transaction()
    bench.manager.batch_failed(E.REQUEST_TIMED_OUT, was_numbered=True)
    assert bench.manager.end_for_close().operation.value == "abort_transaction"
