"""JoinGroup: who may become or stay a member, and what that does to the group.

Owns the order of checks and the case of each state (docs/reference/kafka.md "Groups"). Does not own the rebalance that
follows (``rebalancing``), nor how member ids are made.
"""

from __future__ import annotations

from collections.abc import Callable

from cluster.coordinator.group.answers import JoinAnswer, SyncAnswer
from cluster.coordinator.group.checks import check_member, group_append_error
from cluster.coordinator.group.decisions import GroupDecision, TimerKind
from cluster.coordinator.group.group import Group
from cluster.coordinator.group.handover import is_handing_over
from cluster.coordinator.group.member_effects import (
    answer_join,
    answer_sync,
    append_group,
    cancel_timer,
    drop_member,
    park_join,
    set_timer,
    watch_session,
)
from cluster.coordinator.group.members import GroupMember
from cluster.coordinator.group.purposes import StaticMemberStored
from cluster.coordinator.group.rebalancing import generation_answer, maybe_prepare, prepare, try_complete_join
from cluster.coordinator.group.requests import UNKNOWN_MEMBER_ID, JoinRequest, Waiter
from cluster.coordinator.group.sizes import has_room
from cluster.coordinator.group.states import GroupState
from cluster.protocol.errors import ErrorCode

#: Makes a member id that was never used, from what it shall begin with.
NewMemberId = Callable[[str], str]


def join(
    decision: GroupDecision, group: Group, request: JoinRequest, waiter: Waiter, new_member_id: NewMemberId
) -> None:
    """Decide on a member that wants to join ``group``, which is new if it was not there."""
    error_code, member_id = ErrorCode.NONE, request.member_id
    if not group.accepts(member_id, decision.settings.group_max_size):
        drop_member(decision, group, member_id)
        error_code, member_id = ErrorCode.GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID
    elif group.state is GroupState.DEAD:
        error_code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    elif not has_room(group, request, decision.settings.group_max_bytes):
        error_code = ErrorCode.GROUP_MAX_SIZE_REACHED
    elif not group.supports(request.protocol_type, request.protocols):
        error_code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    elif member_id == UNKNOWN_MEMBER_ID:
        _join_unknown(decision, group, request, waiter, new_member_id)
    elif member_id in group.pending_members and request.group_instance_id is None:
        _add(decision, group, request, waiter, member_id)
    else:
        error_code = check_member(group, member_id, request.group_instance_id)
        if error_code is ErrorCode.NONE:
            _rejoin(decision, group, group.members[member_id], request, waiter)
    if error_code is not ErrorCode.NONE:
        decision.answer(waiter, JoinAnswer(error_code, member_id))
    try_complete_join(decision, group)


def _join_unknown(
    decision: GroupDecision, group: Group, request: JoinRequest, waiter: Waiter, new_member_id: NewMemberId
) -> None:
    instance_id = request.group_instance_id
    if instance_id is not None:
        member_id = new_member_id(instance_id)
        if instance_id in group.static_members:
            _replace_static(decision, group, request, waiter, member_id)
        else:
            _add(decision, group, request, waiter, member_id)
        return
    member_id = new_member_id(request.client_id)
    if request.requires_known_member_id:
        group.pending_members.add(member_id)
        set_timer(decision, group, TimerKind.PENDING, request.session_timeout_ms, member_id)
        decision.answer(waiter, JoinAnswer(ErrorCode.MEMBER_ID_REQUIRED, member_id))
    else:
        _add(decision, group, request, waiter, member_id)


def _add(decision: GroupDecision, group: Group, request: JoinRequest, waiter: Waiter, member_id: str) -> None:
    """A member that was not there."""
    member = GroupMember(
        member_id,
        request.protocols,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        group_instance_id=request.group_instance_id,
        client_id=request.client_id,
        client_host=request.client_host,
        is_new=True,
    )
    if not group.members:
        group.protocol_type = request.protocol_type
    if group.state is GroupState.PREPARING_REBALANCE and group.generation_id == 0:
        group.has_new_members = True
    cancel_timer(decision, group, TimerKind.PENDING, member_id)
    group.add(member)
    group.park_join(member, waiter)
    # It has no session: it does not know its id before it is answered. A connection that is lost while it waits is
    # not noticed either, so after this time it has to ask again.
    set_timer(decision, group, TimerKind.SESSION, decision.settings.new_member_join_timeout_ms, member_id)
    maybe_prepare(decision, group)


