"""Where the coordinator of a group or a transactional id is: nowhere, since groups and transactions are not served.

Owns the answer to FindCoordinator. COORDINATOR_NOT_AVAILABLE would be retried by every client forever, so each kind
has an error that ends the wait of kafka-python, aiokafka, librdkafka and Java's client:

- a group: INVALID_REQUEST, whose standard text ("... was sent to an incompatible broker. See the broker logs for more
  details") sends those who do not show the message to the log. librdkafka hands it to the application with the message,
  once, and continues reading what is assigned.
- a transactional id: CLUSTER_AUTHORIZATION_FAILED. Of all errors librdkafka ends with this one and
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


#: Error, what is not served, and what to do instead.
_ABSENT = {
    CoordinatorType.GROUP: (
        ErrorCode.INVALID_REQUEST,
        "consumer groups",
        "assign partitions and offsets instead (reading assigned ones continues)",
    ),
    CoordinatorType.TRANSACTION: (
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        "transactions",
        "leave transactional.id unset",
    ),
}


def locate(key_type: int, key: str) -> Location:
    """The coordinator for ``key``."""
    try:
        error_code, absent, instead = _ABSENT[CoordinatorType(key_type)]
    except ValueError:
        return Location(ErrorCode.INVALID_REQUEST, f"coordinator type {key_type}")
    return Location(error_code, f"gapless does not serve {absent}, so {key!r} has no coordinator: {instead}")
