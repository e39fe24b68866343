"""Where the coordinator of a group or a transactional id is.

Owns the answer to FindCoordinator. There are no coordinators yet, and Kafka has an answer for that which clients
understand and retry: COORDINATOR_NOT_AVAILABLE, with no broker (Kafka's KafkaApis).
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


def locate(key_type: int, key: str) -> Location:
    """The coordinator for ``key``."""
    try:
        kind = CoordinatorType(key_type)
    except ValueError:
        return Location(ErrorCode.INVALID_REQUEST, f"coordinator type {key_type}")
    return Location(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"there is no {kind.name.lower()} coordinator for {key!r}")
