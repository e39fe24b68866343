"""MemoryTransport: the Transport seam inside one process, on whatever loop is running, real or virtual.

Owns an in-memory network: who listens where, and who connects to whom. Does not own how things travel
(``memory_wires``) nor what is delivered and how a connection ends (``memory_connection``). It does not model bytes:
nothing is ever split, and a cut never falls inside a frame.

What a node hears it hears in the context (``contextvars``) in which it listened or connected, no matter who sent it: so
a loop can tell whose a callback is, and let one node stand still while its peers' frames wait at its door.
"""

from __future__ import annotations

import asyncio
from contextvars import Context, copy_context

from cluster.seams.memory_connection import MemoryConnection
from cluster.seams.memory_wires import Delay, MemoryWires, no_delay
from cluster.seams.transport import MAX_FRAME_BYTES, AcceptHandler
from cluster.seams.units import seconds_of_ms

_FIRST_PORT = 40_000


class MemoryNetwork(MemoryWires):
    """What all transports of one simulation share."""

    def __init__(self, delay: Delay = no_delay) -> None:
        super().__init__(delay)
        self._listeners: dict[tuple[str, int], MemoryListener] = {}
        self._next_port = _FIRST_PORT

    def transport(self, node: str) -> MemoryTransport:
        """The network as seen from one node."""
        return MemoryTransport(self, node)

    def bind(self, host: str, port: int, listener: MemoryListener) -> int:
        if port == 0:
            port = self._next_port
            self._next_port += 1
        if (host, port) in self._listeners:
            raise OSError(f"{host}:{port} is taken")
        self._listeners[host, port] = listener
        return port

    def unbind(self, host: str, port: int, listener: MemoryListener) -> None:
        """Free the address, unless another listener has it by now."""
        if self._listeners.get((host, port)) is listener:
            del self._listeners[host, port]

    def listener(self, host: str, port: int) -> MemoryListener:
        try:
            return self._listeners[host, port]
        except KeyError:
            raise ConnectionRefusedError(f"nothing listens on {host}:{port}") from None


class MemoryListener:
    """One listening address."""

    def __init__(
        self, transport: MemoryTransport, host: str, port: int, accept: AcceptHandler, max_frame_bytes: int
    ) -> None:
        self._transport = transport
        self._context = copy_context()
        self._host = host
        self._accept = accept
        self._max_frame_bytes = max_frame_bytes
        self._connections: list[MemoryConnection] = []
        self._port = transport.network.bind(host, port, self)

    def __repr__(self) -> str:
        return f"MemoryListener({self._host}:{self._port} on {self.node})"

    @property
    def port(self) -> int:
        return self._port

    @property
    def node(self) -> str:
        return self._transport.node

    async def close(self) -> None:
        self.unbind()
        for connection in self._connections:
            connection.abort()
        # The aborted ends are told in the next turn of the loop.
        await asyncio.sleep(0)

    def unbind(self) -> None:
        self._transport.network.unbind(self._host, self._port, self)

    def admit(self, opener: MemoryConnection, from_node: str) -> MemoryConnection:
        """Open the accepting end of a connection: it is there at once, its handler when this node has its turn."""
        accepted = self._transport.end(from_node, from_node, self._max_frame_bytes, self._context)
        self._connections = [connection for connection in self._connections if not connection.is_gone]
        self._connections.append(accepted)
        accepted.join(opener)
        asyncio.get_running_loop().call_soon(accepted.open, self._accept, context=self._context)
        return accepted


class MemoryTransport:
    """The network as seen from one node, in one life of its process."""

    def __init__(self, network: MemoryNetwork, node: str) -> None:
        self.network = network
        self.node = node
        self._listeners: list[MemoryListener] = []
        self._connections: list[MemoryConnection] = []
        self._is_dead = False

    def __repr__(self) -> str:
        return f"MemoryTransport({self.node}{', dead' if self._is_dead else ''})"

    def kill(self) -> None:
        """End the process without a word: its ports are free, its peers see their connections end, and whatever it
        still does reaches no one."""
        self._is_dead = True
        for listener in self._listeners:
            listener.unbind()
        for connection in self._connections:
            connection.vanish()

    async def listen(
        self,
        host: str,
        port: int,
        accept: AcceptHandler,
        *,
        max_frame_bytes: int = MAX_FRAME_BYTES,
        send_buffer_bytes: int = -1,
        queued_max_bytes: int = -1,
        unread_max_bytes: int = -1,
        is_for_peers: bool = False,
    ) -> MemoryListener:
        listener = MemoryListener(self, host, port, accept, max_frame_bytes)
        self._listeners.append(listener)
        return listener

    async def connect(
        self, host: str, port: int, accept: AcceptHandler, *, timeout_ms: int, max_frame_bytes: int = MAX_FRAME_BYTES
    ) -> MemoryConnection:
        async with asyncio.timeout(seconds_of_ms(timeout_ms)):
            self._check_alive()
            destination = self.network.listener(host, port).node
            # One round trip, which a cut in either direction stops.
            await self.network.travel(self.node, destination)
            await self.network.travel(destination, self.node)
        self._check_alive()
        listener = self.network.listener(host, port)
        opener = self.end(destination, f"{host}:{port}", max_frame_bytes, copy_context())
        accepted = listener.admit(opener, self.node)
        opener.join(accepted)
        try:
            # The other side accepts in its own turn, unless it stands still.
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            opener.abort()
            raise
        if opener.is_gone:
            raise ConnectionResetError(f"{host}:{port} closed the connection at once")
        opener.open(accept)
        return opener

    def end(self, other_node: str, peer: str, max_frame_bytes: int, context: Context) -> MemoryConnection:
        """An end on this node, not joined to another yet."""
        connection = MemoryConnection(self.network, self.node, other_node, peer, max_frame_bytes, context)
        self._connections = [each for each in self._connections if not each.is_gone]
        self._connections.append(connection)
        return connection

    def _check_alive(self) -> None:
        if self._is_dead:
            raise ConnectionAbortedError(f"the process on {self.node} is dead")
