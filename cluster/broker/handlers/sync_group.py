"""SyncGroup (14): a member asks for its assignment, and the leader brings those of all."""

from __future__ import annotations

from cluster.broker.exchange import Exchange
from cluster.broker.pauses import Pauses
from cluster.broker.services import Services
from cluster.coordinator.group.answers import SyncAnswer
from cluster.coordinator.group.requests import MemberIdentity, SyncRequest
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import SyncGroupRequest, SyncGroupResponse

#: From this version on a member must say which protocol it believes in.
_NAMES_PROTOCOL_VERSION = 5


async def handle(services: Services, request: SyncGroupRequest, exchange: Exchange) -> SyncGroupResponse:
    names_protocol = exchange.api_version >= _NAMES_PROTOCOL_VERSION
    if names_protocol and None in (request.protocol_type, request.protocol_name):
        return _response(SyncAnswer(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    assignments, pause = {}, Pauses(services.shares)
    for each in request.assignments:
        assignments[each.member_id] = each.assignment
        await pause()
    asked = SyncRequest(
        request.group_id,
        MemberIdentity(request.member_id, request.group_instance_id, request.generation_id),
        request.protocol_type,
        request.protocol_name,
        assignments,
    )
    del request, assignments
    exchange.let_go()
    return _response(await services.groups.sync(asked))


def _response(answer: SyncAnswer) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=answer.error_code,
        protocol_type=answer.protocol_type,
        protocol_name=answer.protocol_name,
        assignment=answer.assignment,
    )
