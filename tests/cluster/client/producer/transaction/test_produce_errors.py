"""What a batch that fails does to its transaction, and which batches are sent again."""

from __future__ import annotations

import pytest

from cluster.client.producer.outcomes import FATAL_ERRORS, BatchFacts, BatchStep, produce_outcome
from cluster.client.producer.transaction.produce_errors import (
    FailureStep,
    failure_step,
    transactional_produce_outcome,
)
from tests.cluster.client.producer.transaction.txn_bench import FLYING, T0, T1, Bench, E, S

FACTS = BatchFacts(5, 0, 10, 0, 1000, True)
FIRST = FACTS._replace(is_first_in_flight=True)


def test_every_code_of_a_failed_batch():
    """Fatal where the producer cannot continue; else abortable, if no number is missing or the epoch can be raised."""
    for code in set(E) - {E.NONE}:
        is_fatal = code in FATAL_ERRORS
        for was_numbered in (True, False):
            bumped = failure_step(code, was_numbered=was_numbered, can_bump_epoch=True)
            assert bumped is (FailureStep.FATAL if is_fatal else FailureStep.ABORTABLE_AND_BUMP)
            stuck = failure_step(code, was_numbered=was_numbered, can_bump_epoch=False)
            assert stuck is (FailureStep.FATAL if is_fatal or was_numbered else FailureStep.ABORTABLE)


@pytest.mark.parametrize(
    ("code", "facts", "step"),
    [
        (E.NONE, FACTS, BatchStep.COMPLETE),
        (E.DUPLICATE_SEQUENCE_NUMBER, FACTS, BatchStep.COMPLETE),
        (E.NOT_LEADER_OR_FOLLOWER, FACTS, BatchStep.RETRY),
        (E.OUT_OF_ORDER_SEQUENCE_NUMBER, FACTS, BatchStep.RETRY),
        (E.OUT_OF_ORDER_SEQUENCE_NUMBER, FIRST, BatchStep.FAIL),
        (E.UNKNOWN_PRODUCER_ID, FIRST, BatchStep.RETRY),
        (E.UNKNOWN_PRODUCER_ID, FIRST._replace(log_start_offset=9), BatchStep.FAIL),
        (E.INVALID_PRODUCER_EPOCH, FACTS, BatchStep.FAIL),
        (E.TRANSACTION_ABORTABLE, FACTS, BatchStep.FAIL),
        (E.MESSAGE_TOO_LARGE, FACTS, BatchStep.SPLIT),
        (E.PRODUCER_FENCED, FACTS, BatchStep.FATAL),
    ],
)
def test_numbers_never_start_again_within_a_transaction(code, facts, step):
    """A gap that cannot close fails the batch; everything else is as without transactions."""
    outcome = transactional_produce_outcome(code, facts)
    assert (outcome.step, outcome.restart) == (step, False)
    plain = produce_outcome(code, facts)
    assert plain.restart or plain == outcome


def test_a_failed_batch_makes_the_transaction_abortable():
    """A new batch goes nowhere; those that were sent may be repeated until they have an outcome."""
    bench = Bench().begin(T0)
    assert bench.manager.may_send(T0)
    assert not bench.manager.may_send(T1)
    bench.manager.batch_failed(E.MESSAGE_TOO_LARGE, was_numbered=True)
    assert bench.state is S.ABORTABLE_ERROR
    assert (bench.manager.may_send(T0), bench.manager.may_send(T0, is_retry=True)) == (False, True)
    bench.has_batches = True
    bench.tick()
    (dropped,) = bench.dropped
    assert not dropped.sent_too and dropped.error.error_code is E.MESSAGE_TOO_LARGE
    bench.manager.batch_failed(E.REQUEST_TIMED_OUT, was_numbered=True)
    assert bench.manager.error.error_code is E.MESSAGE_TOO_LARGE


