"""The sender's core, event by event: which node is sent what and when, its answer, and the end."""

from __future__ import annotations

import pytest

from cluster.client.producer.actions import CompleteBatch, Connect, FailBatch, PartitionResult, SendProduce, WakeAt
from cluster.client.producer.delivery import DeliveryTimeout, ProducerClosed
from cluster.protocol.errors import ErrorCode
from tests.cluster.client.producer.batches import a_batch, a_view
from tests.cluster.client.producer.sender_bench import BACKOFF_MS, DELIVERY_MS, REQUEST_MS, Bench, some


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
    """With acks=0 a batch is complete when it is written, without an offset."""
    bench = Bench({0: (1, 0)}, acks=0)
    bench.start(1)
    batch = a_batch()
    bench.put(batch)
    (request,) = some(SendProduce, bench.tick())
    bench.core.produced(1, request.request_id, {}, 0)
    assert bench.tick() == [CompleteBatch(batch, -1, -1)]


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
