"""Heartbeat and LeaveGroup, and the timers that stand for members that send neither.

Owns how a member stays and how it goes. Does not own the rebalance that follows.
"""

from __future__ import annotations

from collections.abc import Iterable

from cluster.coordinator.group.answers import LeaveAnswer, MemberLeft
from cluster.coordinator.group.checks import check_generation, check_member
from cluster.coordinator.group.decisions import GroupDecision
from cluster.coordinator.group.group import Group
from cluster.coordinator.group.member_effects import watch_session
from cluster.coordinator.group.rebalancing import member_left
from cluster.coordinator.group.requests import UNKNOWN_MEMBER_ID, MemberIdentity
from cluster.coordinator.group.states import GroupState
from cluster.protocol.errors import ErrorCode


def heartbeat(decision: GroupDecision, group: Group, member: MemberIdentity) -> ErrorCode:
    """A member is alive. While others join it is told to join, too."""
    error_code = check_generation(group, member)
    if error_code is not ErrorCode.NONE:
        return error_code
    watch_session(decision, group, group.members[member.member_id])
    is_preparing = group.state is GroupState.PREPARING_REBALANCE
    return ErrorCode.REBALANCE_IN_PROGRESS if is_preparing else ErrorCode.NONE


def leave(decision: GroupDecision, group: Group, leaving: Iterable[MemberIdentity]) -> LeaveAnswer:
    """Members go, each by itself: one that is not there does not keep the others."""
    if group.state is GroupState.DEAD:
        return LeaveAnswer(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    left = [MemberLeft(each.member_id, each.group_instance_id, _leave(decision, group, each)) for each in leaving]
    return LeaveAnswer(ErrorCode.NONE, tuple(left))


def _leave(decision: GroupDecision, group: Group, leaving: MemberIdentity) -> ErrorCode:
    member_id = leaving.member_id
    if member_id == UNKNOWN_MEMBER_ID:
        # A tool removes a static member, whose id it does not know.
        current = group.static_members.get(leaving.group_instance_id or "")
        if leaving.group_instance_id is None or current is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id = current
    elif member_id not in group.pending_members:
        error_code = check_member(group, member_id, leaving.group_instance_id)
        if error_code is not ErrorCode.NONE:
            return error_code
    member_left(decision, group, member_id)
    return ErrorCode.NONE


def session_timer_fired(decision: GroupDecision, group: Group, member_id: str) -> None:
    """Nothing was heard from a member. One that waits for an answer is not expected to send anything."""
    member = group.members.get(member_id)
    if member is not None and not member.is_parked:
        member_left(decision, group, member_id)


def pending_timer_fired(decision: GroupDecision, group: Group, member_id: str) -> None:
    """A member id was not used in time. A rebalance no longer waits for it."""
    if member_id in group.pending_members:
        member_left(decision, group, member_id)
