"""Heartbeat (12): a member is alive, and hears whether it has to join again."""

from __future__ import annotations

from cluster.broker.exchange import Exchange
from cluster.broker.portions import Steps
from cluster.broker.services import Services
from cluster.coordinator.group.requests import MemberIdentity
from cluster.protocol.message_classes import HeartbeatRequest, HeartbeatResponse


def handle(services: Services, request: HeartbeatRequest, _exchange: Exchange) -> Steps[HeartbeatResponse]:
    member = MemberIdentity(request.member_id, request.group_instance_id, request.generation_id)
    error_code = services.groups.heartbeat(request.group_id, member)
    yield None
    return HeartbeatResponse(error_code=error_code)
