"""What any broker takes and only the controller serves: topics, elections, reassignments, ISRs, shutdown, producer ids.

Owns the hand-over to ``control``, which answers NOT_CONTROLLER where this broker is not it, and has the layouts: the
same request may come from this very broker, by no wire.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from cluster.broker.exchange import Exchange
from cluster.broker.services import Services
from cluster.protocol.message_classes import Request

_Answer = TypeVar("_Answer")


def serve(services: Services, request: Request[_Answer], exchange: Exchange) -> Awaitable[_Answer]:
    """Any of them. No frame of this keeps the request."""
    return services.control.serve(request, exchange.api_version, exchange.connection.is_gone, exchange.let_go)
