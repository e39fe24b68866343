"""What the controller sends to this broker: LeaderAndIsr (4), StopReplica (5) and UpdateMetadata (6).

Owns who handles which of the three. They come over the brokers' listener, or, from a controller in this very process,
through ``deliver``; one at a time in either case. Does not own the fence in front of them (``control_fence``).
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar, cast

from cluster.broker.exchange import Exchange
from cluster.broker.handlers import leader_and_isr, stop_replica, update_metadata
from cluster.broker.services import Services
from cluster.protocol.message_classes import (
    LeaderAndIsrRequest,
    Message,
    Request,
    StopReplicaRequest,
    UpdateMetadataRequest,
)

_Answer = TypeVar("_Answer")

FROM_CONTROLLER: tuple[type[Request[Message]], ...] = (LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest)


def obey(services: Services, request: Message, _exchange: Exchange) -> Awaitable[Message]:
    """Handle any of the three."""
    return _handled(services, request)


async def deliver(services: Services, request: Request[_Answer]) -> _Answer:
    """The same, as if the request had come by a connection."""
    # Each handler answers what its request names.
    return cast(_Answer, await _handled(services, request))


def _handled(services: Services, request: Message) -> Awaitable[Message]:
    if isinstance(request, LeaderAndIsrRequest):
        return leader_and_isr.handle(services, request)
    if isinstance(request, StopReplicaRequest):
        return stop_replica.handle(services, request)
    if isinstance(request, UpdateMetadataRequest):
        return update_metadata.handle(services, request)
    raise TypeError(f"no controller sends a {type(request).__name__}")
