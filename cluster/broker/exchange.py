"""One request on its way to its answer, and an API as a listener serves it.

Owns what a handler may do with a request: answer it, skip or refuse it, or let it wait. Does not own the order of
answers nor the connection (``server``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from cluster.broker.lane import Slot
from cluster.broker.metrics import Counters
from cluster.broker.request_metrics import ApiMetrics
from cluster.protocol.apis import ApiKey
from cluster.seams.storage import Payload

#: What a fetch that waits keeps for each of its partitions: what was asked, what was found, and its places in queues.
PARKED_BYTES = 600


class ClientGone(Exception):
    """No one is there for the answer of a request that changes nothing, and of which nothing was done yet."""


class Parked(Protocol):
    """A request that waits although its connection could be answered at once (a fetch, until there are bytes)."""

    def finish_now(self) -> None: ...

    def abandon(self) -> None: ...


class Waiting(Protocol):
    """A request that waits for other brokers, whatever follows it on its connection (a produce, for followers)."""

    @property
    def size_bytes(self) -> int:
        """The memory of what it keeps, about."""
        ...

    def finish_now(self) -> None:
        """Answer with what is known."""
        ...

    def abandon(self) -> None:
        """No one wants the answer anymore. What was asked may still come about."""
        ...


class Asking(Protocol):
    """The connection that a request came on, as the request sees it."""

    parked: Parked | None

    @property
    def listener(self) -> str: ...

    @property
    def ip(self) -> str: ...

    @property
    def counters(self) -> Counters: ...

    def is_gone(self) -> bool: ...

    def exchange_ended(self, ended: Exchange) -> None: ...

    def keep(self, exchange: Exchange, size_bytes: int) -> None: ...

    def wait(self, exchange: Exchange, waiting: Waiting) -> None: ...

    def end(self, reason: str) -> None: ...

    def run(self, exchange: Exchange, work: Awaitable[Sequence[Payload] | None]) -> None: ...

    def finish(self, exchange: Exchange, work: Awaitable[None]) -> None: ...

    def release_request(self) -> None: ...


class Exchange:
    """One request on its way to its answer. Exactly one of ``respond``, ``skip`` and ``refuse`` ends it."""

    __slots__ = (
        "answered_ns",
        "api_version",
        "client_id",
        "connection",
        "correlation_id",
        "handled_ns",
        "is_ended",
        "is_sent",
        "kept_bytes",
        "metrics",
        "parts",
        "slot",
        "started_ns",
        "waiting",
    )

    def __init__(
        self,
        connection: Asking,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        metrics: ApiMetrics,
        started_ns: int,
    ) -> None:
        self.connection = connection
        self.metrics = metrics
        self.started_ns = started_ns
        # Of a request that is not answered at once: when its handler returned, and when its answer was there.
        self.handled_ns = 0
        self.answered_ns = 0
        self.is_sent = False
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.parts: Sequence[Payload] | None = None
        self.is_ended = False
        #: What it counts for among what its connection keeps (``backlog``).
        self.kept_bytes = 0
        self.waiting: Waiting | None = None
        #: Its slot in the lane of large requests.
        self.slot: Slot | None = None

    def __repr__(self) -> str:
        return f"<Exchange {self.correlation_id} of {self.connection!r}>"

    @property
    def listener(self) -> str:
        return self.connection.listener

    @property
    def client_host(self) -> str:
        """As Kafka tells it of members of groups."""
        return f"/{self.connection.ip}"

    def respond(self, parts: Sequence[Payload]) -> None:
        """The answer, with its header; it leaves when all earlier answers have left."""
        self.parts = parts
        self.is_ended = True
        if self.handled_ns:
            self.answered_ns = self.connection.counters.now_ns()
        self.connection.exchange_ended(self)

    def note_times(self) -> None:
        """The answer, which was not there when the handler returned, is on its way now."""
        now_ns = self.connection.counters.now_ns()
        self.metrics.delayed(self.started_ns, self.handled_ns, self.answered_ns or self.handled_ns, now_ns)

    def skip(self) -> None:
        """There is no answer (acks=0)."""
        self.is_ended = True
        self.connection.exchange_ended(self)

    def refuse(self, reason: str) -> None:
        """Close the connection instead of answering. The caller has logged why."""
        self.connection.end(reason)

    def park(self, parked: Parked, partitions: int) -> None:
        """The answer waits for something; a further request on this connection makes it wait no more."""
        self.connection.parked = parked
        self.connection.keep(self, partitions * PARKED_BYTES)

    def wait(self, waiting: Waiting) -> None:
        """The answer waits for other brokers, and ``waiting`` gives it. It is abandoned if the connection closes."""
        self.connection.wait(self, waiting)

    def let_go(self) -> None:
        """Its handler keeps nothing of the request from now on, however long it waits for its answer."""
        self.connection.release_request()
        if self.slot is not None:
            self.slot.leave()

    def finish(self, work: Awaitable[None]) -> None:
        """What was parked is over, and ``work`` will end this. What follows on the connection begins meanwhile."""
        self.connection.finish(self, work)

    def later(self, work: Awaitable[Sequence[Payload] | None]) -> None:
        """``work`` returns the answer, or ends this itself and returns None. Nothing else of this connection is taken
        meanwhile: order is kept."""
        self.connection.run(self, work)


@dataclass(frozen=True, slots=True)
class Api:
    """One API as served on a listener: the versions that are accepted, and who handles a request's body.

    The body is a view that is valid only during the call.
    """

    key: ApiKey
    min_version: int
    max_version: int
    handle: Callable[[Exchange, memoryview], None]
