"""Where coordinators are not, in a way that ends a client's wait or has it ask again."""

from __future__ import annotations

from cluster.coordinator.location import not_available, refused
from cluster.protocol.errors import ErrorCode

#: What clients retry when they look for a coordinator.
RETRIED = {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}


def test_there_is_none_yet() -> None:
    """An error that everybody retries, with no broker."""
    found = not_available("why")
    assert found.error_code in RETRIED
    assert (found.message, found.broker_id, found.host, found.port) == ("why", -1, "", -1)


def test_an_unknown_kind() -> None:
    """A key type that Kafka does not have is an invalid request, and there is no broker."""
    found = refused(7)
    assert found.error_code is ErrorCode.INVALID_REQUEST
    assert (found.broker_id, found.host, found.port) == (-1, "", -1)
