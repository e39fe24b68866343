"""The sender's core with a producer id: how it gets one, gaps in the sequences, and errors that end it."""

from __future__ import annotations

from cluster.client.producer.actions import AskProducerId, Connect, FailBatch, SendProduce, WakeAt
from cluster.client.producer.delivery import FatalProducerError
from cluster.protocol.errors import ErrorCode
from tests.cluster.client.producer.batches import a_batch
from tests.cluster.client.producer.sender_bench import BACKOFF_MS, REQUEST_MS, Bench, some


def test_the_id_is_asked_of_a_connected_node_and_again_after_trouble() -> None:
    """A retriable answer, a lost connection and silence are followed by another question, after the back-off."""
    bench = Bench({0: (1, 0), 1: (2, 0)}, is_idempotent=True)
    assert some(Connect, bench.tick()) == [Connect(1)]
    bench.core.disconnected(1, 0)
    assert some(Connect, bench.tick()) == [Connect(2)]
    bench.core.connected(2)
    assert some(AskProducerId, bench.tick()) == [AskProducerId(2)]
    bench.core.producer_id(0, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert bench.tick() == [WakeAt(BACKOFF_MS)]
    assert bench.tick(BACKOFF_MS) == [AskProducerId(2)]
    bench.core.producer_id(BACKOFF_MS + REQUEST_MS, ErrorCode.REQUEST_TIMED_OUT)
    assert bench.tick(BACKOFF_MS + REQUEST_MS) == [WakeAt(2 * BACKOFF_MS + REQUEST_MS)]
    assert some(AskProducerId, bench.tick(2 * BACKOFF_MS + REQUEST_MS)) == [AskProducerId(2)]
    bench.core.disconnected(2, bench.now_ms)
    bench.core.connected(1)
    assert some(AskProducerId, bench.tick()) == []
    assert some(AskProducerId, bench.tick(bench.now_ms + BACKOFF_MS)) == [AskProducerId(1)]
    bench.core.producer_id(bench.now_ms, ErrorCode.NONE, 7, 0)
    assert bench.tick() == []


def test_an_id_that_is_refused_is_fatal() -> None:
    """Everything fails, also what is appended later; nothing keeps the sender awake."""
    bench = Bench({0: (1, 0)}, is_idempotent=True)
    bench.put(a_batch())
    bench.core.connected(1)
    bench.tick()
    bench.core.producer_id(0, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    (failed,) = bench.tick()
    assert isinstance(failed, FailBatch)
    assert isinstance(failed.error, FatalProducerError)
    bench.put(a_batch())
    assert [type(action) for action in bench.tick()] == [FailBatch]
    assert bench.tick() == []


def test_after_a_fatal_answer_only_what_was_never_sent_has_certainly_failed() -> None:
    """What is in flight may be stored."""
    bench = Bench({0: (1, 0)}, is_idempotent=True)
    bench.start(1)
    fenced, in_flight = a_batch(), a_batch()
    bench.put(fenced, in_flight)
    one, _two = some(SendProduce, bench.tick())
    bench.answer(one, ErrorCode.PRODUCER_FENCED)
    failed = {each.batch: each.error.error_code for each in some(FailBatch, bench.tick())}
    assert failed == {fenced: ErrorCode.PRODUCER_FENCED, in_flight: ErrorCode.REQUEST_TIMED_OUT}


def test_a_gap_restarts_the_sequences_of_what_was_refused() -> None:
    """A refused record leaves a gap: the batch behind it is refused for its sequence, and goes under a new epoch."""
    bench = Bench({0: (1, 0)}, is_idempotent=True)
    bench.start(1)
    bad, good = a_batch(), a_batch()
    bench.put(bad, good)
    one, two = some(SendProduce, bench.tick())
    bench.answer(one, ErrorCode.INVALID_RECORD)
    bench.answer(two, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    (failed,) = some(FailBatch, bench.tick())
    assert failed.error.error_code is ErrorCode.INVALID_RECORD
    (request,) = some(SendProduce, bench.tick(BACKOFF_MS))
    assert request.batches == (good,)
    assert (good.producer_id, good.producer_epoch, good.base_sequence) == (7, 1, 0)


def test_a_batch_that_may_be_stored_is_never_numbered_again() -> None:
    """With new numbers it could be stored twice: it fails, as a timeout, and what comes after it goes on."""
    bench = Bench({0: (1, 0)}, is_idempotent=True)
    bench.start(1)
    bad, doubtful, new = a_batch(), a_batch(), a_batch()
    bench.put(bad, doubtful)
    one, two = some(SendProduce, bench.tick())
    bench.answer(one, ErrorCode.INVALID_RECORD)
    bench.answer(two, ErrorCode.REQUEST_TIMED_OUT)
    (again,) = some(SendProduce, bench.tick(BACKOFF_MS))
    bench.answer(again, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    (failed,) = some(FailBatch, bench.tick())
    assert failed.batch is doubtful
    assert failed.error.error_code is ErrorCode.REQUEST_TIMED_OUT
    bench.put(new)
    assert [request.batches for request in some(SendProduce, bench.tick())] == [(new,)]
    assert (new.producer_epoch, new.base_sequence) == (1, 0)


def test_what_waits_behind_a_batch_that_is_given_up_goes_at_once() -> None:
    """In the tick that gives it up: no event follows, for nothing is in flight, and it would wait until it expires."""
    bench = Bench({0: (1, 0)}, is_idempotent=True)
    bench.start(1)
    bad, doubtful = a_batch(), a_batch()
    bench.put(bad, doubtful)
    one, two = some(SendProduce, bench.tick())
    waiting = a_batch()
    bench.put(waiting)
    bench.answer(one, ErrorCode.INVALID_RECORD)
    bench.answer(two, ErrorCode.REQUEST_TIMED_OUT)
    (again,) = some(SendProduce, bench.tick(BACKOFF_MS))
    bench.answer(again, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    actions = bench.tick()
    assert [each.batch for each in some(FailBatch, actions)] == [doubtful]
    assert [each.batches for each in some(SendProduce, actions)] == [(waiting,)]
