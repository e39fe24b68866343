"""Failover: what the log has comes back, and no more; whoever waits is told to look elsewhere."""

from __future__ import annotations

import pytest

from cluster.coordinator.group.coordinator import GroupCoordinator
from cluster.coordinator.group.decisions import GroupSettings
from cluster.coordinator.group.homes import OffsetsPartition
from cluster.coordinator.group.loading import GroupLoader, LoadedBatch
from cluster.coordinator.group.records import CommittedOffset, group_key, offset_key, offset_value
from cluster.coordinator.group.requests import MemberIdentity
from cluster.coordinator.group.states import GroupState
from cluster.protocol.errors import ErrorCode
from tests.cluster.coordinator.group.world import GROUP, HOME, SESSION_MS, T0, World

A, B = "c-1", "c-2"
OTHER = "g76"


def test_a_group_comes_back_stable() -> None:
    """With its generation, leader, members and assignments; each has a whole session to be heard of."""
    world = World()
    world.form(None, None)
    before = world.coordinator.describe(GROUP)
    world.advance(9_999)
    world.fail_over()
    assert world.coordinator.describe(GROUP) == before
    assert world.group.leader == A
    world.advance(SESSION_MS - 1)
    assert world.heartbeat(B, 1) is ErrorCode.NONE
    world.advance(1)
    assert list(world.group.members) == [B]


def test_a_generation_that_was_not_stored_is_lost() -> None:
    """Its members are told so, and the former generation counts."""
    world = World()
    world.form(None, None)
    world.join(A)
    world.join(B)
    world.fail_over()
    assert world.group.generation_id == 1
    assert world.heartbeat(A, 2) is ErrorCode.ILLEGAL_GENERATION
    assert world.heartbeat(A, 1) is ErrorCode.NONE


def test_who_waits_is_told_to_look_elsewhere() -> None:
    """JoinGroup and SyncGroup end at once, commits with the result of their append."""
    world = World()
    world.form("i", None)
    joining = world.join()
    static = world.join(instance="i")
    commit = world.commit(1, "c-2", 1)
    world.fail_over()
    assert world.answers[joining].error_code is ErrorCode.NOT_COORDINATOR
    assert world.answers[static].error_code is ErrorCode.NOT_COORDINATOR
    assert world.answers[commit] == {T0: ErrorCode.NOT_COORDINATOR}
    assert world.waiting == []


def test_results_of_an_earlier_term_do_not_count() -> None:
    """The log has been read since: what it has is known already."""
    world = World()
    world.commit(4)
    world.settle()
    waiter = world.commit(5)
    append = world.appends.popleft()
    world.fail_over()
    world.do(world.coordinator.appended(append, ErrorCode.NONE, 7, world.now_ms))
    assert world.answers[waiter] == {T0: ErrorCode.NONE}
    assert world.fetch().offset == 4


def test_a_newer_epoch_of_the_same_leader_keeps_all() -> None:
    """Its log is the same; appends carry the newer epoch from then on, and older results count."""
    world = World()
    world.commit(5)
    assert world.coordinator.elected(HOME, 9) is None
    world.commit(6)
    assert [append.leader_epoch for append in world.appends] == [1, 9]
    world.settle()
    assert world.fetch().offset == 6


def test_an_open_transaction_comes_back() -> None:
    """Pending until its marker, which may come to the new coordinator."""
    world = World()
    world.commit(9, producer_id=7)
    world.settle()
    world.fail_over()
    assert world.fetch().error_code is ErrorCode.UNSTABLE_OFFSET_COMMIT
    world.end_transaction(7, is_committed=True)
    assert world.fetch().offset == 9
    world.fail_over()
    assert world.fetch().offset == 9


def test_a_group_that_is_too_large_rebalances() -> None:
    """The bound was lowered: its members can commit, and the last ones to join are refused."""
    world = World()
    world.form(None, None)
    coordinator = GroupCoordinator(GroupSettings(group_max_size=1), str)
    loader = coordinator.elected(HOME, 2)
    assert loader is not None
    for batch in world.log:
        loader.feed(batch)
    coordinator.loaded(loader, world.now_ms)
    group = coordinator.group(GROUP)
    assert group is not None
    assert group.state is GroupState.PREPARING_REBALANCE


def poisoned(*records: tuple[bytes, bytes | None]) -> World:
    """A coordinator that has read two groups with an offset each, and then these records."""
    world = World()
    world.form(None)
    world.commit(5, A, 1)
    world.settle()
    world.log.append(LoadedBatch(len(world.log), ((offset_key(OTHER, *T0), offset_value(CommittedOffset(6, "", 0))),)))
    for record in records:
        world.log.append(LoadedBatch(len(world.log), (record,)))
    world.fail_over()
    return world


@pytest.mark.parametrize("key", [b"", b"\0", b"\0\0\xff", b"\xff\xff", b"\0\2\0\1", b"\0\3anything"])
def test_a_key_that_cannot_be_read_is_left_out(key: bytes) -> None:
    """No group is known that misses it; all that are known go on. One of a newer version is not even told."""
    world = poisoned((key, b"x"))
    assert world.heartbeat(A, 1) is ErrorCode.NONE
    assert world.fetch().offset == 5


