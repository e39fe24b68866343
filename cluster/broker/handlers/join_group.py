"""JoinGroup (11): a member joins, and waits for the others; up to version 3 without a member id to come again with."""

from __future__ import annotations

from cluster.broker.exchange import Exchange
from cluster.broker.pauses import Pauses
from cluster.broker.services import Services
from cluster.coordinator.group.requests import JoinRequest
from cluster.protocol.message_classes import JoinGroupRequest, JoinGroupResponse

#: From this version on there may be no protocol name; before it that is an empty one.
_NULLABLE_NAME_VERSION = 7


async def handle(services: Services, request: JoinGroupRequest, exchange: Exchange) -> JoinGroupResponse:
    version = exchange.api_version
    protocols, pause = [], Pauses(services.shares)
    for each in request.protocols:
        protocols.append((each.name, each.metadata))
        await pause()
    asked = JoinRequest(
        request.group_id,
        request.member_id,
        request.protocol_type,
        tuple(protocols),
        request.session_timeout_ms,
        request.rebalance_timeout_ms,
        request.group_instance_id,
        exchange.client_id or "",
        exchange.client_host,
        version,
    )
    # What waits for the other members, for as long as these like, is not the request.
    del request, protocols
    exchange.let_go()
    answer = await services.groups.join(asked)
    members, pause = [], Pauses(services.shares)
    for member in answer.members:
        members.append(
            JoinGroupResponse.JoinGroupResponseMember(
                member_id=member.member_id, group_instance_id=member.group_instance_id, metadata=member.metadata
            )
        )
        await pause()
    return JoinGroupResponse(
        error_code=answer.error_code,
        generation_id=answer.generation_id,
        protocol_type=answer.protocol_type,
        protocol_name=answer.protocol_name if version >= _NULLABLE_NAME_VERSION else answer.protocol_name or "",
        leader=answer.leader,
        skip_assignment=answer.skip_assignment,
        member_id=answer.member_id,
        members=members,
    )
