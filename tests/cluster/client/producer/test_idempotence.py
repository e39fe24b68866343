"""The producer's identity: who may be sent, which numbers, and when they start again (Kafka's TransactionManager)."""

from __future__ import annotations

import pytest

from cluster.client.producer.batch import ProducerBatch
from cluster.client.producer.idempotence import IdentityState, ProducerIdentity, is_after
from cluster.protocol.errors import ErrorCode
from tests.cluster.client.producer.batches import a_batch

TP = ("t", 0)


def ready_identity(epoch: int = 0) -> ProducerIdentity:
    identity = ProducerIdentity()
    identity.asked()
    identity.initialize(9, epoch)
    return identity


def drain(identity: ProducerIdentity, *batches: ProducerBatch) -> None:
    for batch in batches:
        assert identity.may_drain(batch)
        identity.drained(batch)


def numbers(batch: ProducerBatch) -> tuple[int, int, int]:
    return batch.producer_id, batch.producer_epoch, batch.base_sequence


def test_nothing_goes_without_an_id() -> None:
    """UNINITIALIZED -> INITIALIZING -> READY; an answer that nobody waits for is not taken; FATAL is forever."""
    identity = ProducerIdentity()
    identity.initialize(5, 0)
    assert not identity.may_drain(a_batch())
    identity.asked()
    identity.not_answered()
    assert identity.state is IdentityState.UNINITIALIZED
    identity.asked()
    identity.initialize(5, 0)
    assert identity.is_ready
    assert identity.may_drain(a_batch())
    identity.fail(ErrorCode.PRODUCER_FENCED)
    identity.fail(ErrorCode.UNSUPPORTED_VERSION)
    assert identity.fatal_error is ErrorCode.PRODUCER_FENCED
    assert not identity.may_drain(a_batch())


def test_sequences_count_records_and_go_round() -> None:
    """Each partition counts its own records from 0; 2147483647 is followed by 0."""
    identity = ready_identity()
    first, other = a_batch(records=3), a_batch(partition=1)
    drain(identity, first, other)
    assert [numbers(each) for each in (first, other)] == [(9, 0, 0), (9, 0, 0)]
    identity.completed(first)
    identity._partitions[TP].next_sequence = 2**31 - 2
    identity._partitions[TP].last_acked_sequence = 2**31 - 3
    second, third = a_batch(records=3), a_batch()
    drain(identity, second, third)
    assert (second.base_sequence, second.last_sequence, third.base_sequence) == (2**31 - 2, 0, 1)
    for batch in (second, third):
        identity.completed(batch)
    assert identity._partitions[TP].last_acked_sequence == 1


def test_order_on_the_circle() -> None:
    """Sequences wrap: of two, the one that is nearer ahead comes later."""
    assert is_after(1, 0)
    assert is_after(0, 2**31 - 1)
    assert not is_after(2**31 - 1, 0)
    assert not is_after(4, 4)


def test_a_retry_goes_only_when_it_is_the_first_in_flight() -> None:
    """What is retried waits for everything before it: in flight narrows to one."""
    identity = ready_identity()
    first, second = a_batch(), a_batch()
    drain(identity, first, second)
    identity.returned(first)
    identity.returned(second)
    assert not identity.may_drain(second)
    drain(identity, first)
    assert not identity.may_drain(second)
    identity.completed(first)
    assert identity.may_drain(second)


def test_a_partition_does_not_get_further_ahead_than_brokers_remember() -> None:
    """Five batches from the first in flight on, however many of those behind it are acknowledged."""
    identity = ready_identity()
    batches = [a_batch() for _ in range(6)]
    drain(identity, *batches[:5])
    assert not identity.may_drain(batches[5])
    for batch in batches[1:5]:
        identity.completed(batch)
    assert not identity.may_drain(batches[5])
    identity.completed(batches[0])
    assert identity.may_drain(batches[5])


def test_a_failure_stops_new_batches_until_what_is_in_flight_is_settled() -> None:
    """If the failed batch turns out to be stored, for the next one was acknowledged, there is no new epoch."""
    identity = ready_identity()
    lost, next_one = a_batch(), a_batch()
    drain(identity, lost, next_one)
    identity.failed(lost)
    assert identity.settle(()) == []
    assert not identity.may_drain(a_batch())
    identity.completed(next_one)
    assert identity.settle(()) == []
    new = a_batch()
    drain(identity, new)
    assert numbers(new) == (9, 0, 2)


def test_a_gap_that_remains_begins_a_new_epoch() -> None:
    """The last acknowledged sequence is not followed by the next one: epoch + 1, sequence 0, without a request."""
    identity = ready_identity()
    acked, lost = a_batch(), a_batch()
    drain(identity, acked, lost)
    identity.completed(acked)
    identity.failed(lost)
    assert identity.settle(()) == []
    new = a_batch()
    drain(identity, new)
    assert numbers(new) == (9, 1, 0)