def test_a_commit_fails_with_its_batch():
    """Nothing was asked of the coordinator: it is certain that the transaction is not committed."""
    bench = Bench().begin(T0)
    bench.has_batches = True
    call = bench.manager.commit_transaction()
    assert bench.tick() is None and bench.state is S.COMMITTING_TRANSACTION
    bench.manager.batch_failed(E.REQUEST_TIMED_OUT, was_numbered=True)
    bench.tick()
    assert call in bench.finished and not call.error.may_be_committed and not call.error.is_fatal


@pytest.mark.parametrize("can_bump_epoch", [True, False])
def test_a_fenced_batch_is_fatal(can_bump_epoch):
    """PRODUCER_FENCED ends everything; INVALID_PRODUCER_EPOCH lets the coordinator say who is right."""
    bench = Bench(can_bump_epoch=can_bump_epoch).begin(T0)
    bench.manager.batch_failed(E.INVALID_PRODUCER_EPOCH, was_numbered=True)
    assert bench.state is (S.ABORTABLE_ERROR if can_bump_epoch else S.FATAL_ERROR)
    bench.manager.batch_failed(E.PRODUCER_FENCED, was_numbered=True)
    assert bench.state is S.FATAL_ERROR and not bench.manager.may_send(T0, is_retry=True)


def test_a_batch_that_fails_while_an_abort_is_under_way():
    """The abort continues, and the epoch is raised after it."""
    bench = Bench().begin(T0)
    bench.has_batches = True
    call = bench.manager.abort_transaction()
    bench.tick()
    bench.manager.batch_failed(E.REQUEST_TIMED_OUT, was_numbered=True)
    assert bench.state is S.ABORTING_TRANSACTION
    bench.has_batches = False
    bench.tick()
    names = [type(each).__name__ for each in bench.succeed_all()]
    assert names == ["EndTransaction", "InitTxnProducerId"]
    assert call.is_done and call.error is None and bench.identities[-1] == (7, 4)


def test_every_request_ends_with_a_fatal_batch():
    """Whatever is in flight: its answer is no news."""
    for make, _ in FLYING.values():
        bench, call = make()
        bench.manager.batch_failed(E.CLUSTER_AUTHORIZATION_FAILED, was_numbered=True)
        assert call is None or call.error.is_fatal
        bench.succeed_all()
        assert bench.state is S.FATAL_ERROR


def test_the_first_error_is_the_cause():
    """What fails after it does not hide it, neither in the state nor in the call that waits."""
    bench, call = FLYING["offsets"][0]()
    bench.manager.batch_failed(E.MESSAGE_TOO_LARGE, was_numbered=True)
    bench.answer(E.GROUP_AUTHORIZATION_FAILED)
    assert bench.manager.error.error_code is call.error.error_code is E.MESSAGE_TOO_LARGE
    bench.manager.close()
    bench.manager.batch_failed(E.REQUEST_TIMED_OUT, was_numbered=True)
    assert bench.state is S.FATAL_ERROR and bench.manager.error.error_code is E.UNKNOWN_SERVER_ERROR


def test_a_record_that_was_never_sent():
    """Its transaction cannot be committed; nothing was numbered, so the epoch stays. An end that was asked for before
    does not have the record."""
    bench = Bench().begin(T0)
    bench.manager.record_failed(E.MESSAGE_TOO_LARGE)
    assert bench.state is S.ABORTABLE_ERROR and bench.manager.error.error_code is E.MESSAGE_TOO_LARGE
    bench.manager.abort_transaction()
    bench.tick()
    bench.succeed_all()
    assert bench.state is S.READY and len(bench.identities) == 1
    bench.manager.record_failed(E.MESSAGE_TOO_LARGE)
    bench.manager.acknowledged(bench.finished[-1])
    bench.manager.begin_transaction()
    bench.manager.commit_transaction()
    bench.manager.record_failed(E.MESSAGE_TOO_LARGE)
    assert bench.state is S.COMMITTING_TRANSACTION
