"""Committed offsets: which one counts, and what is unstable."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from cluster.coordinator.group.group_offsets import GroupOffsets, PlacedOffset
from cluster.coordinator.group.purposes import RemovalStored
from cluster.coordinator.group.records import CommittedOffset
from cluster.coordinator.group.states import GroupState
from cluster.protocol.errors import ErrorCode
from tests.cluster.coordinator.group.world import GROUP, T0, TOPIC, WAITS, World
from tests.support.effort import steps_of

U0 = ("u", 0)


def test_a_commit_is_answered_when_it_is_stored() -> None:
    """Until then the former offset is there, and is unstable."""
    world = World()
    world.commit(5)
    world.settle()
    waiter = world.commit(6)
    assert world.answer(waiter) is WAITS
    assert world.fetch().error_code is ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert world.fetch(stable=False).offset == 5
    world.settle()
    assert world.answers[waiter] == {T0: ErrorCode.NONE}
    assert world.fetch().offset == 6


@pytest.mark.parametrize(
    ("failed", "told"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
        (ErrorCode.NETWORK_EXCEPTION, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REQUEST_TIMED_OUT),
    ],
)
def test_a_commit_that_is_not_stored_changes_nothing(failed: ErrorCode, told: ErrorCode) -> None:
    """The former offset stays, and is stable again."""
    world = World()
    world.commit(5)
    world.settle()
    waiters = [world.commit(6), world.commit(6)]
    world.settle_one(failed)
    assert world.fetch().error_code is ErrorCode.UNSTABLE_OFFSET_COMMIT
    world.settle_one(failed)
    assert [world.answers[each] for each in waiters] == [{T0: told}] * 2
    assert world.fetch().offset == 5


def test_a_retention_without_end_ends_with_time() -> None:
    """A retention that a record could not tell is stored as the longest that it can, and comes back."""
    world = World()
    waiter = world.commit(7, retention_ms=2**63 - 1)
    world.settle()
    assert world.answers[waiter] == {T0: ErrorCode.NONE}
    world.fail_over()
    assert world.fetch().offset == 7
    assert world.group.offsets.committed[T0].committed.expire_timestamp_ms == 2**63 - 1


def test_what_cannot_be_written_is_not_in_flight() -> None:
    """A commit that no record can hold is as if it had never come: nothing waits for it, and nothing counts it."""
    world = World()
    world.commit(5)
    world.settle()
    with pytest.raises(struct.error):
        world.commit(2**63)
    assert world.fetch().offset == 5
    assert world.group.offsets.in_flight_bytes == 0


def with_pending(producers: int) -> GroupOffsets:
    """One committed offset for each of 20 partitions, and of each producer one that is pending for another partition
    and one in flight."""
    offsets = GroupOffsets()
    for number in range(20):
        offsets.load((TOPIC, number), PlacedOffset(CommittedOffset(1, "", 0), number))
    for producer_id in range(producers):
        offsets.load(U0, PlacedOffset(CommittedOffset(1, "", 0), producer_id), producer_id)
        offsets.begin({("v", producer_id): CommittedOffset(1, "", 0)}, producer_id)
    return offsets


def commit_one(offsets: GroupOffsets) -> None:
    committed = {T0: CommittedOffset(2, "", 0)}
    offsets.begin(committed, 10**6)
    offsets.appended(committed, 10**6, 10**6)
    offsets.ended(10**6, is_committed=True)


@pytest.mark.parametrize(
    "event",
    [
        lambda offsets: offsets.removed([(TOPIC, number) for number in range(20)]),
        lambda offsets: offsets.load(T0, None),
        commit_one,
        lambda offsets: offsets.among({T0}),
    ],
    ids=["tombstones", "a tombstone that is read", "a transaction", "what a topic has"],
)
def test_no_event_costs_what_it_does_not_name(event: Callable[[GroupOffsets], object]) -> None:
    """Thousands of open transactions may have offsets for other partitions of the group."""
    few, many = with_pending(2), with_pending(300)
    assert steps_of(lambda: event(many)) == steps_of(lambda: event(few))


def test_no_batch_of_tombstones_ends_too_much() -> None:
    """Of thousands of pending offsets that go with a group, some thousand at a time: results are told one by one."""
    world = World()
    for producer_id in range(100):
        world.commit(5, producer_id=producer_id)
    world.settle()
    for number in range(100):
        for producer_id in range(100):
            world.group.offsets.load(("u", number), PlacedOffset(CommittedOffset(1, "", 0), 0), producer_id)
    world.coordinator._changed(world.group)
    waiter = world.waiter()
    world.do(world.coordinator.delete_group(waiter, GROUP, world.now_ms))
    ended = [sum(len(world.group.offsets.producers[each]) for each in append.purpose.partitions)
             for append in world.appends if isinstance(append.purpose, RemovalStored)]  # fmt: skip
    assert sum(ended) == 101 * 100
    assert max(ended) <= 3300
    world.settle()
    assert world.answers[waiter] is ErrorCode.NONE
    assert world.groups == []


def test_a_tombstone_ends_what_is_pending() -> None:
    """Of every producer, for that partition alone."""
    offsets = with_pending(3)
    offsets.load(T0, PlacedOffset(CommittedOffset(2, "", 0), 50), 1)
    offsets.removed([U0])
    assert list(offsets.transactions) == [1]
    assert offsets.uncommitted == {T0, ("v", 0), ("v", 1), ("v", 2)}
    assert not offsets.is_uncommitted(U0)


def test_a_commit_is_a_heartbeat() -> None:
    """A consumer that processes for long and commits stays a member."""
    world = World()
    (member,) = world.form(None)
    for offset in range(5):
        world.advance(9_000)
        world.commit(offset, member, 1)
    assert world.group.state is GroupState.STABLE


def test_metadata_has_a_bound() -> None:
    """It counts UTF-16 units; a partition beyond it is refused alone, the others are stored."""
    world = World()
    assert world.answers[world.commit(1, metadata="é" * 4097)] == {T0: ErrorCode.OFFSET_METADATA_TOO_LARGE}
    waiter = world.commit(1, metadata="\U0001f600" * 2048)
    world.settle()
    assert world.answers[waiter] == {T0: ErrorCode.NONE}
    assert world.answers[world.commit(1, metadata="\U0001f600" * 2049)] == {T0: ErrorCode.OFFSET_METADATA_TOO_LARGE}


def test_an_offset_of_a_transaction_waits_for_its_marker() -> None:
    """It is unstable until then; a commit marker applies it, an abort marker drops it."""
    for is_committed in (True, False):
        world = World()
        world.commit(5)
        world.settle()
        waiter = world.commit(9, producer_id=7)
        world.settle()
        assert world.answers[waiter] == {T0: ErrorCode.NONE}
        assert world.fetch().error_code is ErrorCode.UNSTABLE_OFFSET_COMMIT
        assert world.fetch(stable=False).offset == 5
        world.end_transaction(7, is_committed=is_committed)
        assert world.fetch().offset == (9 if is_committed else 5)


def test_the_later_record_counts() -> None:
    """A plain commit after the offset of a transaction stays, although the marker comes last."""
    world = World()
    world.commit(9, producer_id=7)
    world.commit(6)
    world.end_transaction(7, is_committed=True)
    assert world.fetch().offset == 6
    world.fail_over()
    assert world.fetch().offset == 6


def test_a_transactional_commit_that_is_not_stored_leaves_nothing() -> None:
    """Neither is the partition unstable, nor does the marker apply anything."""
    world = World()
    world.commit(9, producer_id=7)
    world.settle(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert world.coordinator.fetch_offsets(GROUP, None, require_stable=True)[1] == {}
    world.end_transaction(7, is_committed=True)
    assert world.fetch().offset == -1


def test_a_transactional_commit_that_fails_leaves_the_one_before() -> None:
    """The first one is in the log, and a coordinator that takes over would read it."""
    world = World()
    world.commit(8, producer_id=7)
    world.settle()
    world.commit(9, producer_id=7)
    world.settle(ErrorCode.NOT_ENOUGH_REPLICAS)
    world.end_transaction(7, is_committed=True)
    assert world.fetch().offset == 8


def test_a_marker_before_a_result_is_refused() -> None:
    """Results come in the order of the log: else an offset would be lost silently."""
    offsets = GroupOffsets()
    offsets.begin({T0: CommittedOffset(5, "", 0)}, 7)
    with pytest.raises(ValueError, match="producer 7"):
        offsets.ended(7, is_committed=True)


def test_all_offsets_are_fetched_without_naming_them() -> None:
    """Those that have one; a partition that is named and has none is answered -1."""
    world = World()
    world.commit(5)
    world.commit(6, partition=U0)
    world.settle()
    found = world.coordinator.fetch_offsets(GROUP, None, require_stable=True)[1]
    assert {partition: each.offset for partition, each in found.items()} == {T0: 5, U0: 6}
    assert world.fetch(("v", 0)).offset == -1


def test_a_group_of_another_kind_keeps_its_offsets() -> None:
    """What its members read is not known, so nothing may be deleted while there are any."""
    world = World()
    world.join(protocol_type="connect")
    waiter = world.waiter()
    world.do(world.coordinator.delete_offsets(waiter, GROUP, [T0], world.now_ms))
    assert world.answers[waiter].error_code is ErrorCode.NON_EMPTY_GROUP


def test_a_refused_request_leaves_no_group() -> None:
    """A group is known from the first request that it has not refused."""
    world = World()
    world.join(protocols=())
    world.commit(1, metadata="x" * 5_000)
    assert world.coordinator.group(GROUP) is None
