"""Committed offsets that expire or are deleted, and what a deletion leaves."""

from __future__ import annotations

import pytest

from cluster.coordinator.group import removing
from cluster.coordinator.group.decisions import GroupSettings
from cluster.coordinator.group.group import MOST_TOPICS
from cluster.coordinator.group.requests import MemberIdentity
from cluster.coordinator.group.states import GroupState
from cluster.protocol.consumer_protocol import Subscription, encode_subscription
from cluster.protocol.errors import ErrorCode
from cluster.topic_partition import TopicPartition
from tests.cluster.coordinator.group.world import GROUP, T0, TOPIC, WAITS, World

RETENTION_MS = GroupSettings().offsets_retention_ms

U0 = ("u", 0)


def test_offsets_of_simple_consumers_expire_after_their_commit() -> None:
    """The group goes with the last one; tombstones keep it away after a failover."""
    world = World()
    world.commit(5)
    world.settle()
    world.advance(RETENTION_MS - 1)
    world.commit(6, partition=U0)
    world.settle()
    world.advance(1)
    world.do(world.coordinator.expire(world.groups, world.now_ms))
    world.settle()
    assert (world.fetch().offset, world.fetch(U0).offset) == (-1, 6)
    world.advance(RETENTION_MS)
    world.do(world.coordinator.expire(world.groups, world.now_ms))
    assert world.group.state is GroupState.DEAD
    world.settle()
    world.fail_over()
    assert world.coordinator.group(GROUP) is None


def test_offsets_of_a_group_expire_after_it_became_empty() -> None:
    """KIP-211: the time of the commit does not matter, and after a failover it is the stored time that counts."""
    world = World()
    (member,) = world.form(None)
    world.commit(5, member, 1)
    world.settle()
    for _ in range(3):
        world.now_ms += RETENTION_MS
        world.do(world.coordinator.expire(world.groups, world.now_ms))
        assert not world.appends
    world.leave(MemberIdentity(member))
    world.settle()
    world.fail_over()
    world.advance(RETENTION_MS - 1)
    world.do(world.coordinator.expire(world.groups, world.now_ms))
    assert not world.appends
    world.advance(1)
    world.do(world.coordinator.expire(world.groups, world.now_ms))
    world.settle()
    assert world.coordinator.group(GROUP) is None


def test_offsets_that_no_member_reads_expire_in_a_stable_group() -> None:
    """After the commit, of topics that no one subscribes to."""
    world = World()
    (member,) = world.form(None)
    for partition in (T0, U0):
        world.commit(5, member, 1, partition=partition)
    world.settle()
    world.now_ms += RETENTION_MS
    world.do(world.coordinator.expire(world.groups, world.now_ms))
    world.settle()
    assert (world.fetch().offset, world.fetch(U0).offset) == (5, -1)


