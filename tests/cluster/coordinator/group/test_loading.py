"""Failover: what the log has comes back, and no more; whoever waits is told to look elsewhere."""

from __future__ import annotations

import pytest

from cluster.coordinator.group.coordinator import GroupCoordinator
from cluster.coordinator.group.decisions import GroupSettings
from cluster.coordinator.group.loading import LoadedBatch
from cluster.coordinator.group.records import CommittedOffset, CorruptGroupRecord, offset_key, offset_value
from cluster.coordinator.group.requests import MemberIdentity
from cluster.coordinator.group.states import GroupState
from cluster.protocol.errors import ErrorCode
from tests.cluster.coordinator.group.world import GROUP, HOME, SESSION_MS, T0, World

A, B = "c-1", "c-2"


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


def test_a_corrupt_record_stops_the_loading() -> None:
    """To pass over it would be to forget an offset; a key of a newer version is passed over."""
    world = World()
    world.coordinator.resigned(HOME, 0)
    loader = world.coordinator.elected(HOME, 2)
    assert loader is not None
    loader.feed(LoadedBatch(0, ((b"\0\3anything", b""),)))
    with pytest.raises(CorruptGroupRecord):
        loader.feed(LoadedBatch(1, ((offset_key(GROUP, *T0), b"\0\3"),)))


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
