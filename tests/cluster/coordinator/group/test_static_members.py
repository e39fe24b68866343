"""Static members (KIP-345): they come back under a new id, and fence their former life."""

from __future__ import annotations

import pytest

from cluster.coordinator.group.decisions import TimerKind, TimerName
from cluster.coordinator.group.requests import MemberIdentity
from cluster.coordinator.group.states import GroupState
from cluster.protocol.errors import ErrorCode
from tests.cluster.coordinator.group.world import GROUP, REBALANCE_MS, SESSION_MS, WAITS, World, protocols

I1, I2 = "i-1", "j-2"


def stable() -> World:
    world = World()
    assert world.form("i", "j") == [I1, I2]
    return world


def test_a_restart_does_not_rebalance() -> None:
    """The new id is stored first; the assignment stays, and the former id is fenced."""
    world = stable()
    waiter = world.join(instance="j", version=8)
    assert world.answer(waiter) is WAITS
    world.settle()
    answer = world.answers[waiter]
    assert (answer.error_code, answer.generation_id, answer.member_id) == (ErrorCode.NONE, 1, "j-3")
    assert world.group.state is GroupState.STABLE
    assert world.answers[world.sync("j-3", 1, instance="j")].assignment == I2.encode()
    assert world.heartbeat(I2, 1, "j") is ErrorCode.FENCED_INSTANCE_ID
    world.fail_over()
    assert world.heartbeat("j-3", 1, "j") is ErrorCode.NONE


@pytest.mark.parametrize(("version", "leader", "skips"), [(8, I1, False), (9, "i-3", True)])
def test_a_leader_that_restarts_does_not_assign(version: int, leader: str, skips: bool) -> None:
    """Before version 9 it is told its former id as the leader's, from then on to skip the assignment (KIP-814)."""
    world = stable()
    waiter = world.join(instance="i", version=version)
    world.settle()
    answer = world.answers[waiter]
    assert (answer.leader, answer.skip_assignment, len(answer.members)) == (leader, skips, 2 if skips else 0)


def test_a_restart_that_is_not_stored_is_undone() -> None:
    """The member is told the error; its former id counts again."""
    world = stable()
    waiter = world.join(instance="j", version=9, protocols=protocols("range", "own"), session_ms=7_000)
    world.settle(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert world.answers[waiter].error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.heartbeat(I2, 1, "j") is ErrorCode.NONE
    assert world.group.members[I2].session_timeout_ms == SESSION_MS
    assert world.group.members[I2].protocols == protocols("range")


def test_a_restart_during_its_own_storing() -> None:
    """The first of two lives is fenced, and the second one alone counts."""
    world = stable()
    first, second = world.join(instance="j", version=9), world.join(instance="j", version=9)
    assert world.answers[first].error_code is ErrorCode.FENCED_INSTANCE_ID
    world.settle()
    assert (world.answers[second].error_code, world.answers[second].member_id) == (ErrorCode.NONE, "j-4")


def test_a_rebalance_overtakes_the_storing() -> None:
    """The member that came back is answered by the new generation, whatever becomes of the append."""
    for result in (ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS):
        world = stable()
        waiter = world.join(instance="j", version=9)
        world.join(I1, instance="i")
        assert world.answers[waiter].generation_id == 2
        world.settle(result)
        assert world.heartbeat("j-3", 2, "j") is ErrorCode.NONE


def test_another_choice_of_protocol_rebalances() -> None:
    """The generation would have another protocol, so all join again."""
    world = World()
    for instance, names in (("i", ("range", "own")), ("j", ("range", "own"))):
        world.join(instance=instance, protocols=protocols(*names))
    world.advance(6_000)
    world.assign([I1, I2])
    world.join(instance="i", protocols=protocols("own"))
    assert world.group.state is GroupState.PREPARING_REBALANCE
    assert not world.appends


def test_a_restart_in_each_phase_of_a_rebalance() -> None:
    """While members join, the new life takes the place of the former; while they sync, all join again."""
    world = stable()
    former = world.join(I2, instance="j", protocols=protocols("range", topic="u"))
    waiter = world.join(instance="j")
    assert world.answers[former].error_code is ErrorCode.FENCED_INSTANCE_ID
    assert world.answer(waiter) is WAITS
    world.join(I1, instance="i")
    assert world.answers[waiter].generation_id == 2
    parked = world.sync("j-3", 2, instance="j")
    world.join(instance="j")
    assert world.answers[parked].error_code is ErrorCode.FENCED_INSTANCE_ID
    assert world.group.state is GroupState.PREPARING_REBALANCE


def test_a_static_member_that_is_late_stays() -> None:
    """A rebalance does not remove it, its session does."""
    world = World()
    world.form("i", None)
    world.join("c-2", protocols=protocols("range", topic="u"))
    for _ in range(7):
        world.advance(REBALANCE_MS // 7)
        world.heartbeat(I1, 1, "i")
    world.advance(10)
    assert list(world.group.members) == [I1, "c-2"]
    assert (world.group.state, world.group.leader) == (GroupState.COMPLETING_REBALANCE, "c-2")
    world.advance(SESSION_MS)
    assert I1 not in world.group.members


def test_static_members_that_are_all_late_are_waited_for() -> None:
    """No generation begins without anyone in it; their sessions end it."""
    world = World()
    world.form("i", "j")
    world.leave(MemberIdentity("", "j"))
    for _ in range(12):
        world.advance(REBALANCE_MS // 6)
        world.heartbeat(I1, 1, "i")
    assert (world.group.state, world.group.generation_id) == (GroupState.PREPARING_REBALANCE, 1)
    world.advance(SESSION_MS)
    assert (world.group.state, world.group.generation_id) == (GroupState.EMPTY, 2)


@pytest.mark.parametrize("rebalance_ms", [0, -1])
def test_the_wait_for_static_members_has_a_length(rebalance_ms: int) -> None:
    """Whatever rebalance timeout they told: a timer that is due at once, and set again, would keep the broker busy."""
    world = stable()
    for instance in ("i", "j"):
        world.join(instance=instance, rebalance_ms=rebalance_ms)
        world.settle()
    world.leave(MemberIdentity("", "j"))
    assert world.group.state is GroupState.PREPARING_REBALANCE
    name = TimerName(GROUP, TimerKind.JOIN)
    for _ in range(2):
        world.now_ms = max(world.now_ms, world.timers.pop(name))
        world.do(world.coordinator.timer_fired(name, world.now_ms))
        assert world.timers[name] - world.now_ms == world.settings.group_min_session_timeout_ms
    world.advance(SESSION_MS)
    assert (world.group.state, world.group.generation_id) == (GroupState.EMPTY, 2)


def test_instances_are_checked_everywhere() -> None:
    """A member that names the instance of another is fenced, one that names an unknown instance unknown."""
    world = stable()
    assert world.answers[world.join(I1, instance="j")].error_code is ErrorCode.FENCED_INSTANCE_ID
    assert world.answers[world.sync(I1, 1, instance="j")].error_code is ErrorCode.FENCED_INSTANCE_ID
    assert world.heartbeat(I1, 1, "x") is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.leave(MemberIdentity(I1, "j")).members[0].error_code is ErrorCode.FENCED_INSTANCE_ID
    waiter = world.commit(1, I1, 1, instance="j")
    assert set(world.answers[waiter].values()) == {ErrorCode.FENCED_INSTANCE_ID}
