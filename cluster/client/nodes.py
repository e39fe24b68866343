"""The connections of a client, one to each node: their states, what is in flight, when they end or may be opened. Pure.

Owns the states (disconnected, connecting, checking versions, ready; throttled beside), the pauses before connecting
again (KIP-144), the time a connection may take (KIP-601), the requests in flight with their deadlines, and the choice
of the least loaded node: Kafka's ``ClusterConnectionStates`` and ``InFlightRequests``. Does not own sockets
(``cluster.seams.selector``), addresses (``cluster.client.client_metadata``) nor what is sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

from cluster.client.backoff import ExponentialBackoff
from cluster.client.errors import UnsupportedVersion
from cluster.client.negotiation import Windows, choose_version
from cluster.protocol.apis import ApiKey
from cluster.protocol.connection import InFlight, RequestPipeline
from cluster.seams.randomness import Random

Context = TypeVar("Context")


class NodeState(Enum):
    """How far a connection has come. Only a ready one takes requests of its users."""

    DISCONNECTED = "disconnected"
    CONNECTING = "connecting"
    CHECKING_VERSIONS = "checking versions"
    READY = "ready"


class ExpiredConnection(NamedTuple):
    """A connection that is to be closed, and why."""

    node_id: int
    reason: str


class _HeldNode(Generic[Context]):
    """One node, also between its connections: failures are counted across them."""

    __slots__ = (
        "active_ms",
        "address_index",
        "connect_timeout_ms",
        "failed_connects",
        "failures",
        "pipeline",
        "retry_ms",
        "state",
        "state_since_ms",
        "throttled_until_ms",
        "versions",
        "windows",
    )

    def __init__(self) -> None:
        self.state = NodeState.DISCONNECTED
        self.state_since_ms = 0
        self.pipeline: RequestPipeline[Context] = RequestPipeline()
        self.windows: Windows = {}
        # What was chosen of them so far.
        self.versions: dict[ApiKey, int] = {}
        # Connections that ended, were refused or took too long, since one was ready; since one was open.
        self.failures = 0
        self.failed_connects = 0
        self.address_index = 0
        self.connect_timeout_ms = 0
        self.retry_ms = 0
        self.throttled_until_ms = 0
        self.active_ms = 0

    def __repr__(self) -> str:
        return f"_HeldNode({self.state.value}, {len(self.pipeline)} in flight, {self.failures} failures)"


class Nodes(Generic[Context]):
    """NOT thread-safe: the thread that does the I/O owns it. Times are milliseconds of one monotonic clock.

    ``Context`` is what the owner keeps with a request in flight.
    """

    def __init__(
        self,
        *,
        reconnect: ExponentialBackoff,
        setup_timeout: ExponentialBackoff,
        max_in_flight: int,
        max_idle_ms: int,
        random: Random,
    ) -> None:
        """``reconnect`` and ``setup_timeout`` are ``reconnect.backoff.ms`` and ``socket.connection.setup.timeout.ms``,
        each with its longest; a negative ``max_idle_ms`` keeps idle connections forever.
        """
        self._reconnect = reconnect
        self._setup_timeout = setup_timeout
        self._max_in_flight = max_in_flight
        self._max_idle_ms = max_idle_ms
        self._random = random
        self._nodes: dict[int, _HeldNode[Context]] = {}

    def __repr__(self) -> str:
        return f"Nodes({self._nodes!r})"

    # Questions

    @property
    def known(self) -> list[int]:
        """All that were ever connected to."""
        return list(self._nodes)

    def state(self, node_id: int) -> NodeState:
        node = self._nodes.get(node_id)
        return NodeState.DISCONNECTED if node is None else node.state

    def can_send(self, node_id: int, now_ms: int) -> bool:
        """Whether the node takes a request now."""
        node = self._nodes.get(node_id)
        return (
            node is not None
            and node.state is NodeState.READY
            and len(node.pipeline) < self._max_in_flight
            and node.throttled_until_ms <= now_ms
        )

    def can_connect(self, node_id: int, now_ms: int) -> bool:
        """Whether the node is disconnected and its pause is over."""
        node = self._nodes.get(node_id)
        return node is None or (node.state is NodeState.DISCONNECTED and node.retry_ms <= now_ms)

    def delay_ms(self, node_id: int, now_ms: int) -> int | None:
        """After how many milliseconds to look again; None if an answer, or the connection, will tell."""
        node = self._nodes.get(node_id)
        if node is None:
            return 0
        if node.state is NodeState.DISCONNECTED:
            return max(0, node.retry_ms - now_ms)
        if node.state is not NodeState.READY or len(node.pipeline) >= self._max_in_flight:
            return None
        return max(0, node.throttled_until_ms - now_ms)

    def in_flight(self, node_id: int) -> int:
        node = self._nodes.get(node_id)
        return 0 if node is None else len(node.pipeline)

    def version(self, node_id: int, api_key: ApiKey) -> int:
        """The greatest version of an API that a ready node and we know. Raises ``UnsupportedVersion``."""
        if self.state(node_id) is not NodeState.READY:
            raise UnsupportedVersion(f"node {node_id} has not told its versions")
        node = self._nodes[node_id]
        version = node.versions.get(api_key)
        if version is None:
            version = node.versions[api_key] = choose_version(api_key, node.windows)
        return version

    def least_loaded(self, node_ids: Sequence[int], now_ms: int) -> int | None:
        """The node to ask what any can answer: a ready one with the fewest requests in flight, else one that is
        being connected to, else the one whose last attempt is the longest ago. None if all must be left alone now.
        """
        ready: tuple[int, int] | None = None
        coming: int | None = None
        possible: tuple[int, int] | None = None
        first = self._random.randrange(len(node_ids)) if node_ids else 0
        for node_id in (*node_ids[first:], *node_ids[:first]):
            node = self._nodes.get(node_id)
            if self.can_send(node_id, now_ms):
                load = self.in_flight(node_id)
                if load == 0:
                    return node_id
                if ready is None or load < ready[0]:
                    ready = load, node_id
            elif node is not None and node.state in (NodeState.CONNECTING, NodeState.CHECKING_VERSIONS):
                coming = node_id
            elif self.can_connect(node_id, now_ms):
                tried_ms = -1 if node is None else node.state_since_ms
                if possible is None or tried_ms < possible[0]:
                    possible = tried_ms, node_id
        if ready is not None:
            return ready[1]
        if coming is not None:
            return coming
        return None if possible is None else possible[1]

    def next_event_ms(self) -> float | None:
        """When ``expired`` will next have something to say, unless something happens before; None for never."""
        event_ms: float | None = None
        for node in self._nodes.values():
            if node.state is NodeState.CONNECTING:
                next_ms: float | None = node.state_since_ms + node.connect_timeout_ms
            else:
                next_ms = node.pipeline.next_deadline_ms()
                if next_ms is None and node.state is not NodeState.DISCONNECTED and self._max_idle_ms >= 0:
                    next_ms = node.active_ms + self._max_idle_ms
            if next_ms is not None and (event_ms is None or next_ms < event_ms):
                event_ms = next_ms
        return event_ms

    def expired(self, now_ms: int) -> Iterator[ExpiredConnection]:
        """The connections to close now: not made in time, an answer overdue, or idle for too long."""
        for node_id, node in self._nodes.items():
            if node.state is NodeState.DISCONNECTED:
                continue
            if node.state is NodeState.CONNECTING:
                if node.state_since_ms + node.connect_timeout_ms <= now_ms:
                    yield ExpiredConnection(node_id, f"not connected within {node.connect_timeout_ms} ms")
            elif node.pipeline.expired(now_ms):
                yield ExpiredConnection(node_id, "no response in time")
            elif not node.pipeline and 0 <= self._max_idle_ms <= now_ms - node.active_ms:
                yield ExpiredConnection(node_id, f"idle for {now_ms - node.active_ms} ms")

    # What happens to a connection

    def connecting(self, node_id: int, now_ms: int) -> int:
        """A connection is being opened. Returns which of the node's addresses to take, to be counted around."""
        node = self._nodes.setdefault(node_id, _HeldNode())
        node.state = NodeState.CONNECTING
        node.state_since_ms = now_ms
        node.connect_timeout_ms = self._setup_timeout.delay_ms(node.failed_connects)
        return node.address_index

    def connected(self, node_id: int, now_ms: int) -> None:
        """The connection is open; now the node is asked for its versions."""
        node = self._nodes[node_id]
        node.state = NodeState.CHECKING_VERSIONS
        node.state_since_ms = node.active_ms = now_ms
        node.failed_connects = 0

    def ready(self, node_id: int, windows: Mapping[int, tuple[int, int]], now_ms: int) -> None:
        """The node told its versions: it takes requests."""
        node = self._nodes[node_id]
        node.state = NodeState.READY
        node.state_since_ms = now_ms
        node.windows = windows
        node.versions = {}
        node.failures = 0

    def disconnected(self, node_id: int, now_ms: int) -> list[InFlight[Context]]:
        """The connection is gone, or was never made. What was in flight will not be answered: here it is, in order."""
        node = self._nodes[node_id]
        if node.state is NodeState.CONNECTING:
            node.failed_connects += 1
            node.address_index += 1
        node.state = NodeState.DISCONNECTED
        node.state_since_ms = now_ms
        node.throttled_until_ms = 0
        node.retry_ms = now_ms + self._reconnect.delay_ms(node.failures)
        node.failures += 1
        return list(node.pipeline.drain())

    def throttled(self, node_id: int, until_ms: int) -> None:
        """The node asks to be left alone until then (KIP-219)."""
        node = self._nodes[node_id]
        node.throttled_until_ms = max(node.throttled_until_ms, until_ms)

    # Requests

    def next_correlation_id(self, node_id: int) -> int:
        return self._nodes[node_id].pipeline.next_correlation_id()

    def sent(self, node_id: int, correlation_id: int, deadline_ms: int, context: Context, now_ms: int) -> None:
        """A request that expects a response was sent."""
        node = self._nodes[node_id]
        node.active_ms = now_ms
        node.pipeline.sent(correlation_id, deadline_ms, context)

    def active(self, node_id: int, now_ms: int) -> None:
        """A request that expects no response was sent."""
        self._nodes[node_id].active_ms = now_ms

    def received(self, node_id: int, correlation_id: int, now_ms: int) -> InFlight[Context]:
        """The request that a response answers. Raises ``UnexpectedResponse``: then the connection is to be closed."""
        node = self._nodes[node_id]
        node.active_ms = now_ms
        return node.pipeline.received(correlation_id)
