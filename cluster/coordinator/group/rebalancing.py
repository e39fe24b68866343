"""A rebalance, from the first reason for it to the new generation (docs/reference/kafka.md "Groups").

Owns the join phase: its delay, its end, and who is left out; and the end of the sync phase by time. Does not own what a
single request means (``joining``, ``syncing``, ``heartbeats``).
"""

from __future__ import annotations

from cluster.coordinator.group.answers import JoinAnswer, SyncAnswer
from cluster.coordinator.group.decisions import GroupDecision, TimerKind
from cluster.coordinator.group.group import Group, InitialJoin
from cluster.coordinator.group.member_effects import (
    answer_join,
    answer_sync,
    append_group,
    cancel_timer,
    drop_member,
    set_timer,
    watch_session,
)
from cluster.coordinator.group.members import GroupMember
from cluster.coordinator.group.purposes import EmptyGroupStored
from cluster.coordinator.group.states import GroupState
from cluster.protocol.errors import ErrorCode

#: For how long a group at least waits again for static members, none of which is back. Their rebalance timeout may be
#: 0, or less.
LEAST_WAIT_MS = 1000


def maybe_prepare(decision: GroupDecision, group: Group) -> None:
    """Begin a rebalance unless one is under way or the group is gone."""
    if group.can_rebalance:
        prepare(decision, group)


def prepare(decision: GroupDecision, group: Group) -> None:
    """Ask all members to join again. Those that wait for an assignment are told so at once.

    A group that was Empty waits a moment for more members, whether or not all known ones have joined (KIP-134).
    """
    if group.state is GroupState.COMPLETING_REBALANCE:
        reset_assignments(decision, group, ErrorCode.REBALANCE_IN_PROGRESS)
    cancel_timer(decision, group, TimerKind.SYNC)
    group.pending_sync = set()
    group.end_storing()
    group.replacing = set()
    was_empty = group.state is GroupState.EMPTY
    group.transition(GroupState.PREPARING_REBALANCE, decision.now_ms)
    timeout_ms = group.rebalance_timeout_ms
    if was_empty:
        delay_ms = decision.settings.group_initial_rebalance_delay_ms
        group.initial_join = InitialJoin(delay_ms, max(timeout_ms - delay_ms, 0))
        set_timer(decision, group, TimerKind.JOIN, delay_ms)
    else:
        set_timer(decision, group, TimerKind.JOIN, timeout_ms)
        try_complete_join(decision, group)


def reset_assignments(decision: GroupDecision, group: Group, error_code: ErrorCode) -> None:
    """This generation gets no assignment: every waiter is told ``error_code``."""
    for member in group.members.values():
        group.assign(member, b"")
        if answer_sync(decision, member, SyncAnswer(error_code)):
            watch_session(decision, group, member)


def try_complete_join(decision: GroupDecision, group: Group) -> None:
    """End the join phase if no one is missing. A first rebalance always waits for its timer."""
    if group.state is GroupState.PREPARING_REBALANCE and group.initial_join is None and group.has_all_joined:
        _complete_join(decision, group)


def join_timer_fired(decision: GroupDecision, group: Group) -> None:
    """Extend the delay of a first rebalance if members came meanwhile, else end the join phase."""
    if group.state is not GroupState.PREPARING_REBALANCE:
        return
    initial = group.initial_join
    if initial is not None and group.has_new_members and initial.remaining_ms > 0:
        group.has_new_members = False
        delay_ms = min(decision.settings.group_initial_rebalance_delay_ms, initial.remaining_ms)
        group.initial_join = InitialJoin(delay_ms, max(initial.remaining_ms - initial.delay_ms, 0))
        set_timer(decision, group, TimerKind.JOIN, delay_ms)
    else:
        _complete_join(decision, group)


def _complete_join(decision: GroupDecision, group: Group) -> None:
    cancel_timer(decision, group, TimerKind.JOIN)
    group.initial_join = None
    late = [each.member_id for each in group.members.values() if each.join_waiter is None and not each.is_static]
    for member_id in late:
        drop_member(decision, group, member_id)
    if group.members and not group.elect_joined_leader():
        # Static members alone are left and none is back: their sessions end it, none of which ends sooner.
        least_ms = max(decision.settings.group_min_session_timeout_ms, LEAST_WAIT_MS)
        set_timer(decision, group, TimerKind.JOIN, max(group.rebalance_timeout_ms, least_ms))
        return
    group.has_new_members = False
    group.begin_generation(decision.now_ms)
    if group.state is GroupState.EMPTY:
        append_group(decision, group, {}, EmptyGroupStored())
        return
    for member in group.members.values():
        answer_join(decision, group, member, generation_answer(group, member))
        watch_session(decision, group, member)
        member.is_new = False
        group.pending_sync.add(member.member_id)
    set_timer(decision, group, TimerKind.SYNC, group.rebalance_timeout_ms)


def generation_answer(group: Group, member: GroupMember, *, skip_assignment: bool = False) -> JoinAnswer:
    """The current generation, as a member is told it. A Stable group has members that lead and know it: they are told
    the others only together with ``skip_assignment``."""
    is_told = member.member_id == group.leader and (group.state is not GroupState.STABLE or skip_assignment)
    return JoinAnswer(
        ErrorCode.NONE,
        member.member_id,
        group.generation_id,
        group.protocol_type,
        group.protocol_name,
        group.leader or "",
        skip_assignment,
        group.joined_members() if is_told else (),
    )


def sync_timer_fired(decision: GroupDecision, group: Group) -> None:
    """Members that were told the generation and have not asked for their assignment are gone."""
    if group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE) or not group.pending_sync:
        return
    for member_id in sorted(group.pending_sync):
        drop_member(decision, group, member_id)
    prepare(decision, group)


def synced(decision: GroupDecision, group: Group, member_id: str) -> None:
    """A member asked for its assignment."""
    group.pending_sync.discard(member_id)
    if not group.pending_sync:
        cancel_timer(decision, group, TimerKind.SYNC)


def member_left(decision: GroupDecision, group: Group, member_id: str) -> None:
    """A member or a pending id is gone, for whatever reason: the others share what it had."""
    was_member = member_id in group.members
    drop_member(decision, group, member_id)
    if was_member:
        maybe_prepare(decision, group)
    try_complete_join(decision, group)
