"""What decisions about members have in common: they answer waiting requests, watch or drop sessions, and append
records.

Owns that a request is answered once, that a timer of a group is known to it while it is set, and that nothing of a
member is left when it goes. Does not own why.
"""

from __future__ import annotations

from collections.abc import Mapping

from cluster.coordinator.group.answers import JoinAnswer, SyncAnswer
from cluster.coordinator.group.decisions import GroupAppend, GroupDecision, Records, TimerKind, TimerName
from cluster.coordinator.group.group import Group
from cluster.coordinator.group.group_values import group_value
from cluster.coordinator.group.members import GroupMember
from cluster.coordinator.group.purposes import Purpose
from cluster.coordinator.group.records import group_key
from cluster.coordinator.group.requests import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, UNKNOWN_MEMBER_ID, Waiter
from cluster.coordinator.group.stored_group import value_of
from cluster.protocol.errors import ErrorCode


def set_timer(decision: GroupDecision, group: Group, kind: TimerKind, delay_ms: int, member_id: str = "") -> None:
    name = TimerName(group.group_id, kind, member_id)
    group.timers[name] = decision.now_ms + delay_ms
    decision.set_timer(name, group.timers[name])


def cancel_timer(decision: GroupDecision, group: Group, kind: TimerKind, member_id: str = "") -> None:
    """Nothing happens if it is not set."""
    name = TimerName(group.group_id, kind, member_id)
    if group.timers.pop(name, None) is not None:
        decision.cancel_timers([name])


def watch_session(decision: GroupDecision, group: Group, member: GroupMember) -> None:
    """The member was heard from, or an answer to it ends a wait: its session starts over."""
    set_timer(decision, group, TimerKind.SESSION, member.session_timeout_ms, member.member_id)


def park_join(decision: GroupDecision, group: Group, member: GroupMember, waiter: Waiter) -> None:
    """A JoinGroup waits. One of the same member that did before is a lost connection's, and ends."""
    answer_join(decision, group, member, JoinAnswer(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
    group.park_join(member, waiter)


def park_sync(decision: GroupDecision, member: GroupMember, waiter: Waiter) -> None:
    """A SyncGroup waits, instead of one of the same member that did before."""
    answer_sync(decision, member, SyncAnswer(ErrorCode.REBALANCE_IN_PROGRESS))
    member.sync_waiter = waiter


def answer_join(decision: GroupDecision, group: Group, member: GroupMember, answer: JoinAnswer) -> bool:
    """Whether one waited."""
    waiter = group.take_join(member)
    if waiter is not None:
        decision.answer(waiter, answer)
    return waiter is not None


def answer_sync(decision: GroupDecision, member: GroupMember, answer: SyncAnswer) -> bool:
    """Whether one waited."""
    waiter, member.sync_waiter = member.sync_waiter, None
    if waiter is not None:
        decision.answer(waiter, answer)
    return waiter is not None


def drop_member(decision: GroupDecision, group: Group, member_id: str) -> None:
    """A member or a pending id goes. What waits of it is told so, and it may join as a new member."""
    member = group.members.get(member_id)
    if member is not None:
        answer_join(decision, group, member, JoinAnswer(ErrorCode.UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER_ID))
        answer_sync(decision, member, SyncAnswer(ErrorCode.UNKNOWN_MEMBER_ID))
    cancel_timer(decision, group, TimerKind.SESSION, member_id)
    cancel_timer(decision, group, TimerKind.PENDING, member_id)
    group.remove(member_id)


def append(
    decision: GroupDecision,
    group: Group,
    records: Records,
    purpose: Purpose,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
) -> None:
    """One batch for the partition that the group belongs to."""
    home = group.home
    decision.appends.append(
        GroupAppend(home.index, home.leader_epoch, group.group_id, records, purpose, producer_id, producer_epoch)
    )


def append_group(decision: GroupDecision, group: Group, assignments: Mapping[str, bytes], purpose: Purpose) -> None:
    """The group as it is, with what each member is assigned."""
    record = (group_key(group.group_id), group_value(value_of(group, assignments)))
    append(decision, group, (record,), purpose)
