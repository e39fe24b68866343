"""The room that committed offsets take, of one group and of all together."""

from __future__ import annotations

import pytest

from cluster.coordinator.group.decisions import GroupSettings
from cluster.coordinator.group.requests import CommitRequest, MemberIdentity, OffsetToCommit
from cluster.coordinator.group.states import GroupState
from cluster.protocol.errors import ErrorCode
from tests.cluster.coordinator.group.world import GROUP, T0, WAITS, World, protocols

U0 = ("u", 0)


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
