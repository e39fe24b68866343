"""Where the coordinator of a group or a transactional id is: what FindCoordinator may answer.

Owns the shape of that answer and its errors. Does not own which broker coordinates a group: the leader of its partition
of ``__consumer_offsets`` does. Until there is one, COORDINATOR_NOT_AVAILABLE has every client ask again.

Transactions are not served, and that error would have clients ask forever. They get CLUSTER_AUTHORIZATION_FAILED, which
ends the wait of kafka-python, aiokafka, librdkafka and Java's client: of all errors librdkafka ends with this one and
TRANSACTIONAL_ID_AUTHORIZATION_FAILED alone, and Java's client and kafka-python show more with this one.
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


def refused(key_type: int, key: str) -> Location:
    """There never is a coordinator for ``key``, which is not a group's."""
    if key_type != CoordinatorType.TRANSACTION:
        return Location(ErrorCode.INVALID_REQUEST, f"coordinator type {key_type}")
    return Location(
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        f"gapless does not serve transactions, so {key!r} has no coordinator: leave transactional.id unset",
    )
