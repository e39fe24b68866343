"""Committed offsets: which one counts, what is unstable, what expires and what a deletion leaves."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from cluster.coordinator.group import removing
from cluster.coordinator.group.decisions import GroupSettings
from cluster.coordinator.group.group import MOST_TOPICS
from cluster.coordinator.group.group_offsets import GroupOffsets, PlacedOffset
from cluster.coordinator.group.purposes import RemovalStored
from cluster.coordinator.group.records import CommittedOffset, TopicPartition
from cluster.coordinator.group.requests import CommitRequest, MemberIdentity, OffsetToCommit
from cluster.coordinator.group.states import GroupState
from cluster.protocol.consumer_protocol import Subscription, encode_subscription
from cluster.protocol.errors import ErrorCode
from tests.cluster.coordinator.group.world import GROUP, T0, TOPIC, WAITS, World, protocols
from tests.support.effort import steps_of

RETENTION_MS = GroupSettings().offsets_retention_ms
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


def test_a_commit_that_cannot_fit_is_refused_before_it_is_made() -> None:
    """By the texts alone: nothing is appended."""
    world = World(GroupSettings(message_max_bytes=100))
    assert world.answers[world.commit(5, metadata="m" * 100)] == {T0: ErrorCode.INVALID_COMMIT_OFFSET_SIZE}
    assert not world.appends and world.coordinator.group(GROUP) is None
    assert world.answer(world.commit(5, metadata="m" * 10)) is WAITS


def test_all_groups_together_are_bounded() -> None:
    """gapless.groups.max.bytes: no further partition, no longer metadata, no further group. What goes makes room."""
    world = World(GroupSettings(groups_max_bytes=8600))
    for _ in range(20):
        world.commit(5, metadata="m" * 1000)
        world.settle()
    assert world.fetch().offset == 5
    refused = world.commit(5, partition=U0, metadata="m" * 4000)
    assert world.answers[refused] == {U0: ErrorCode.INVALID_COMMIT_OFFSET_SIZE}
    assert world.answer(world.join(protocols=protocols("m" * 4000))).error_code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert world.answer(world.commit(6, metadata="m" * 900)) is WAITS
    world.settle()
    world.do(world.coordinator.delete_group(world.waiter(), GROUP, world.now_ms))
    world.settle()
    assert world.answer(world.commit(5, partition=U0, metadata="m" * 4000)) is WAITS


def test_groups_that_are_loaded_count() -> None:
    """They stay, whether there is room for them or not."""
    world = World(GroupSettings(groups_max_bytes=8600))
    world.commit(5, metadata="m" * 4000)
    world.settle()
    world.fail_over()
    refused = world.commit(5, partition=U0, metadata="m" * 4000)
    assert world.answers[refused] == {U0: ErrorCode.INVALID_COMMIT_OFFSET_SIZE}
    assert world.fetch().offset == 5


def test_what_is_refused_takes_no_room() -> None:
    """Of a member, of a group that comes to nothing, and of a commit: as often as they ask."""
    world = World(GroupSettings(groups_max_bytes=9000))
    world.commit(5)
    world.settle()
    for _ in range(20):
        assert world.answer(world.commit(5, "nobody", 3)) == {T0: ErrorCode.UNKNOWN_MEMBER_ID}
        assert world.answer(world.join("nobody")).error_code is ErrorCode.UNKNOWN_MEMBER_ID
        assert world.answer(world.sync("nobody", 1, {"nobody": bytes(4000)})).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.answer(world.commit(5, partition=U0, metadata="m" * 4000)) is WAITS


def test_what_is_being_stored_takes_room() -> None:
    """Until its result is there, no matter which."""
    world = World(GroupSettings(groups_max_bytes=8600))
    world.commit(5, metadata="m" * 4000)
    refused = world.commit(5, partition=U0, metadata="m" * 4000)
    assert world.answers[refused] == {U0: ErrorCode.INVALID_COMMIT_OFFSET_SIZE}
    world.settle(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert world.answer(world.commit(5, partition=U0, metadata="m" * 4000)) is WAITS


def test_a_group_without_room_goes_on() -> None:
    """Members join again, the same assignments are stored again, and offsets are committed again."""
    world = World()
    members = world.form(None, None)
    world.commit(5, members[0], 1)
    world.settle()
    world.coordinator.room.most_bytes = 1
    waiters = [world.join(member, protocols=protocols("range", topic="u")) for member in members]
    assert [world.answers[each].error_code for each in waiters] == [ErrorCode.NONE] * 2
    world.assign(members)
    world.commit(6, members[0], 2)
    world.settle()
    assert (world.group.state, world.fetch().offset) == (GroupState.STABLE, 6)
    assert world.answer(world.join()).error_code is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_full_room_is_not_counted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be tens of thousands of groups: no refusal looks at them all."""
    world = World(GroupSettings(groups_max_bytes=8600))
    world.commit(5, metadata="m" * 4000)
    world.settle()
    monkeypatch.setattr(world.coordinator, "all_groups", list)
    for _ in range(3):
        offsets = {U0: OffsetToCommit(5, "m" * 4000)}
        request = CommitRequest(GROUP, MemberIdentity(""), offsets)
        decision = world.coordinator.commit(1, request, world.now_ms)
        assert decision.answers == [(1, {U0: ErrorCode.INVALID_COMMIT_OFFSET_SIZE})]
