"""TxnRequestQueue: the requests that wait, in the order of their priority, and the one that is in flight.

Owns that there is one at a time, and the pauses before it is repeated. Does not own which requests are due, nor what
answers mean. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cluster.client.producer.transaction.calls import TxnCall
from cluster.client.producer.transaction.txn_requests import TxnRequest


@dataclass(slots=True)
class QueuedTxnRequest:
    """A request with the call that waits for it. ``number`` is its place among all that were ever added."""

    request: TxnRequest
    call: TxnCall | None
    number: int
    failures: int = 0
    ready_at_ms: int = 0


class TxnRequestQueue:
    """NOT thread-safe. ``backoff_ms`` gives the pause by the number of failures before the last one."""

    def __init__(self, backoff_ms: Callable[[int], int]) -> None:
        self._backoff_ms = backoff_ms
        self._waiting: list[QueuedTxnRequest] = []
        self._added = 0
        self._sent = 0
        #: The request whose answer is waited for.
        self.in_flight: QueuedTxnRequest | None = None

    def __repr__(self) -> str:
        kinds = ", ".join(type(each.request).__name__ for each in self.waiting)
        flying = "nothing" if self.in_flight is None else type(self.in_flight.request).__name__
        return f"TxnRequestQueue({flying} in flight, waiting: {kinds or 'nothing'})"

    @property
    def waiting(self) -> tuple[QueuedTxnRequest, ...]:
        """In the order in which they are sent."""
        return tuple(sorted(self._waiting, key=_place))

    @property
    def first(self) -> QueuedTxnRequest | None:
        """What is sent next."""
        return min(self._waiting, key=_place, default=None)

    def has(self, kind: type[TxnRequest]) -> bool:
        """Whether a request of this kind waits."""
        return any(isinstance(each.request, kind) for each in self._waiting)

    def add(self, request: TxnRequest, call: TxnCall | None = None) -> None:
        """Another request is due; ``call`` has its outcome."""
        self._added += 1
        self._waiting.append(QueuedTxnRequest(request, call, self._added))

    def send(self, queued: QueuedTxnRequest) -> int:
        """The first one goes; returns the number by which its answer is known."""
        self._waiting.remove(queued)
        self.in_flight = queued
        self._sent += 1
        return self._sent

    def end(self, request_id: int) -> QueuedTxnRequest | None:
        """The request in flight has its answer; None if that of another one came."""
        if request_id != self._sent:
            return None
        ended, self.in_flight = self.in_flight, None
        return ended

    def again(self, queued: QueuedTxnRequest, now_ms: int, longest_ms: int | None = None) -> None:
        """It is to be repeated after a pause, of at most ``longest_ms``."""
        pause_ms = self._backoff_ms(queued.failures)
        queued.ready_at_ms = now_ms + (pause_ms if longest_ms is None else min(pause_ms, longest_ms))
        queued.failures += 1
        self._waiting.append(queued)

    def remove(self, queued: QueuedTxnRequest) -> None:
        """It is not sent after all."""
        self._waiting.remove(queued)


def _place(queued: QueuedTxnRequest) -> tuple[int, int]:
    return queued.request.priority, queued.number
