"""The pure core of a client connection: correlation ids, what is in flight, deadlines, and matching of responses.

Kafka answers in the order of the requests on one connection, so what is in flight is a queue. Owns no socket and no
clock: both its shells (brokers among themselves, and the client) bring their own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from cluster.protocol.batch import INT32_MAX
from cluster.protocol.errors import ProtocolError

Context = TypeVar("Context")


class UnexpectedResponse(ProtocolError):
    """A response that no request waits for, or not this one first. The connection is of no more use."""


@dataclass(frozen=True, slots=True)
class InFlight(Generic[Context]):
    """One request that was sent. ``context`` is the shell's: a future, a callback."""

    correlation_id: int
    deadline_ms: float
    context: Context


class RequestPipeline(Generic[Context]):
    """The requests of one connection that wait for their responses, oldest first."""

    __slots__ = ("_in_flight", "_next_correlation_id")

    def __init__(self) -> None:
        self._next_correlation_id = 0
        self._in_flight: deque[InFlight[Context]] = deque()

    def __len__(self) -> int:
        return len(self._in_flight)

    def __repr__(self) -> str:
        return f"RequestPipeline({len(self)} in flight, next correlation id {self._next_correlation_id})"

    def next_correlation_id(self) -> int:
        """A fresh id, 0 to 2147483647 and around again."""
        correlation_id = self._next_correlation_id
        self._next_correlation_id = 0 if correlation_id == INT32_MAX else correlation_id + 1
        return correlation_id

    def sent(self, correlation_id: int, deadline_ms: float, context: Context) -> None:
        """A request that expects a response was handed to the connection."""
        self._in_flight.append(InFlight(correlation_id, deadline_ms, context))

    def received(self, correlation_id: int) -> InFlight[Context]:
        """The request that this response answers. Raises ``UnexpectedResponse``."""
        if not self._in_flight:
            raise UnexpectedResponse(f"response {correlation_id} while nothing is in flight")
        expected = self._in_flight[0].correlation_id
        if correlation_id != expected:
            raise UnexpectedResponse(f"response {correlation_id} while {expected} is awaited")
        return self._in_flight.popleft()

    def next_deadline_ms(self) -> float | None:
        """When the first request in flight expires; None while there is none."""
        deadline_ms: float | None = None
        for request in self._in_flight:
            if deadline_ms is None or request.deadline_ms < deadline_ms:
                deadline_ms = request.deadline_ms
        return deadline_ms

    def expired(self, now_ms: float) -> bool:
        """Whether any request waited beyond its deadline.

        Then the connection is of no more use: its response may still come, before all others.
        """
        return any(request.deadline_ms <= now_ms for request in self._in_flight)

    def drain(self) -> Iterator[InFlight[Context]]:
        """Take everything out of flight, oldest first: the connection is gone."""
        while self._in_flight:
            yield self._in_flight.popleft()
