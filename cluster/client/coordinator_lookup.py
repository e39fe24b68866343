"""FindCoordinator as a client asks it and reads it. Owns the request and its answer, for groups and transactions alike.

Does not own who is asked, nor when it is asked again.
"""

from __future__ import annotations

from typing import NamedTuple

from cluster.client.cluster_view import BrokerAddress
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import FindCoordinatorRequest, FindCoordinatorResponse

#: ``key_type``: what the key is the id of.
GROUP, TRANSACTION = 0, 1


class FoundCoordinator(NamedTuple):
    """``broker`` is None with an error."""

    error_code: ErrorCode
    broker: BrokerAddress | None = None


def find_coordinator_request(key: str, key_type: int = GROUP) -> FindCoordinatorRequest:
    """For every version: from 4 on there are several keys (KIP-699)."""
    return FindCoordinatorRequest(key=key, key_type=key_type, coordinator_keys=[key])


def found_coordinator(response: FindCoordinatorResponse) -> FoundCoordinator:
    """What the answer says about the one key that was asked for."""
    found = response.coordinators[0] if response.coordinators else response
    code = ErrorCode.of(found.error_code)
    if code is not ErrorCode.NONE:
        return FoundCoordinator(code)
    return FoundCoordinator(code, BrokerAddress(found.node_id, found.host, found.port))
