"""Connections: what the sender needs to know of each node: whether it takes requests, and how many are in flight.

Owns max.in.flight.requests.per.connection, throttling, and since when a node takes nothing. Does not own sockets,
nor when a connection is tried again. Pure.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from cluster.client.producer.actions import Connect


class _ConnectedNode:
    __slots__ = ("blocked_since_ms", "in_flight", "is_connected", "is_wanted", "throttled_until_ms")

    def __init__(self) -> None:
        self.is_connected = False
        self.is_wanted = False
        self.in_flight = 0
        self.throttled_until_ms = 0
        self.blocked_since_ms: int | None = None


class Connections:
    """NOT thread-safe."""

    def __init__(self, max_in_flight: int) -> None:
        self._max_in_flight = max_in_flight
        self._nodes: dict[int, _ConnectedNode] = {}

    def __repr__(self) -> str:
        return f"Connections({ {node: state.in_flight for node, state in self._nodes.items() if state.is_connected} })"

    def connected(self, node: int) -> None:
        state = self._node(node)
        state.is_connected = True
        state.is_wanted = False

    def disconnected(self, node: int) -> None:
        state = self._node(node)
        state.is_connected = state.is_wanted = False
        state.in_flight = 0

    def sent(self, node: int) -> None:
        state = self._node(node)
        state.in_flight += 1
        state.blocked_since_ms = None

    def answered(self, node: int, free_at_ms: int) -> None:
        """A request to ``node`` has ended; ``free_at_ms`` is when the broker lets us send again (KIP-219)."""
        state = self._node(node)
        state.in_flight = max(0, state.in_flight - 1)
        state.throttled_until_ms = max(state.throttled_until_ms, free_at_ms)

    def usable(self, nodes: Iterable[int], leaders: Container[int], now_ms: int) -> tuple[list[int], list[Connect]]:
        """Those of ``nodes``, which have something to be sent, that take a request now; and connections to open.

        ``leaders`` are the nodes that something is queued for, to be sent now or later: another is not blocked.
        """
        for node, state in self._nodes.items():
            if state.blocked_since_ms is not None and node not in leaders:
                state.blocked_since_ms = None
        usable: list[int] = []
        connect: list[Connect] = []
        for node in nodes:
            state = self._node(node)
            if not state.is_connected:
                connect += self.want(node)
            elif state.in_flight < self._max_in_flight and now_ms >= state.throttled_until_ms:
                usable.append(node)
                continue
            if state.blocked_since_ms is None:
                state.blocked_since_ms = now_ms
        return usable, connect

    def want(self, node: int) -> list[Connect]:
        """Ask for a connection to ``node``, unless there is one or it was asked for."""
        state = self._node(node)
        if state.is_connected or state.is_wanted:
            return []
        state.is_wanted = True
        return [Connect(node)]

    def least_loaded(self, nodes: Iterable[int]) -> int | None:
        """The connected one of ``nodes`` with the fewest requests in flight."""
        connected = [node for node in nodes if node in self._nodes and self._nodes[node].is_connected]
        return min(connected, key=lambda node: (self._nodes[node].in_flight, node), default=None)

    def is_wanted(self, nodes: Iterable[int]) -> bool:
        """Whether a connection to one of ``nodes`` is on its way."""
        return any(node in self._nodes and self._nodes[node].is_wanted for node in nodes)

    def blocked_ms(self, node: int, now_ms: int) -> int:
        """For how long there has been something for ``node`` that it does not take (partitioner.availability)."""
        state = self._nodes.get(node)
        return 0 if state is None or state.blocked_since_ms is None else now_ms - state.blocked_since_ms

    def wake_at_ms(self, now_ms: int) -> int | None:
        """When the next throttled node takes requests again."""
        wake_at_ms: int | None = None
        for state in self._nodes.values():
            if state.throttled_until_ms > now_ms and (wake_at_ms is None or state.throttled_until_ms < wake_at_ms):
                wake_at_ms = state.throttled_until_ms
        return wake_at_ms

    def _node(self, node: int) -> _ConnectedNode:
        state = self._nodes.get(node)
        if state is None:
            state = self._nodes[node] = _ConnectedNode()
        return state
