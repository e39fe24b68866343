"""The queues of the producer: what is ready, what is drained, what waits (Kafka's RecordAccumulator)."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cluster.client.producer.accumulator import RecordAccumulator
from cluster.client.producer.batch import ProducerBatch
from tests.cluster.client.producer.batches import a_batch, a_view

VIEW = a_view({0: (1, 3), 1: (1, 0), 2: (2, 0), 3: (-1, 0)})


def an_accumulator(is_exhausted: bool = False, **changes: Any) -> RecordAccumulator:
    settings = {"batch_size": 1_000, "linger_ms": 20, "delivery_timeout_ms": 100, **changes}
    return RecordAccumulator(**settings, is_exhausted=lambda: is_exhausted)


def test_the_last_batch_of_a_partition_takes_its_records() -> None:
    """Until it is drained or withdrawn; a batch that comes back to the queue takes none, nor is it in the way."""
    accumulator = an_accumulator()
    opened = accumulator.open_batches("t")
    assert not opened
    first, second, other = a_batch(), a_batch(), a_batch(partition=1)
    for batch in (first, other):
        accumulator.add(batch)
    assert opened == {0: first, 1: other}
    accumulator.add(second)
    assert opened == {0: second, 1: other}
    drained = accumulator.drain(VIEW, {1}, 1_000, 0)
    assert drained == {1: [first, other]}
    assert opened == {0: second}
    accumulator.reenqueue(first, 0, 0)
    assert opened == {0: second}
    accumulator.withdraw(second)
    assert opened == {}
    assert not accumulator.is_empty
    accumulator.add(second)
    accumulator.abort_all()
    assert opened == {}
    assert accumulator.is_empty


def test_a_batch_lingers_unless_there_is_a_reason_to_send_it() -> None:
    """Age, a second batch, a flush, somebody who waits for memory and a close make it ready."""
    accumulator = an_accumulator()
    accumulator.add(a_batch(created_ms=100))
    ready = accumulator.ready(VIEW, 105)
    assert (ready.nodes, ready.next_check_delay_ms) == (set(), 15)
    assert accumulator.ready(VIEW, 120).nodes == {1}
    pending = accumulator.begin_flush()
    assert len(pending) == 1
    assert accumulator.ready(VIEW, 105).nodes == {1}
    accumulator.end_flush()
    assert accumulator.ready(VIEW, 105).nodes == set()
    accumulator.add(a_batch(created_ms=101))
    assert accumulator.ready(VIEW, 105).nodes == {1}
    exhausted = an_accumulator(is_exhausted=True)
    exhausted.add(a_batch())
    assert exhausted.ready(VIEW, 0).nodes == {1}
    closing = an_accumulator()
    closing.add(a_batch())
    closing.close()
    assert closing.ready(VIEW, 0).nodes == {1}


def test_a_full_batch_does_not_linger() -> None:
    """Nothing more could come into it."""
    accumulator = an_accumulator()
    accumulator.add(a_batch(records=20, limit_bytes=61 + 20 * 8))
    assert accumulator.ready(VIEW, 0).nodes == {1}


def test_topics_without_a_leader_are_named() -> None:
    """They need metadata, and nothing else of them is ready."""
    accumulator = an_accumulator(linger_ms=0)
    accumulator.add(a_batch(partition=3))
    ready = accumulator.ready(VIEW, 0)
    assert (ready.nodes, ready.unknown_leader_topics) == (set(), {"t"})
    assert accumulator.drain(VIEW, {1, 2}, 1_000, 0) == {}


def test_a_request_has_one_batch_of_each_partition_and_its_limit() -> None:
    """The first batch goes whatever its size; who was left out is first the next time."""
    accumulator = an_accumulator()
    batches = [a_batch(partition=index % 2, value=b"v" * 100) for index in range(4)]
    other = a_batch(partition=2)
    for batch in (*batches, other):
        accumulator.add(batch)
    assert accumulator.drain(VIEW, {1}, 10, 0) == {1: [batches[0]]}
    assert accumulator.drain(VIEW, {1}, 10, 0) == {1: [batches[1]]}
    assert accumulator.drain(VIEW, {1, 2}, 1_000, 0) == {1: batches[2:], 2: [other]}
    assert batches[0].is_closed
    assert (batches[0].leader_epoch_at_attempt, batches[1].leader_epoch_at_attempt) == (3, 0)


def test_a_muted_partition_is_neither_ready_nor_drained() -> None:
    """With one request in flight this keeps the order without sequences."""
    accumulator = an_accumulator(linger_ms=0)
    accumulator.add(a_batch())
    accumulator.mute(("t", 0))
    assert accumulator.ready(VIEW, 0).nodes == set()
    assert accumulator.drain(VIEW, {1}, 1_000, 0) == {}
    accumulator.unmute(("t", 0))
    assert accumulator.drain(VIEW, {1}, 1_000, 0) != {}


def test_a_retry_waits_unless_the_leader_is_another() -> None:
    """Back-off, but not for a leader that is newer than the attempt (KIP-951); no linger after it."""
    accumulator = an_accumulator()
    batch = a_batch()
    accumulator.add(batch)
    accumulator.drain(VIEW, {1}, 1_000, 0)
    accumulator.reenqueue(batch, 10, 50)
    ready = accumulator.ready(VIEW, 30)
    assert (ready.nodes, ready.next_check_delay_ms) == (set(), 30)
    assert accumulator.drain(VIEW, {1}, 1_000, 30) == {}
    assert accumulator.ready(a_view({0: (2, 4)}), 30).nodes == {2}
    assert accumulator.ready(VIEW, 60).nodes == {1}
    assert accumulator.drain(VIEW, {1}, 1_000, 60) == {1: [batch]}
    assert (batch.attempts, batch.is_in_retry) == (1, True)


@given(st.permutations(range(6)), st.integers(min_value=0, max_value=2**31 - 1))
def test_retried_batches_stand_in_the_order_of_their_sequences(order: list[int], first: int) -> None:
    """Whatever order they come back in, before the batches without sequence, also round 2147483647."""
    accumulator = an_accumulator()
    new = a_batch()
    accumulator.add(new)
    batches = [a_batch() for _ in order]
    for index, batch in enumerate(batches):
        batch.set_producer_state(1, 0, (first + index) % 2**31)
    for index in order:
        accumulator.reenqueue(batches[index], 0, 0)
    assert queue(accumulator) == [*batches, new]


def test_without_sequences_a_retry_goes_to_the_front() -> None:
    """As in Kafka, but not before an older one: of several that failed one by one, the oldest expires first."""
    accumulator = an_accumulator()
    first, second, third = (a_batch(created_ms=created_ms) for created_ms in (0, 5, 5))
    for batch in (first, second, third):
        accumulator.add(batch)
    for _ in range(2):
        accumulator.drain(VIEW, {1}, 1_000, 0)
    accumulator.reenqueue(first, 5, 0)
    accumulator.reenqueue(second, 5, 0)
    assert queue(accumulator) == [first, second, third]
    assert accumulator.expired(100) == [first]
    assert accumulator.expired(105) == [first, second, third]


def test_the_parts_of_a_split_batch_take_its_place_in_the_queue() -> None:
    """At least two parts, also when the broker's limit is below batch.size; flushes and memory follow them."""
    accumulator = an_accumulator()
    whole, other = a_batch(records=8), a_batch()
    accumulator.add(whole)
    accumulator.add(other)
    accumulator.drain(VIEW, {1}, 1_000, 0)
    parts = accumulator.split_and_reenqueue(whole, None)
    assert len(parts) >= 2
    assert queue(accumulator) == [*parts, other]
    assert accumulator.begin_flush() == [other, *parts]
    assert not accumulator.is_incomplete(whole)
    assert sum(part.memory_bytes for part in parts) == 1_000


def test_what_is_too_old_expires_and_is_withdrawn_once() -> None:
    """At delivery.timeout.ms exactly; what was withdrawn is neither sent nor decided again."""
    accumulator = an_accumulator()
    old, young = a_batch(created_ms=0), a_batch(created_ms=50)
    accumulator.add(old)
    accumulator.add(young)
    assert accumulator.next_expiry_ms() == 100
    assert accumulator.expired(99) == []
    assert accumulator.expired(100) == [old]
    assert accumulator.withdraw(old)
    assert not accumulator.withdraw(old)
    assert accumulator.next_expiry_ms() == 150
    assert accumulator.abort_all() == [young]
    assert accumulator.next_expiry_ms() is None
    assert not accumulator.withdraw(young)


def test_the_partitioner_is_told_how_long_queues_are() -> None:
    """One number for each partition, 0 where nothing waits."""
    accumulator = an_accumulator()
    for partition in (0, 0, 2):
        accumulator.add(a_batch(partition=partition))
    assert accumulator.queue_lengths("t", [0, 1, 2]) == [2, 0, 1]


def queue(accumulator: RecordAccumulator) -> list[ProducerBatch]:
    return list(accumulator._queues[("t", 0)])