@pytest.mark.parametrize("key", [group_key(GROUP), offset_key(GROUP, *T0)], ids=["group", "offset"])
def test_a_value_that_cannot_be_read_concerns_its_own_group(key: bytes) -> None:
    """Requests are told that it is not available, and nothing of it is told, expires or is written; others go on."""
    world = poisoned((key, b"\0\x09"))
    assert world.coordinator.status(GROUP) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.heartbeat(A, 1) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.answers[world.join()].error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.coordinator.fetch_offsets(GROUP, None, require_stable=True) == (
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        {},
    )
    assert [group.group_id for group in world.groups] == [OTHER]
    assert not world.timers
    error_code, found = world.coordinator.fetch_offsets(OTHER, [T0], require_stable=True)
    assert (error_code, found[T0].offset) == (ErrorCode.NONE, 6)


def test_what_cannot_be_read_is_counted_and_named() -> None:
    """The first few, each with the offset of its batch."""
    loader = GroupLoader(OffsetsPartition(HOME, 1, 1))
    for position in range(9):
        loader.feed(LoadedBatch(position, ((b"\0\0\xff", b"x"), (offset_key(GROUP, *T0), b"?"))))
    assert loader.unreadable.count == 18
    assert "at offset 0: key" in str(loader.unreadable)
    assert f"at offset 0: OffsetKey(group_id='{GROUP}'" in str(loader.unreadable)
    assert str(loader.unreadable).endswith("and 13 more")


@pytest.mark.parametrize("value", [None, offset_value(CommittedOffset(9, "", 0))], ids=["tombstone", "offset"])
@pytest.mark.parametrize("producer_id", [-1, 7])
def test_a_later_record_makes_a_group_available_again(value: bytes | None, producer_id: int) -> None:
    """Of the same key; in a transaction it has to be committed."""
    loader = GroupLoader(OffsetsPartition(HOME, 1, 1))
    key, other = offset_key(GROUP, *T0), offset_key(GROUP, "u", 0)
    loader.feed(LoadedBatch(0, ((key, b"?"),)))
    loader.feed(LoadedBatch(1, ((other, offset_value(CommittedOffset(1, "", 0))),)))
    assert loader.unavailable == {GROUP}
    loader.feed(LoadedBatch(2, ((key, value),), producer_id, producer_id >= 0))
    if producer_id >= 0:
        assert loader.unavailable == {GROUP}
        loader.feed(LoadedBatch(3, (), producer_id, True, True))
    is_healed = value is not None or producer_id < 0
    assert loader.unavailable == (set() if is_healed else {GROUP})


def test_a_loader_that_comes_too_late_is_not_taken() -> None:
    """The partition went and came back while the log was read."""
    world = World()
    world.coordinator.resigned(HOME, 0)
    late = world.coordinator.elected(HOME, 2)
    world.coordinator.resigned(HOME, 0)
    assert world.coordinator.elected(HOME, 3) is not None
    assert late is not None
    late.feed(LoadedBatch(0, ((offset_key(GROUP, *T0), offset_value(CommittedOffset(1, "", 0))),)))
    world.coordinator.loaded(late, 0)
    assert world.coordinator.status(GROUP) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_a_timer_that_was_late_does_nothing() -> None:
    """It was cancelled or moved while it was on its way, or its group is gone."""
    world = World()
    world.form(None)
    (name,) = world.timers
    world.heartbeat(A, 1)
    world.do(world.coordinator.timer_fired(name, world.now_ms + 1))
    assert list(world.group.members) == [A]
    world.leave(MemberIdentity(A))
    world.do(world.coordinator.timer_fired(name, world.now_ms + SESSION_MS))
    world.do(world.coordinator.timer_fired(name._replace(group_id="another"), world.now_ms))


@pytest.mark.parametrize("producer_id", [-1, 7])
def test_topics_that_were_deleted_meanwhile_are_forgotten(producer_id: int) -> None:
    """A log that is being read has their offsets still: a topic of the same name must not find them, here or later."""
    world = World()
    world.commit(4, producer_id=producer_id)
    world.commit(5, partition=("other", 0))
    world.settle()
    world.do(world.coordinator.resigned(HOME, world.now_ms))
    world.leader_epoch += 1
    loader = world.coordinator.elected(HOME, world.leader_epoch)
    assert loader is not None
    for batch in world.log[:1]:
        loader.feed(batch)
    world.coordinator.topics_deleted({T0})
    assert world.groups == []
    for batch in world.log[1:]:
        loader.feed(batch)
    world.do(world.coordinator.loaded(loader, world.now_ms))
    world.settle()
    for _ in range(2):
        if producer_id >= 0:
            world.end_transaction(producer_id, is_committed=True)
        assert (world.fetch().offset, world.fetch(("other", 0)).offset) == (-1, 5)
        world.fail_over()


def test_topics_that_are_deleted_later_are_no_matter_of_the_next_loading() -> None:
    """What was deleted before a partition was taken over was removed by its coordinator of that time."""
    world = World()
    world.coordinator.topics_deleted({T0})
    world.commit(4)
    world.settle()
    world.fail_over()
    assert world.fetch().offset == 4
