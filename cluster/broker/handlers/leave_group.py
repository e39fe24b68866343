"""LeaveGroup (13): members go, one up to version 2, several from version 3 on."""

from __future__ import annotations

from typing import Any

from cluster.broker.exchange import Exchange
from cluster.broker.portions import Steps, chunks
from cluster.broker.services import Services
from cluster.coordinator.group.requests import MemberIdentity
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import response_class

_BATCH_VERSION = 3
#: Members that go before others have their turn; no group that fits into a record has many more.
AT_ONCE = 1000


def handle(services: Services, request: Any, exchange: Exchange) -> Steps[Any]:
    response = response_class(ApiKey.LEAVE_GROUP)
    if exchange.api_version < _BATCH_VERSION:
        left = services.groups.leave(request.group_id, [MemberIdentity(request.member_id)])
        yield None
        # There is one error for both, the group and its member.
        errors = (left.error_code, *(each.error_code for each in left.members))
        return response(error_code=next((error for error in errors if error), left.error_code), members=[])
    members: list[Any] = []
    for chunk in chunks(request.members, AT_ONCE):
        leaving = [MemberIdentity(each.member_id, each.group_instance_id) for each in chunk]
        left = services.groups.leave(request.group_id, leaving)
        if left.error_code is not ErrorCode.NONE:
            return response(error_code=left.error_code, members=[])
        members += [
            response.MemberResponse(
                member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=each.error_code
            )
            for each in left.members
        ]
        yield None
    return response(error_code=ErrorCode.NONE, members=members)