def _rejoin(decision: GroupDecision, group: Group, member: GroupMember, request: JoinRequest, waiter: Waiter) -> None:
    """A member that is known by its id."""
    is_unchanged = member.protocols == request.protocols
    state = group.state
    if state is GroupState.EMPTY:
        decision.answer(waiter, JoinAnswer(ErrorCode.UNKNOWN_MEMBER_ID, member.member_id))
    elif is_unchanged and (
        state is GroupState.COMPLETING_REBALANCE or (state is GroupState.STABLE and member.member_id != group.leader)
    ):
        # It may not have received the answer to its JoinGroup.
        decision.answer(waiter, generation_answer(group, member))
    else:
        group.update(member, request.protocols, request.session_timeout_ms, request.rebalance_timeout_ms)
        park_join(decision, group, member, waiter)
        maybe_prepare(decision, group)


def _replace_static(
    decision: GroupDecision, group: Group, request: JoinRequest, waiter: Waiter, member_id: str
) -> None:
    """A static member that has restarted: it takes the place of its former life (KIP-345)."""
    former_id = group.static_members[request.group_instance_id or ""]
    member = group.members[former_id]
    stays = group.state is GroupState.STABLE and not is_handing_over(group)
    purpose = StaticMemberStored(
        waiter,
        request.group_instance_id or "",
        former_id,
        member_id,
        group.leader or "",
        member.protocols,
        member.session_timeout_ms,
        member.rebalance_timeout_ms,
        request.supports_skipping_assignment,
    )
    _rename(decision, group, member, member_id)
    group.update(member, request.protocols, request.session_timeout_ms, request.rebalance_timeout_ms)
    watch_session(decision, group, member)
    group.park_join(member, waiter)
    if stays and group.select_protocol() == group.protocol_name:
        group.replacing.add(member_id)
        append_group(decision, group, {each: found.assignment for each, found in group.members.items()}, purpose)
    elif group.can_rebalance:
        # Its former id may be with the leader already, which would assign nothing to the new one; or it was to join
        # again for what it gave away, which it no longer knows.
        prepare(decision, group)


def _rename(decision: GroupDecision, group: Group, member: GroupMember, member_id: str) -> None:
    """Requests of its former life end."""
    former_id = member.member_id
    answer_join(decision, group, member, JoinAnswer(ErrorCode.FENCED_INSTANCE_ID, former_id))
    answer_sync(decision, member, SyncAnswer(ErrorCode.FENCED_INSTANCE_ID))
    cancel_timer(decision, group, TimerKind.SESSION, former_id)
    group.rename(member, member_id)


def static_member_stored(
    decision: GroupDecision, group: Group, purpose: StaticMemberStored, error_code: ErrorCode
) -> None:
    """Answer the static member, unless a rebalance has begun, whose generation answers it, or it was replaced again."""
    member = group.members.get(purpose.member_id)
    if member is None or member.member_id not in group.replacing:
        return
    group.replacing.discard(member.member_id)
    leader = group.leader == member.member_id
    if error_code is ErrorCode.NONE:
        if purpose.supports_skipping_assignment:
            answer = generation_answer(group, member, skip_assignment=leader)
        else:
            answer = _answer_naming(group, member, purpose.former_leader)
        answer_join(decision, group, member, answer)
        watch_session(decision, group, member)
        return
    error = group_append_error(error_code)
    group.take_join(member)
    decision.answer(
        purpose.waiter,
        JoinAnswer(
            error,
            UNKNOWN_MEMBER_ID,
            group.generation_id,
            group.protocol_type,
            group.protocol_name,
            purpose.former_leader,
        ),
    )
    _rename(decision, group, member, purpose.former_member_id)
    group.update(
        member,
        purpose.former_protocols,
        purpose.former_session_timeout_ms,
        purpose.former_rebalance_timeout_ms,
    )
    watch_session(decision, group, member)


def _answer_naming(group: Group, member: GroupMember, leader: str) -> JoinAnswer:
    """A leader that cannot be told to skip the assignment is told another's id as the leader's: it would assign, and a
    Stable group would not pass that on."""
    return JoinAnswer(
        ErrorCode.NONE, member.member_id, group.generation_id, group.protocol_type, group.protocol_name, leader
    )
