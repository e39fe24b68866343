"""RequestsInFlight: the Produce requests that have no answer yet.

Owns their ids and the ages of their batches; when a request itself is overdue is ``cluster.client.nodes``'. Does not
own the batches' fate (``sender.py``) nor how many a node may have (``connections.py``). Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cluster.client.producer.batch import ProducerBatch


class _SentRequest:
    __slots__ = ("batches", "node", "oldest_ms")

    def __init__(self, node: int, batches: tuple[ProducerBatch, ...]) -> None:
        self.node = node
        self.batches = batches
        #: When the oldest of its batches that have not expired was made.
        self.oldest_ms: int | None = (
            batches[0].created_ms if len(batches) == 1 else min([batch.created_ms for batch in batches])
        )


class RequestsInFlight:
    """NOT thread-safe."""

    def __init__(self) -> None:
        self._requests: dict[int, _SentRequest] = {}
        self._last_id = 0

    def __repr__(self) -> str:
        return f"RequestsInFlight({len(self._requests)}, last id {self._last_id})"

    def __len__(self) -> int:
        return len(self._requests)

    def add(self, node: int, batches: Sequence[ProducerBatch]) -> tuple[int, tuple[ProducerBatch, ...]]:
        """Note a request that is sent now; returns its id and its batches."""
        self._last_id += 1
        request = self._requests[self._last_id] = _SentRequest(node, tuple(batches))
        return self._last_id, request.batches

    def end(self, request_id: int) -> tuple[ProducerBatch, ...]:
        """The batches of a request that has ended; none if it had ended before."""
        request = self._requests.pop(request_id, None)
        return () if request is None else request.batches

    def end_all(self, node: int) -> list[ProducerBatch]:
        """End every request to ``node``, in the order in which they were sent; returns their batches."""
        ended = [request_id for request_id, request in self._requests.items() if request.node == node]
        return [batch for request_id in ended for batch in self.end(request_id)]

    def batches(self) -> Iterator[ProducerBatch]:
        for request in self._requests.values():
            yield from request.batches

    def expired(self, latest_ms: int) -> list[ProducerBatch]:
        """The batches made at ``latest_ms`` or before, of the requests that have one that was not found yet."""
        found = []
        for request in self._requests.values():
            if request.oldest_ms is not None and request.oldest_ms <= latest_ms:
                found += [batch for batch in request.batches if batch.created_ms <= latest_ms]
                request.oldest_ms = min(
                    (batch.created_ms for batch in request.batches if batch.created_ms > latest_ms), default=None
                )
        return found

    def next_expiry_ms(self, delivery_timeout_ms: int) -> int | None:
        """When the next batch expires."""
        oldest_ms: int | None = None
        for request in self._requests.values():
            made_ms = request.oldest_ms
            if made_ms is not None and (oldest_ms is None or made_ms < oldest_ms):
                oldest_ms = made_ms
        return None if oldest_ms is None else oldest_ms + delivery_timeout_ms
