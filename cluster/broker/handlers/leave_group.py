"""LeaveGroup (13): members go, one up to version 2, several from version 3 on."""

from __future__ import annotations

from cluster.broker.exchange import Exchange
from cluster.broker.portions import Steps, chunks
from cluster.broker.services import Services
from cluster.coordinator.group.requests import MemberIdentity
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import LeaveGroupRequest, LeaveGroupResponse

_BATCH_VERSION = 3
#: Members that go before others have their turn; no group that fits into a record has many more.
AT_ONCE = 1000


def handle(services: Services, request: LeaveGroupRequest, exchange: Exchange) -> Steps[LeaveGroupResponse]:
    if exchange.api_version < _BATCH_VERSION:
        left = services.groups.leave(request.group_id, [MemberIdentity(request.member_id)])
        yield None
        # There is one error for both, the group and its member.
        errors = (left.error_code, *(each.error_code for each in left.members))
        return LeaveGroupResponse(error_code=next((error for error in errors if error), left.error_code), members=[])
    members: list[LeaveGroupResponse.MemberResponse] = []
    for chunk in chunks(request.members, AT_ONCE):
        leaving = [MemberIdentity(each.member_id, each.group_instance_id) for each in chunk]
        left = services.groups.leave(request.group_id, leaving)
        if left.error_code is not ErrorCode.NONE:
            return LeaveGroupResponse(error_code=left.error_code, members=[])
        members += [
            LeaveGroupResponse.MemberResponse(
                member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=each.error_code
            )
            for each in left.members
        ]
        yield None
    return LeaveGroupResponse(error_code=ErrorCode.NONE, members=members)
