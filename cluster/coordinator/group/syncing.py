"""SyncGroup: members ask for their assignment, and the leader brings it.

Owns that an assignment is told only once it is stored, and that a generation has one: of a leader that asks twice the
first counts. Does not own what is in it.
"""

from __future__ import annotations

from cluster.coordinator.group.answers import SyncAnswer
from cluster.coordinator.group.checks import check_generation, group_append_error
from cluster.coordinator.group.decisions import GroupDecision
from cluster.coordinator.group.group import Group
from cluster.coordinator.group.member_effects import answer_sync, append_group, park_sync, watch_session
from cluster.coordinator.group.purposes import AssignmentStored
from cluster.coordinator.group.rebalancing import maybe_prepare, reset_assignments, synced
from cluster.coordinator.group.requests import SyncRequest, Waiter
from cluster.coordinator.group.sizes import least_record_bytes
from cluster.coordinator.group.states import GroupState
from cluster.protocol.errors import ErrorCode


def sync(decision: GroupDecision, group: Group, request: SyncRequest, waiter: Waiter) -> None:
    """Decide on one SyncGroup."""
    error_code = _check(group, request)
    if error_code is not ErrorCode.NONE:
        decision.answer(waiter, SyncAnswer(error_code))
        return
    member = group.members[request.member.member_id]
    if group.state is GroupState.STABLE:
        decision.answer(waiter, SyncAnswer(ErrorCode.NONE, group.protocol_type, group.protocol_name, member.assignment))
        watch_session(decision, group, member)
        synced(decision, group, member.member_id)
        return
    park_sync(decision, member, waiter)
    synced(decision, group, member.member_id)
    if member.member_id == group.leader and not group.storing:
        assignments = {member_id: request.assignments.get(member_id, b"") for member_id in group.members}
        purpose = AssignmentStored(group.generation_id, assignments)
        if least_record_bytes(group, assignments) > decision.settings.message_max_bytes:
            assignment_stored(decision, group, purpose, ErrorCode.RECORD_LIST_TOO_LARGE)
            return
        append_group(decision, group, assignments, purpose)
        # Only now: of a group that cannot be written, nothing is being stored.
        group.begin_storing(assignments)


def _check(group: Group, request: SyncRequest) -> ErrorCode:
    error_code = check_generation(group, request.member)
    if error_code is not ErrorCode.NONE:
        return error_code
    if request.protocol_type not in (None, group.protocol_type):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if request.protocol_name not in (None, group.protocol_name):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def assignment_stored(decision: GroupDecision, group: Group, purpose: AssignmentStored, error_code: ErrorCode) -> None:
    """Tell all that wait, or have them join again. Of a generation that is over, nothing is told."""
    if group.state is not GroupState.COMPLETING_REBALANCE or purpose.generation_id != group.generation_id:
        return
    group.end_storing()
    if error_code is not ErrorCode.NONE:
        reset_assignments(decision, group, group_append_error(error_code))
        maybe_prepare(decision, group)
        return
    for member in group.members.values():
        group.assign(member, purpose.assignments[member.member_id])
        answer = SyncAnswer(ErrorCode.NONE, group.protocol_type, group.protocol_name, member.assignment)
        if answer_sync(decision, member, answer):
            # Its session may have run out while it waited, without effect.
            watch_session(decision, group, member)
    group.transition(GroupState.STABLE, decision.now_ms)
