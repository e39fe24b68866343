"""One request of a client and what became of it: the values that ``cluster.client.network`` takes and gives.

Owns these shapes, and when an answer asks the client to be slow. Does not own sending, matching or deadlines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from cluster.protocol.apis import ApiKey

#: Makes an answer of a response frame, which is valid only during the call. Raises ``ProtocolError``.
Decode = Callable[[memoryview], Any]

#: From which version on a client waits for ``throttle_time_ms`` itself (KIP-219); before, the broker has waited.
_THROTTLED_FROM = {
    ApiKey.PRODUCE: 6,
    ApiKey.FETCH: 8,
    ApiKey.LIST_OFFSETS: 3,
    ApiKey.METADATA: 6,
    ApiKey.FIND_COORDINATOR: 2,
    ApiKey.API_VERSIONS: 2,
    ApiKey.CREATE_TOPICS: 3,
    ApiKey.INIT_PRODUCER_ID: 1,
    ApiKey.ADD_PARTITIONS_TO_TXN: 1,
    ApiKey.ADD_OFFSETS_TO_TXN: 1,
    ApiKey.END_TXN: 1,
    ApiKey.TXN_OFFSET_COMMIT: 1,
}


class ClientResponse(NamedTuple):
    """What became of one request: an answer, or why there is none.

    ``context`` is what ``send`` was given. An answer is what ``decode`` made of the frame, or None for a request that
    expects no response, which was handed over to the kernel. ``is_timeout`` tells a response that is overdue from a
    connection that was lost for another reason; both leave it open whether the node has carried the request out.
    """

    node_id: int
    context: Any
    answer: Any
    failure: str | None = None
    is_timeout: bool = False


class LostConnection(NamedTuple):
    """A connection that ended, or that was not made, and why. ``was_ready``: it had come up."""

    node_id: int
    reason: str
    was_ready: bool


class Polled(NamedTuple):
    """What happened since the last poll: responses in their order, nodes that became ready, connections lost."""

    responses: list[ClientResponse]
    ready: list[int]
    lost: list[LostConnection]


class InFlightRequest:
    """What is kept of a request in flight. ``context`` None is the network client's own question for versions."""

    __slots__ = ("api_key", "context", "decode", "version")

    def __init__(self, api_key: ApiKey, version: int, decode: Decode, context: Any) -> None:
        self.api_key = api_key
        self.version = version
        self.decode = decode
        self.context = context

    def __repr__(self) -> str:
        return f"InFlightRequest({self.api_key.name} v{self.version})"

    def throttle_ms(self, answer: Any) -> int:
        """How long the node wants to be left alone after this answer."""
        throttle_ms: int = getattr(answer, "throttle_time_ms", 0)
        return throttle_ms if throttle_ms > 0 and self.version >= _THROTTLED_FROM.get(self.api_key, 0) else 0
