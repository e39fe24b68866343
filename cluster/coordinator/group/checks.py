"""Who may speak for a member of a group, and which generation it must name.

Owns the order of these checks and the errors, which JoinGroup, SyncGroup, Heartbeat, LeaveGroup and commits share
(docs/reference/kafka.md "Groups"); also what clients are told of an append that failed. Does not own what follows.
"""

from __future__ import annotations

from cluster.coordinator.group.group import Group
from cluster.coordinator.group.requests import MemberIdentity
from cluster.coordinator.group.states import GroupState
from cluster.protocol.errors import ErrorCode

_UNAVAILABLE = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    }
)
_MOVED = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR})
_TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.INVALID_FETCH_SIZE})


def check_member(group: Group, member_id: str, group_instance_id: str | None) -> ErrorCode:
    """Whether the member is there and, if an instance is named, is the one under that instance (KIP-345)."""
    if group_instance_id is not None:
        current = group.static_members.get(group_instance_id)
        if current is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if current != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    return ErrorCode.NONE if member_id in group.members else ErrorCode.UNKNOWN_MEMBER_ID


def check_generation(group: Group, member: MemberIdentity) -> ErrorCode:
    """Whether it is a member of the current generation."""
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    error_code = check_member(group, member.member_id, member.group_instance_id)
    if error_code is ErrorCode.NONE and member.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    return error_code


def group_append_error(error_code: ErrorCode) -> ErrorCode:
    """What members are told when their group could not be stored."""
    if error_code is ErrorCode.REQUEST_TIMED_OUT:
        return ErrorCode.REBALANCE_IN_PROGRESS
    if error_code in _TOO_LARGE:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return _append_error(error_code)


def offset_append_error(error_code: ErrorCode) -> ErrorCode:
    """What a consumer is told when its offsets could not be stored."""
    if error_code is ErrorCode.NETWORK_EXCEPTION:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if error_code in _TOO_LARGE:
        return ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    return _append_error(error_code)


def _append_error(error_code: ErrorCode) -> ErrorCode:
    if error_code in _UNAVAILABLE:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return ErrorCode.NOT_COORDINATOR if error_code in _MOVED else error_code
