"""The sender's core, event by event: requests, answers, timeouts and the end (seeds 000 and 002, semantics 8.5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import pytest

from cluster.client.producer.accumulator import RecordAccumulator
from cluster.client.producer.actions import (
    Action,
    AskProducerId,
    BatchSplit,
    CompleteBatch,
    Connect,
    FailBatch,
    PartitionResult,
    RefreshMetadata,
    SendProduce,
    WakeAt,
)
from cluster.client.producer.batch import ProducerBatch
from cluster.client.producer.idempotence import ProducerIdentity
from cluster.client.producer.sender import SenderCore
from cluster.client.producer.sender_settings import SenderSettings
from cluster.client.producer.values import (
    DeliveryTimeout,
    FatalProducerError,
    InvalidRecord,
    ProduceError,
    ProducerClosed,
    RecordTooLarge,
)
from cluster.protocol.errors import ErrorCode
from tests.cluster.client.producer.batches import Leaders, a_batch, a_view

A = TypeVar("A")

REQUEST_MS = 30
DELIVERY_MS = 100
BACKOFF_MS = 10


class Bench:
    """A core with one thread's worth of glue: times are given, actions are kept."""

    def __init__(
        self, leaders: Leaders, *, acks: int = -1, max_in_flight: int = 5, retries: int = 9, is_idempotent: bool = False
    ) -> None:
        self.accumulator = RecordAccumulator(
            batch_size=1_000, linger_ms=0, delivery_timeout_ms=DELIVERY_MS, is_exhausted=lambda: False
        )
        self.identity = ProducerIdentity(max_in_flight) if is_idempotent else None
        settings = SenderSettings(acks, max_in_flight, 10_000, REQUEST_MS, DELIVERY_MS, retries)
        self.core = SenderCore(settings, self.accumulator, self.identity, lambda failures: BACKOFF_MS)
        self.core.metadata(a_view(leaders))
        self.now_ms = 0

    def put(self, *batches: ProducerBatch) -> None:
        for batch in batches:
            self.accumulator.add(batch)

    def tick(self, now_ms: int | None = None) -> list[Action]:
        self.now_ms = self.now_ms if now_ms is None else now_ms
        return self.core.tick(self.now_ms)

    def start(self, *nodes: int) -> None:
        """Connected, and with producer id 7."""
        for node in nodes:
            self.core.connected(node)
        if self.identity is not None:
            assert some(AskProducerId, self.tick()) == [AskProducerId(nodes[0])]
            self.core.producer_id(self.now_ms, ErrorCode.NONE, 7, 0)

    def answer(self, request: SendProduce, *codes: ErrorCode, base_offset: int = 40, now_ms: int | None = None) -> None:
        """One code for each batch of the request, in order."""
        self.now_ms = self.now_ms if now_ms is None else now_ms
        results = {
            (batch.topic, batch.partition): PartitionResult(code, base_offset, 5, error_message="so it is")
            for batch, code in zip(request.batches, codes, strict=True)
        }
        self.core.produced(request.node, request.request_id, results, self.now_ms)


def some(kind: type[A], actions: Sequence[Action]) -> list[A]:
    return [action for action in actions if isinstance(action, kind)]