def test_a_late_acknowledgement_of_an_expired_batch_closes_the_gap() -> None:
    """Kafka counts it too: nothing is missing then."""
    identity = ready_identity()
    expired, other = a_batch(), a_batch()
    drain(identity, expired, other)
    identity.failed(expired)
    identity.failed(other)
    identity.completed(expired)
    identity.completed(other)
    assert identity.settle(()) == []
    assert identity.producer_epoch == 0
    assert identity.may_drain(a_batch())


def test_a_restart_waits_until_nothing_is_at_a_broker() -> None:
    """Then what was refused is numbered from 0 in its order, and what may be stored is given up."""
    identity = ready_identity()
    refused, doubtful, last = (a_batch(records=2) for _ in range(3))
    drain(identity, refused, doubtful, last)
    identity.returned(refused)
    identity.restart(TP)
    identity.returned(doubtful)
    assert identity.settle({doubtful}) == []
    assert not identity.may_drain(refused)
    identity.returned(last)
    assert identity.settle({doubtful}) == [doubtful]
    assert [numbers(each) for each in (refused, last)] == [(9, 1, 0), (9, 1, 2)]
    assert identity.in_flight(TP) == (refused, last)
    drain(identity, refused)
    identity.completed(refused)
    drain(identity, last)


def test_what_is_given_up_is_given_up_in_the_order_of_its_troubles() -> None:
    """The same in every process, whatever order its sets have."""
    identity = ready_identity()
    doubtful = [a_batch(partition=number) for number in (3, 1, 4, 0, 5, 9, 2, 6)]
    drain(identity, *doubtful)
    for batch in doubtful:
        identity.returned(batch)
        identity.restart((batch.topic, batch.partition))
    assert identity.settle(set(doubtful)) == doubtful


def test_other_partitions_take_up_the_new_epoch_when_nothing_of_them_is_in_flight() -> None:
    """Until then they go on with the older one, without new batches."""
    identity = ready_identity()
    here, there = a_batch(), a_batch(partition=1)
    drain(identity, here, there)
    identity.failed(here)
    identity.settle(())
    identity.returned(there)
    assert not identity.may_drain(a_batch(partition=1))
    drain(identity, there)
    assert numbers(there) == (9, 0, 0)
    identity.completed(there)
    new = a_batch(partition=1)
    drain(identity, new)
    assert numbers(new) == (9, 1, 0)


def test_two_partitions_restart_in_one_epoch() -> None:
    """One new epoch serves all that are due; one that is due later under the old epoch only takes up the new one."""
    identity = ready_identity()
    batches = [a_batch(partition=index) for index in range(3)]
    drain(identity, *batches)
    for index in (0, 1):
        identity.returned(batches[index])
        identity.restart(("t", index))
    identity.restart(("t", 2))
    identity.settle(())
    assert identity.producer_epoch == 1
    identity.returned(batches[2])
    identity.settle(())
    assert [numbers(batch) for batch in batches] == [(9, 1, 0)] * 3


def test_after_the_last_epoch_there_is_a_new_id() -> None:
    """At 32767 a new producer id is asked for, and what restarts gets its numbers from that."""
    identity = ready_identity(epoch=2**15 - 1)
    batch = a_batch()
    drain(identity, batch)
    identity.returned(batch)
    identity.restart(TP)
    assert identity.settle(()) == []
    assert identity.state is IdentityState.UNINITIALIZED
    assert not identity.may_drain(batch)
    identity.asked()
    identity.initialize(10, 0)
    assert identity.settle(()) == []
    assert numbers(batch) == (10, 0, 0)
    drain(identity, batch)


def test_the_parts_of_a_split_batch_take_its_place() -> None:
    """They are in flight where it was, and go one by one."""
    identity = ready_identity()
    before, large, after = a_batch(), a_batch(records=4), a_batch()
    drain(identity, before, large, after)
    parts = large.split(large.size_bytes // 2)
    assert len(parts) > 1
    identity.split(large, parts)
    assert identity.in_flight(TP) == (before, *parts, after)
    identity.completed(before)
    assert identity.may_drain(parts[0])
    assert not identity.may_drain(parts[1])


@pytest.mark.parametrize("acked", [0, 2])
def test_a_batch_knows_whether_it_is_first_and_overtaken(acked: int) -> None:
    """Overtaken: one behind it was acknowledged."""
    identity = ready_identity()
    batches = [a_batch() for _ in range(3)]
    drain(identity, *batches)
    assert identity.position(batches[0]) == (True, False)
    identity.completed(batches[acked])
    assert identity.position(batches[1]) == (acked == 0, acked == 2)
