"""What the coordinator's answers mean for a membership, code by code. Pure.

Owns the tables of Kafka's JoinGroupResponseHandler, SyncGroupResponseHandler and HeartbeatResponseHandler. Does not own
what a membership does next.
"""

from __future__ import annotations

import logging

from cluster.client.consumer.group.group_errors import group_error
from cluster.client.consumer.group.group_membership import GroupMembership
from cluster.client.consumer.group.group_requests import (
    Generation,
    GroupAnswer,
    JoinGroup,
    LeaveGroup,
    MemberHeartbeat,
    MemberRequest,
    SyncGroup,
)
from cluster.client.consumer.group.membership_values import DivideAmong, MembershipState
from cluster.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE
from cluster.protocol.errors import ErrorCode

logger = logging.getLogger(__name__)

#: After these the coordinator is to be looked for again.
COORDINATOR_IS_GONE = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)


def membership_answered(membership: GroupMembership, request: MemberRequest, answer: GroupAnswer, now_ms: int) -> None:
    """An answer came, or will not come. One to a request that does not count anymore is ignored."""
    if isinstance(request, LeaveGroup):
        if request is membership.leaving:
            logger.debug("group %s: left: %s", request.group_id, answer.error_code.name)
            membership.leaving = None
    elif isinstance(request, MemberHeartbeat):
        if request is membership.heartbeat:
            membership.heartbeat = None
            _heartbeat(membership, answer.error_code, now_ms)
    elif request is membership.asked:
        membership.asked = None
        if answer.error_code in COORDINATOR_IS_GONE:
            membership.search.unknown(f"{type(request).__name__}: {answer.error_code.name}", now_ms)
            membership.join_later(now_ms)
        elif isinstance(request, JoinGroup):
            _joined(membership, answer, now_ms)
        else:
            _synced(membership, request, answer, now_ms)


def _joined(membership: GroupMembership, answer: GroupAnswer, now_ms: int) -> None:
    code = answer.error_code
    if code is ErrorCode.NONE and not _is_of_consumers(answer):
        code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if code is ErrorCode.NONE:
        generation = Generation(answer.generation_id, answer.member_id, answer.protocol_name)
        leads = answer.leader == answer.member_id
        step = DivideAmong(generation, answer.members, answer.skip_assignment) if leads else None
        membership.joined(generation, step, now_ms)
    elif code is ErrorCode.MEMBER_ID_REQUIRED:
        membership.require_member_id(answer.member_id)
    elif code is ErrorCode.UNKNOWN_MEMBER_ID:
        membership.reset("the coordinator does not know this member")
    elif code in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REBALANCE_IN_PROGRESS):
        membership.join_later(now_ms)
    else:
        _fail(membership, code, "joining")


def _synced(membership: GroupMembership, request: SyncGroup, answer: GroupAnswer, now_ms: int) -> None:
    code = answer.error_code
    is_other = answer.protocol_name not in (None, request.generation.protocol_name)
    if code is ErrorCode.NONE and (is_other or not _is_of_consumers(answer)):
        code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if code is ErrorCode.NONE:
        membership.synced(answer.assignment, now_ms)
    elif code is ErrorCode.UNKNOWN_MEMBER_ID:
        membership.reset("the coordinator does not know this member")
    elif code is ErrorCode.ILLEGAL_GENERATION:
        # The id may hold: with it, no one has to wait until the coordinator misses its owner.
        membership.reset("the generation is over", keeps_member_id=True)
    elif code in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
        membership.join_later(now_ms)
    else:
        _fail(membership, code, "syncing with")


def _heartbeat(membership: GroupMembership, code: ErrorCode, now_ms: int) -> None:
    """A code is about the generation that there is: a heartbeat of one before does not count anymore."""
    if code is ErrorCode.NONE:
        membership.times.answered(now_ms)
    elif code is ErrorCode.REBALANCE_IN_PROGRESS:
        membership.times.answered(now_ms)
        if membership.state is MembershipState.STABLE:
            membership.request_rejoin("group is already rebalancing")
    elif code is ErrorCode.ILLEGAL_GENERATION:
        membership.reset("the generation is over", keeps_member_id=True)
    elif code is ErrorCode.UNKNOWN_MEMBER_ID:
        membership.reset("the coordinator does not know this member")
    elif code is ErrorCode.FENCED_INSTANCE_ID:
        membership.reset("another consumer has taken the place of this static member")
        _fail(membership, code, "heartbeating to")
    else:
        if code in COORDINATOR_IS_GONE:
            membership.search.unknown(f"Heartbeat: {code.name}", now_ms)
        membership.retry_heartbeat(now_ms)


def _is_of_consumers(answer: GroupAnswer) -> bool:
    """Before version 7 of JoinGroup and 5 of SyncGroup the type is not told."""
    return answer.protocol_type in (None, CONSUMER_PROTOCOL_TYPE)


def _fail(membership: GroupMembership, code: ErrorCode, doing: str) -> None:
    settings = membership.settings
    membership.fail(group_error(code, settings.group_id, doing, settings.group_instance_id))
