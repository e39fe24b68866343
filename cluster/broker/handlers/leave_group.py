"""LeaveGroup (13): members go, one up to version 2, several from version 3 on."""

from __future__ import annotations

from typing import Any

from cluster.broker.exchange import Exchange
from cluster.broker.portions import Steps
from cluster.broker.services import Services
from cluster.coordinator.group.requests import MemberIdentity
from cluster.protocol.apis import ApiKey
from cluster.protocol.messages import response_class

_BATCH_VERSION = 3


def handle(services: Services, request: Any, exchange: Exchange) -> Steps[Any]:
    response = response_class(ApiKey.LEAVE_GROUP)
    if exchange.api_version < _BATCH_VERSION:
        left = services.groups.leave(request.group_id, [MemberIdentity(request.member_id)])
        yield None
        # There is one error for both, the group and its member.
        errors = (left.error_code, *(each.error_code for each in left.members))
        return response(error_code=next((error for error in errors if error), left.error_code), members=[])
    leaving = [MemberIdentity(each.member_id, each.group_instance_id) for each in request.members]
    left = services.groups.leave(request.group_id, leaving)
    members = []
    for each in left.members:
        members.append(
            response.MemberResponse(
                member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=each.error_code
            )
        )
        yield None
    return response(error_code=left.error_code, members=members)
