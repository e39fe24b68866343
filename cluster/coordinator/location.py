"""Where the coordinator of a group or a transactional id is: what FindCoordinator may answer.

Owns the shape of that answer and its errors. Does not own which broker coordinates: the leader of the partition of
``__consumer_offsets`` or ``__transaction_state`` does. Until there is one, COORDINATOR_NOT_AVAILABLE has every client
ask again.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from cluster.protocol.errors import ErrorCode


class CoordinatorType(IntEnum):
    """``key_type`` of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1


class Location(NamedTuple):
    """A broker, or an error with the broker id -1, no host and the port -1."""

    error_code: ErrorCode
    message: str | None = None
    broker_id: int = -1
    host: str = ""
    port: int = -1


def not_available(message: str) -> Location:
    """There is no coordinator yet: ask again."""
    return Location(ErrorCode.COORDINATOR_NOT_AVAILABLE, message)


def refused(key_type: int) -> Location:
    """There are no coordinators of that type."""
    return Location(ErrorCode.INVALID_REQUEST, f"coordinator type {key_type}")
