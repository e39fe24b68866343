"""Where coordinators are: nowhere yet, in the way that clients understand."""

from __future__ import annotations

import pytest

from cluster.coordinator.location import CoordinatorType, locate
from cluster.protocol.errors import ErrorCode


@pytest.mark.parametrize("kind", CoordinatorType)
def test_there_is_none(kind: CoordinatorType) -> None:
    """COORDINATOR_NOT_AVAILABLE is retriable, and names no broker."""
    found = locate(kind, "k")
    assert found.error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (found.broker_id, found.host, found.port) == (-1, "", -1)


def test_an_unknown_kind() -> None:
    """A key type that Kafka does not have is an invalid request."""
    assert locate(7, "k").error_code is ErrorCode.INVALID_REQUEST
