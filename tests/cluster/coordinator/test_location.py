"""Where coordinators are: nowhere, in a way that ends a client's wait."""

from __future__ import annotations

import pytest

from cluster.coordinator.location import CoordinatorType, locate
from cluster.protocol.errors import ErrorCode

#: What clients retry when they look for a coordinator.
RETRIED = {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}


@pytest.mark.parametrize(
    ("kind", "absent"),
    [(CoordinatorType.GROUP, "consumer groups"), (CoordinatorType.TRANSACTION, "transactions")],
)
def test_there_is_none(kind: CoordinatorType, absent: str) -> None:
    """An error that nobody retries, with what is not served, for whom, and no broker."""
    found = locate(kind, "k")
    assert found.error_code not in RETRIED
    assert (found.broker_id, found.host, found.port) == (-1, "", -1)
    assert found.message is not None
    assert absent in found.message and "'k'" in found.message


def test_an_unknown_kind() -> None:
    """A key type that Kafka does not have is an invalid request."""
    assert locate(7, "k").error_code is ErrorCode.INVALID_REQUEST
