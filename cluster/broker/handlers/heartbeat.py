"""Heartbeat (12): a member is alive, and hears whether it has to join again."""

from __future__ import annotations

from typing import Any

from cluster.broker.exchange import Exchange
from cluster.broker.portions import Steps
from cluster.broker.services import Services
from cluster.coordinator.group.requests import MemberIdentity
from cluster.protocol.apis import ApiKey
from cluster.protocol.messages import response_class


def handle(services: Services, request: Any, _exchange: Exchange) -> Steps[Any]:
    member = MemberIdentity(request.member_id, request.group_instance_id, request.generation_id)
    error_code = services.groups.heartbeat(request.group_id, member)
    yield None
    return response_class(ApiKey.HEARTBEAT)(error_code=error_code)
