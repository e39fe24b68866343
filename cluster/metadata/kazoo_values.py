"""kazoo's values and errors, to and from those of the ``MetadataStore``. Owns the translation; knows no session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kazoo import exceptions as kazoo_errors
from kazoo.client import KazooClient, TransactionRequest

from cluster.metadata.store import (
    BadVersionError,
    Check,
    ConnectionLostError,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Operation,
    SessionExpiredError,
    SetData,
    Stat,
    StoreError,
)

#: The first that fits counts.
ERRORS: tuple[tuple[type[Exception], type[StoreError]], ...] = (
    (kazoo_errors.NoNodeError, NoNodeError),
    (kazoo_errors.NodeExistsError, NodeExistsError),
    (kazoo_errors.BadVersionError, BadVersionError),
    (kazoo_errors.NotEmptyError, NotEmptyError),
    # A subclass of kazoo's SessionExpiredError, raised also when its wake-up failed: nothing is known of the request.
    (kazoo_errors.ConnectionClosedError, ConnectionLostError),
    (kazoo_errors.SessionExpiredError, SessionExpiredError),
    (kazoo_errors.ConnectionLoss, ConnectionLostError),
    (kazoo_errors.ConnectionDropped, ConnectionLostError),
    (kazoo_errors.OperationTimeoutError, ConnectionLostError),
    (kazoo_errors.SessionMovedError, ConnectionLostError),
)


def transaction(client: KazooClient, operations: Sequence[Operation]) -> TransactionRequest:
    """All of these or none, not committed yet."""
    request = client.transaction()
    for operation in operations:
        if isinstance(operation, Create):
            request.create(operation.path, operation.data, ephemeral=operation.ephemeral)
        elif isinstance(operation, SetData):
            request.set_data(operation.path, operation.data, operation.version)
        elif isinstance(operation, Delete):
            request.delete(operation.path, operation.version)
        elif isinstance(operation, Check):
            request.check(operation.path, operation.version)
    return request


def results_of(operations: Sequence[Operation], results: Sequence[Any]) -> list[str | Stat | None]:
    """What each operation of a transaction gave. Raises the ``StoreError`` that undid it."""
    failed = [result for result in results if isinstance(result, Exception)]
    if failed:
        # The others are "rolled back" and "not tried"; one is the cause.
        others = (kazoo_errors.RolledBackError, kazoo_errors.RuntimeInconsistency)
        raise translated(next((error for error in failed if not isinstance(error, others)), failed[0]))
    return [
        str(result) if isinstance(operation, Create) else stat_of(result) if isinstance(operation, SetData) else None
        for operation, result in zip(operations, results, strict=True)
    ]


def stat_of(stat: Any) -> Stat:
    """A node's, from kazoo's ``ZnodeStat``."""
    return Stat(
        version=int(stat.version),
        created_zxid=int(stat.czxid),
        ephemeral_owner=int(stat.ephemeralOwner),
        modified_zxid=int(stat.mzxid),
    )


def translated(error: Exception) -> StoreError:
    """To be raised instead of what kazoo raised."""
    for theirs, ours in ERRORS:
        if isinstance(error, theirs):
            return ours(str(error) or type(error).__name__)
    return StoreError(f"{type(error).__name__}: {error}")