def test_what_is_ready_is_sent_to_its_leaders_and_completed() -> None:
    """One request for each node with a batch of each partition; the answer completes with offset and time."""
    bench = Bench({0: (1, 0), 1: (1, 0), 2: (2, 0)})
    batches = [a_batch(partition=index) for index in range(3)]
    bench.put(*batches)
    assert some(Connect, bench.tick()) == [Connect(1), Connect(2)]
    assert some(Connect, bench.tick()) == []
    bench.start(1, 2)
    one, two = some(SendProduce, bench.tick())
    assert (one.node, one.batches, one.acks, one.timeout_ms) == (1, tuple(batches[:2]), -1, REQUEST_MS)
    assert (two.node, two.batches) == (2, (batches[2],))
    assert not bench.core.is_idle
    bench.answer(one, ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
    bench.answer(two, ErrorCode.NONE)
    assert bench.tick() == [
        CompleteBatch(batches[0], 40, 5),
        CompleteBatch(batches[1], -1, 5),
        CompleteBatch(batches[2], 40, 5),
    ]
    assert bench.core.is_idle


def test_a_node_has_at_most_so_many_requests_in_flight() -> None:
    """max.in.flight.requests.per.connection; an answer makes room."""
    bench = Bench({0: (1, 0)}, max_in_flight=2)
    bench.start(1)
    bench.put(a_batch(), a_batch(), a_batch())
    first, _second = some(SendProduce, bench.tick())
    assert some(SendProduce, bench.tick()) == []
    bench.answer(first, ErrorCode.NONE)
    assert len(some(SendProduce, bench.tick())) == 1


def test_with_one_in_flight_partitions_are_muted() -> None:
    """So a retry is never overtaken, not even at another leader."""
    bench = Bench({0: (1, 0)}, max_in_flight=1)
    bench.start(1, 2)
    first, second = a_batch(), a_batch()
    bench.put(first, second)
    (request,) = some(SendProduce, bench.tick())
    bench.core.metadata(a_view({0: (2, 1)}))
    assert some(SendProduce, bench.tick()) == []
    bench.answer(request, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    (request,) = some(SendProduce, bench.tick(BACKOFF_MS))
    assert (request.node, request.batches) == (2, (first,))


def test_without_acks_a_written_request_is_a_success() -> None:
    """acks 0: no answer, no offset."""
    bench = Bench({0: (1, 0)}, acks=0)
    bench.start(1)
    batch = a_batch()
    bench.put(batch)
    (request,) = some(SendProduce, bench.tick())
    bench.core.produced(1, request.request_id, {}, 0)
    assert bench.tick() == [CompleteBatch(batch, -1, -1)]


def test_a_retriable_error_is_retried_after_the_back_off() -> None:
    """And asks for metadata where the error says that it is old; the answer wakes the sender in time."""
    bench = Bench({0: (1, 0)})
    bench.start(1)
    batch = a_batch()
    bench.put(batch)
    (request,) = some(SendProduce, bench.tick())
    bench.answer(request, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert bench.tick() == [RefreshMetadata(("t",)), WakeAt(BACKOFF_MS)]
    (request,) = some(SendProduce, bench.tick(BACKOFF_MS))
    assert (request.batches, batch.attempts) == ((batch,), 1)


def test_retries_are_counted() -> None:
    """retries=0 means one attempt."""
    bench = Bench({0: (1, 0)}, retries=0)
    bench.start(1)
    batch = a_batch()
    bench.put(batch)
    (request,) = some(SendProduce, bench.tick())
    bench.answer(request, ErrorCode.NOT_ENOUGH_REPLICAS)
    (failed,) = some(FailBatch, bench.tick())
    assert failed.error.error_code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert "so it is" in str(failed.error)


def test_a_partition_that_the_answer_leaves_out_is_sent_again() -> None:
    """What a broker does not speak of is as unknown as a lost answer."""
    bench = Bench({0: (1, 0)})
    bench.start(1)
    batch = a_batch()
    bench.put(batch)
    (request,) = some(SendProduce, bench.tick())
    bench.core.produced(1, request.request_id, {}, 0)
    assert len(some(SendProduce, bench.tick(BACKOFF_MS))) == 1


def test_a_lost_connection_loses_what_is_in_flight() -> None:
    """Everything in flight to the node is sent again, in order; a late answer is no news; metadata may be old."""
    bench = Bench({0: (1, 0)}, is_idempotent=True)
    bench.start(1)
    first, second = a_batch(), a_batch()
    bench.put(first, second)
    requests = some(SendProduce, bench.tick())
    bench.core.disconnected(1, 0)
    actions = bench.tick()
    assert some(RefreshMetadata, actions) == [RefreshMetadata(())]
    assert some(SendProduce, actions) == []
    bench.answer(requests[0], ErrorCode.NONE)
    assert some(CompleteBatch, bench.tick()) == []
    bench.tick(BACKOFF_MS)
    bench.core.connected(1)
    (again,) = some(SendProduce, bench.tick())
    assert again.batches == (first,)
    bench.answer(again, ErrorCode.NONE)
    assert [request.batches for request in some(SendProduce, bench.tick())] == [(second,)]


def test_without_sequences_lost_batches_keep_their_order() -> None:
    """Nobody else sorts them."""
    bench = Bench({0: (1, 0)})
    bench.start(1)
    batches = [a_batch() for _ in range(3)]
    bench.put(*batches)
    assert len(some(SendProduce, bench.tick())) == 3
    bench.core.disconnected(1, 0)
    bench.core.connected(1)
    assert [request.batches[0] for request in some(SendProduce, bench.tick(BACKOFF_MS))] == batches


def test_it_is_known_since_when_a_node_takes_nothing() -> None:
    """From the first moment at which there was something for it, until something is sent."""
    bench = Bench({0: (1, 0)})
    assert bench.core.blocked_ms(1, 5) == 0
    bench.put(a_batch())
    bench.tick(5)
    bench.tick(9)
    assert bench.core.blocked_ms(1, 12) == 7
    bench.start(1)
    bench.tick(12)
    assert bench.core.blocked_ms(1, 20) == 0


def test_a_node_for_which_nothing_is_left_is_not_blocked() -> None:
    """What waited for it has expired: nobody knows whether it would take something, so it is tried again."""
    bench = Bench({0: (1, 0)})
    bench.put(a_batch())
    bench.tick()
    assert bench.core.blocked_ms(1, DELIVERY_MS - 1) == DELIVERY_MS - 1
    (failed,) = some(FailBatch, bench.tick(DELIVERY_MS))
    assert isinstance(failed.error, DeliveryTimeout)
    assert bench.core.blocked_ms(1, DELIVERY_MS + 9) == 0


def test_a_node_whose_batch_waits_for_its_retry_stays_blocked() -> None:
    """A pause before a retry does not make a node that takes nothing a good one."""
    bench = Bench({0: (1, 0), 1: (1, 0)}, max_in_flight=2)
    bench.start(1)
    bench.put(a_batch())
    bench.tick()
    bench.core.disconnected(1, 4)
    bench.put(a_batch(partition=1))
    bench.tick(4)
    bench.accumulator.withdraw(next(iter(bench.accumulator._queues["t", 1])))
    bench.tick(6)
    assert bench.core.blocked_ms(1, 9) == 5


def test_a_node_that_does_not_answer_is_given_up() -> None:
    """All in flight to it timed out: it is sent again over another connection, and fails with that at last."""
    bench = Bench({0: (1, 0)}, retries=1)
    bench.start(1)
    bench.put(a_batch())
    for now_ms in (0, BACKOFF_MS):
        assert len(some(SendProduce, bench.tick(now_ms))) == 1
        bench.core.disconnected(1, now_ms, is_timeout=True)
        assert bench.core.is_idle
        actions = bench.tick(now_ms)
        bench.tick(now_ms + BACKOFF_MS)
        bench.core.connected(1)
    (failed,) = some(FailBatch, actions)
    assert failed.error.error_code is ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.parametrize("is_sent", [False, True])
def test_a_batch_expires_wherever_it_is(is_sent: bool) -> None:
    """delivery.timeout.ms after it was made; the answer that comes too late changes nothing."""
    bench = Bench({0: (1, 0)})
    batch = a_batch()
    bench.put(batch)
    bench.tick()
    request = None
    if is_sent:
        bench.tick(DELIVERY_MS - 1)
        bench.start(1)
        (request,) = some(SendProduce, bench.tick())
    assert bench.tick()[-1] == WakeAt(DELIVERY_MS)
    (failed,) = some(FailBatch, bench.tick(DELIVERY_MS))
    assert isinstance(failed.error, DeliveryTimeout)
    assert bench.tick()[-1:] == []
    if request is not None:
        bench.answer(request, ErrorCode.NONE)
        assert bench.tick() == []


def test_a_batch_that_is_too_large_is_sent_in_parts() -> None:
    """The parts go one by one, in order; a record that is too large by itself fails with the reason."""
    bench = Bench({0: (1, 0)}, is_idempotent=True)
    bench.start(1)
    whole = a_batch(records=2)
    bench.put(whole)
    (request,) = some(SendProduce, bench.tick())
    bench.answer(request, ErrorCode.MESSAGE_TOO_LARGE)
    actions = bench.tick()
    assert some(BatchSplit, actions) == [BatchSplit(whole)]
    (request,) = some(SendProduce, actions)
    assert [(part.base_sequence, part.record_count) for part in request.batches] == [(0, 1)]
    bench.answer(request, ErrorCode.MESSAGE_TOO_LARGE)
    actions = bench.tick()
    assert isinstance(some(FailBatch, actions)[0].error, RecordTooLarge)
    assert [request.batches[0].base_sequence for request in some(SendProduce, actions)] == [1]


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


def test_a_batch_that_may_be_stored_is_never_numbered_anew() -> None:
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


def test_a_refusal_after_an_attempt_without_answer_is_reported_as_unknown() -> None:
    """The first attempt may have stored it: the code must not claim that it did not."""
    bench = Bench({0: (1, 0)})
    bench.start(1)
    bench.put(a_batch())
    (request,) = some(SendProduce, bench.tick())
    bench.answer(request, ErrorCode.REQUEST_TIMED_OUT)
    (request,) = some(SendProduce, bench.tick(BACKOFF_MS))
    bench.answer(request, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    (failed,) = some(FailBatch, bench.tick())
    assert failed.error.error_code is ErrorCode.REQUEST_TIMED_OUT
    assert "TOPIC_AUTHORIZATION_FAILED" in str(failed.error)


def refusal(bench: Bench, *record_errors: tuple[int, str | None], message: str | None = "bad times") -> FailBatch:
    """What becomes of three records of which the broker refuses some for their time."""
    (request,) = some(SendProduce, bench.tick(bench.now_ms + BACKOFF_MS))
    result = PartitionResult(ErrorCode.INVALID_TIMESTAMP, error_message=message, record_errors=record_errors)
    bench.core.produced(1, request.request_id, {("t", 0): result}, bench.now_ms)
    (failed,) = some(FailBatch, bench.tick())
    return failed


def told(failed: FailBatch) -> list[tuple[type[ProduceError], str]]:
    """What each of three records is told."""
    batch, error, record_errors = failed
    batch.fail(error, record_errors)
    errors = [batch.delivery.outcome(index)[2] for index in range(3)]
    return [(type(each), str(each)) for each in errors if each is not None]


@pytest.mark.parametrize("is_idempotent", [False, True])
def test_records_that_the_broker_names_fail_with_their_own_text(is_idempotent: bool) -> None:
    """KIP-467: or with the batch's text; the others are told that they are not written because of these."""
    bench = Bench({0: (1, 0)}, is_idempotent=is_idempotent)
    bench.start(1)
    bench.put(a_batch(records=3))
    named = refusal(bench, (0, "too old"), (2, None), (2, "no key"))
    others = "not written, for 2 other record(s) of the 3 in the batch for t-0 were refused: bad times"
    assert told(named) == [
        (InvalidRecord, "INVALID_RECORD: too old"),
        (ProduceError, f"INVALID_TIMESTAMP: {others}"),
        (InvalidRecord, "INVALID_RECORD: bad times; no key"),
    ]
    bench.put(a_batch(records=3))
    (_first, _second, silent) = told(refusal(bench, (2, None), message=None))
    # The only one: then the batch's code is surely its own.
    assert silent == (InvalidRecord, "INVALID_TIMESTAMP: the broker refused this record, and does not say why")
    bench.put(a_batch(records=3))
    unnamed = refusal(bench)
    assert unnamed.record_errors is None
    assert (
        told(unnamed)
        == [(ProduceError, "INVALID_TIMESTAMP: 3 record(s) for t-0 failed after 1 attempt(s): bad times")] * 3
    )


def test_a_record_that_is_named_may_be_stored_after_an_attempt_without_answer() -> None:
    """No record's error claims more than that of its batch: the code is a timeout, the text says both."""
    bench = Bench({0: (1, 0)})
    bench.start(1)
    bench.put(a_batch(records=3))
    (request,) = some(SendProduce, bench.tick())
    bench.answer(request, ErrorCode.REQUEST_TIMED_OUT)
    first, second, third = told(refusal(bench, (0, "too old"), (7, "none of ours")))
    assert first == (InvalidRecord, "REQUEST_TIMED_OUT: too old (it may be stored by an attempt without answer)")
    assert second == third
    assert second[0] is ProduceError
    assert "REQUEST_TIMED_OUT: 3 record(s) for t-0 may be stored" in second[1]


def test_the_parts_of_a_batch_that_may_be_stored_may_be_stored() -> None:
    """An attempt without answer counts for every part."""
    bench = Bench({0: (1, 0)})
    bench.start(1)
    bench.put(a_batch(records=2))
    (request,) = some(SendProduce, bench.tick())
    bench.answer(request, ErrorCode.REQUEST_TIMED_OUT)
    (request,) = some(SendProduce, bench.tick(BACKOFF_MS))
    bench.answer(request, ErrorCode.MESSAGE_TOO_LARGE)
    one, two = some(SendProduce, bench.tick())
    bench.answer(one, ErrorCode.INVALID_RECORD)
    bench.answer(two, ErrorCode.INVALID_RECORD)
    failed = some(FailBatch, bench.tick())
    assert [each.error.error_code for each in failed] == [ErrorCode.REQUEST_TIMED_OUT] * 2


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


def test_a_throttled_node_is_left_alone_for_so_long() -> None:
    """KIP-219: the client waits, and wakes when the time is over."""
    bench = Bench({0: (1, 0)})
    bench.start(1)
    bench.put(a_batch())
    (request,) = some(SendProduce, bench.tick())
    bench.core.produced(1, request.request_id, {("t", 0): PartitionResult(ErrorCode.NONE)}, 0, throttle_ms=20)
    bench.put(a_batch())
    assert bench.tick()[-1] == WakeAt(20)
    assert len(some(SendProduce, bench.tick(20))) == 1


def test_an_abort_fails_everything_once() -> None:
    """close(0): queued and in flight alike; the answer that still comes changes nothing."""
    bench = Bench({0: (1, 0)})
    bench.start(1)
    bench.put(a_batch())
    (request,) = some(SendProduce, bench.tick())
    bench.put(a_batch())
    bench.core.abort(ProducerClosed())
    assert len(some(FailBatch, bench.tick())) == 2
    bench.answer(request, ErrorCode.NONE)
    assert bench.tick() == []
