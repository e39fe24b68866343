"""What the sender's core sends again, in which order, when, and how often."""

from __future__ import annotations

from cluster.client.producer.actions import BatchSplit, CompleteBatch, FailBatch, RefreshMetadata, SendProduce, WakeAt
from cluster.client.producer.delivery import RecordTooLarge
from cluster.protocol.errors import ErrorCode
from tests.cluster.client.producer.batches import a_batch
from tests.cluster.client.producer.sender_bench import BACKOFF_MS, Bench, some


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
    """With retries=0 a batch fails at its first retriable error."""
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
    """Batches without sequences are resent in the order in which they were sent."""
    bench = Bench({0: (1, 0)})
    bench.start(1)
    batches = [a_batch() for _ in range(3)]
    bench.put(*batches)
    assert len(some(SendProduce, bench.tick())) == 3
    bench.core.disconnected(1, 0)
    bench.core.connected(1)
    assert [request.batches[0] for request in some(SendProduce, bench.tick(BACKOFF_MS))] == batches


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