def test_members_that_name_very_many_topics_keep_all_offsets() -> None:
    """Their subscriptions are not read: a rebalance or a deletion would take too long."""
    world = World()
    topics = (TOPIC,) * (MOST_TOPICS + 1)
    waiter = world.join(protocols=(("range", encode_subscription(Subscription(topics))),))
    world.advance(2 * world.settings.group_initial_rebalance_delay_ms)
    member = world.answers[waiter].member_id
    world.assign([member])
    for partition in (T0, U0):
        world.commit(5, member, 1, partition=partition)
    world.settle()
    world.now_ms += RETENTION_MS
    world.do(world.coordinator.expire(world.groups, world.now_ms))
    asked = world.waiter()
    world.do(world.coordinator.delete_offsets(asked, GROUP, [T0, U0], world.now_ms))
    assert world.answers[asked].partitions == dict.fromkeys([T0, U0], ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
    assert not world.appends


def test_an_expiry_of_its_own_counts() -> None:
    """OffsetCommit 2 to 4 may name one, and the record keeps it."""
    world = World()
    world.commit(5, retention_ms=1_000)
    world.settle()
    world.fail_over()
    world.advance(999)
    world.do(world.coordinator.expire(world.groups, world.now_ms))
    assert not world.appends
    world.advance(1)
    world.do(world.coordinator.expire(world.groups, world.now_ms))
    world.settle()
    assert world.coordinator.group(GROUP) is None


def test_what_is_in_flight_does_not_expire() -> None:
    """A commit that is being stored, or is part of an open transaction, keeps the former offset and the group."""
    for producer_id in (-1, 7):
        world = World()
        world.commit(5)
        world.settle()
        world.advance(RETENTION_MS)
        world.commit(6, producer_id=producer_id)
        world.do(world.coordinator.expire(world.groups, world.now_ms))
        assert len(world.appends) == 1


def test_a_removal_that_is_not_stored_is_undone() -> None:
    """The group is there again with its offsets, so that it can be deleted again."""
    world = World()
    world.commit(5)
    world.settle()
    waiter = world.waiter()
    world.do(world.coordinator.delete_group(waiter, GROUP, world.now_ms))
    assert world.fetch().offset == 5
    world.settle(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert world.answers[waiter] is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (world.group.state, world.fetch().offset) == (GroupState.EMPTY, 5)


def test_a_deletion_takes_what_is_in_flight_with_it() -> None:
    """The commit lies before the tombstone in the log: it is gone here and after a failover."""
    world = World()
    world.commit(5)
    world.settle()
    world.commit(6)
    waiter = world.waiter()
    world.do(world.coordinator.delete_offsets(waiter, GROUP, [T0], world.now_ms))
    world.settle()
    assert world.answers[waiter].partitions == {T0: ErrorCode.NONE}
    assert world.fetch().offset == -1
    world.fail_over()
    assert world.coordinator.group(GROUP) is None


def test_the_deletion_of_a_group_takes_what_is_in_flight_with_it() -> None:
    """Also where nothing was committed before."""
    for producer_id in (-1, 7):
        world = World()
        world.commit(5)
        world.settle()
        world.commit(6, partition=U0, producer_id=producer_id)
        world.do(world.coordinator.delete_group(world.waiter(), GROUP, world.now_ms))
        world.settle()
        world.fail_over()
        assert world.coordinator.group(GROUP) is None


def test_a_deletion_reaches_open_transactions() -> None:
    """Their marker does not bring the offset back, neither here nor after a failover."""
    for fails_over in (False, True):
        world = World()
        world.commit(9, producer_id=7)
        world.commit(1, partition=U0)
        world.settle()
        world.do(world.coordinator.forget_topics(world.groups, {T0}, world.now_ms))
        world.settle()
        if fails_over:
            world.fail_over()
        world.end_transaction(7, is_committed=True)
        assert (world.fetch().offset, world.fetch(U0).offset) == (-1, 1)


def test_a_deleted_topic_is_forgotten_although_the_removal_of_its_group_fails() -> None:
    """The group stays, with what it has of other topics."""
    for is_back_first in (False, True):
        world = World()
        world.commit(5)
        world.commit(1, partition=U0)
        world.settle()
        world.do(world.coordinator.delete_group(world.waiter(), GROUP, world.now_ms))
        groups = world.groups
        assert [group.state for group in groups] == [GroupState.DEAD]
        if is_back_first:
            world.settle(ErrorCode.NOT_ENOUGH_REPLICAS)
            world.do(world.coordinator.forget_topics(groups, {T0}, world.now_ms))
        else:
            world.do(world.coordinator.forget_topics(groups, {T0}, world.now_ms))
            world.settle_one(ErrorCode.NOT_ENOUGH_REPLICAS)
        world.settle()
        assert (world.fetch().offset, world.fetch(U0).offset) == (-1, 1)
        world.fail_over()
        assert (world.fetch().offset, world.fetch(U0).offset) == (-1, 1)


def test_a_deleted_topic_is_forgotten_although_its_group_is_removed() -> None:
    """Its own tombstones come first, and nothing of the group comes back."""
    world = World()
    world.commit(5)
    world.settle()
    world.do(world.coordinator.delete_group(world.waiter(), GROUP, world.now_ms))
    world.do(world.coordinator.forget_topics(world.groups, {T0}, world.now_ms))
    world.settle()
    assert world.coordinator.group(GROUP) is None
    world.fail_over()
    assert world.coordinator.group(GROUP) is None


def many(world: World, count: int) -> list[TopicPartition]:
    """That many partitions have an offset."""
    partitions = [(TOPIC, number) for number in range(count)]
    for partition in partitions:
        world.commit(1, partition=partition)
    world.settle()
    return partitions


def test_a_group_with_very_much_is_removed_in_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each fits into the log. The request is answered once all are there."""
    monkeypatch.setattr(removing, "TOMBSTONES_BYTES", 80)
    world = World()
    many(world, 8)
    waiter = world.waiter()
    world.do(world.coordinator.delete_group(waiter, GROUP, world.now_ms))
    assert len(world.appends) == 3
    while world.appends:
        assert world.answer(waiter) is WAITS
        world.settle_one()
    assert (world.answer(waiter), world.coordinator.group(GROUP)) == (ErrorCode.NONE, None)
    world.fail_over()
    assert world.coordinator.group(GROUP) is None


@pytest.mark.parametrize("failing", range(3))
def test_a_removal_of_which_a_batch_fails(monkeypatch: pytest.MonkeyPatch, failing: int) -> None:
    """It is told, and what is left is what a coordinator would read that takes over; then it can be repeated."""
    monkeypatch.setattr(removing, "TOMBSTONES_BYTES", 80)
    world = World()
    partitions = many(world, 8)
    [member_id] = world.form(None)
    world.leave(MemberIdentity(member_id))
    world.settle()
    assert (world.group.state, world.group.generation_id) == (GroupState.EMPTY, 2)
    waiter = world.waiter()
    world.do(world.coordinator.delete_group(waiter, GROUP, world.now_ms))
    for number in range(len(world.appends)):
        world.settle_one(ErrorCode.NOT_ENOUGH_REPLICAS if number == failing else ErrorCode.NONE)
    assert world.answer(waiter) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    before = [world.fetch(each).offset for each in partitions], world.group.generation_id, world.group.protocol_type
    assert -1 in before[0] and 1 in before[0] and world.group.state is GroupState.EMPTY
    world.fail_over()
    after = [world.fetch(each).offset for each in partitions], world.group.generation_id, world.group.protocol_type
    assert after == before
    waiter = world.waiter()
    world.do(world.coordinator.delete_group(waiter, GROUP, world.now_ms))
    world.settle()
    assert (world.answer(waiter), world.coordinator.group(GROUP)) == (ErrorCode.NONE, None)
