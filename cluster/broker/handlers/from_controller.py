"""What the controller sends to this broker: LeaderAndIsr (4), StopReplica (5) and UpdateMetadata (6).

Owns the fence in front of all three, and who handles which. They come over the brokers' listener, or, from a controller
in this very process, through ``deliver``; one at a time in either case.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from cluster.broker.handlers import leader_and_isr, stop_replica, update_metadata
from cluster.broker.services import Services
from cluster.protocol.apis import ApiKey
from cluster.protocol.message_classes import Message

FROM_CONTROLLER: dict[ApiKey, Callable[[Services, Any], Awaitable[Message]]] = {
    ApiKey.LEADER_AND_ISR: leader_and_isr.handle,
    ApiKey.STOP_REPLICA: stop_replica.handle,
    ApiKey.UPDATE_METADATA: update_metadata.handle,
}


async def deliver(services: Services, request: Message) -> Message:
    """Handle any of the three, as if it had come by a connection."""
    return await FROM_CONTROLLER[ApiKey(request.API_KEY)](services, request)
