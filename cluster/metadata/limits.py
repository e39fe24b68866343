"""How large a node and a request may be, so that ZooKeeper takes them.

Owns the two numbers and the checks against them. A ZooKeeper server closes the connection of a client whose request is
longer than ``jute.maxbuffer``, and says no more: to the client it looks like a broken link, and the same request sent
again breaks the next one too. So what is too large is refused before it is sent.
"""

from __future__ import annotations

from collections.abc import Sequence

from cluster.metadata.store import Create, Operation, SetData, TooLargeError

#: ZooKeeper's own default of ``jute.maxbuffer``.
MAX_REQUEST_BYTES = 1_048_575
#: No node of ours grows beyond this. The rest of the largest request is for the nodes that are written with it.
MAX_NODE_BYTES = 786_432
#: More than the fixed fields of one operation: types, lengths, version, access list.
_OPERATION_BYTES = 64


def request_bytes(operations: Sequence[Operation]) -> int:
    """How long the request for these operations is, at most."""
    size = _OPERATION_BYTES
    for operation in operations:
        size += _OPERATION_BYTES + len(operation.path)
        if isinstance(operation, Create | SetData):
            size += len(operation.data)
    return size


def check_request(operations: Sequence[Operation]) -> None:
    """Raises TooLargeError for a request that ZooKeeper would not answer."""
    size = request_bytes(operations)
    if size > MAX_REQUEST_BYTES:
        raise TooLargeError(
            f"a request of {size} bytes about {operations[-1].path}: ZooKeeper takes {MAX_REQUEST_BYTES}"
        )


def check_growth(path: str, data: bytes, before_bytes: int = 0) -> None:
    """Raises TooLargeError for a node that is too large and larger than before: what shrinks is always welcome."""
    if len(data) > MAX_NODE_BYTES and len(data) > before_bytes:
        raise TooLargeError(f"{path} would be {len(data)} bytes, more than the {MAX_NODE_BYTES} that are allowed")
