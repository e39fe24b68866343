"""MemoryTransport: the Transport seam inside one process, on whatever loop is running, real or virtual.

Owns an in-memory network: who listens where, how long each frame travels, and which directions are cut. Frames are
delivered whole and in order, each by a callback of the loop, never from inside the call that sent it. Does not model
bytes: nothing is ever split, and a cut never falls inside a frame.

What a node hears it hears in the context (``contextvars``) in which it listened or connected, whoever sent it: so a
loop can tell whose a callback is, and let one node stand still while its peers' frames wait at its door.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import Context, copy_context

from cluster.protocol.errors import ProtocolError
from cluster.protocol.framing import FrameTooLarge
from cluster.seams.storage import FileRange, Payload
from cluster.seams.transport import MAX_FRAME_BYTES, AcceptHandler, FrameHandler

log = logging.getLogger(__name__)

#: How long something of so many bytes takes from one node to another, in milliseconds.
Delay = Callable[[str, str, int], float]

_FIRST_PORT = 40_000


def no_delay(source: str, destination: str, size_bytes: int) -> float:
    """Everything arrives in the next turn of the loop."""
    return 0.0


class MemoryNetwork:
    """What all transports of one simulation share. Nodes are names; a direction is (source, destination)."""

    def __init__(self, delay: Delay = no_delay) -> None:
        self._delay = delay
        self._listeners: dict[tuple[str, int], MemoryListener] = {}
        self._next_port = _FIRST_PORT
        self._cut: dict[tuple[str, str], bool] = {}
        self._held: dict[tuple[str, str], list[tuple[Callable[[], None], Context]]] = {}
        # Dictionaries for their order: a set of objects has another one in every process.
        self._connections: dict[MemoryConnection, None] = {}

    def __repr__(self) -> str:
        cuts = ", ".join(f"{source}->{destination}" for source, destination in self._cut)
        return f"MemoryNetwork({len(self._listeners)} listeners, cut: {cuts or 'none'})"

    def cut(self, source: str, destination: str, *, lossy: bool = False) -> None:
        """Stop what goes from one node to another, until ``heal``.

        Lossless: what is sent arrives at the heal. Lossy: it is dropped, and each connection that lost something is
        closed, at both ends, at the heal.
        """
        self._cut[source, destination] = lossy

    def heal(self, source: str, destination: str) -> None:
        """Undo ``cut``: deliver what was held, in order, and close the connections that lost something."""
        self._cut.pop((source, destination), None)
        loop = asyncio.get_running_loop()
        for deliver, context in self._held.pop((source, destination), []):
            loop.call_soon(deliver, context=context)
        for connection in self._connections:
            if connection.lost_something(source, destination):
                loop.call_soon(connection.reset, "bytes were lost on the way", context=connection.context)

    def is_cut(self, source: str, destination: str) -> bool:
        return (source, destination) in self._cut

    def transport(self, node: str) -> MemoryTransport:
        """The network as seen from one node."""
        return MemoryTransport(self, node)

    def carry(
        self,
        source: str,
        destination: str,
        size_bytes: int,
        not_before: float,
        act: Callable[[], None],
        context: Context,
    ) -> float:
        """Have ``act`` called in ``context`` when something has travelled; returns when, in loop time."""
        loop = asyncio.get_running_loop()
        when = max(not_before, loop.time() + self._delay(source, destination, size_bytes) / 1000)

        def arrive() -> None:
            # A cut that began while it travelled holds it too.
            if (source, destination) in self._cut:
                self._held.setdefault((source, destination), []).append((act, context))
            else:
                act()

        loop.call_at(when, arrive, context=context)
        return when

    async def travel(self, source: str, destination: str) -> None:
        """Return when something without content has travelled from source to destination."""
        arrived = asyncio.Event()
        self.carry(source, destination, 0, 0.0, arrived.set, copy_context())
        await arrived.wait()

    def loses(self, source: str, destination: str) -> bool:
        """Whether what is sent now is dropped."""
        return self._cut.get((source, destination), False)

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
            raise ConnectionRefusedError(f"nobody listens on {host}:{port}") from None

    def opened(self, connection: MemoryConnection) -> None:
        self._connections[connection] = None

    def closed(self, connection: MemoryConnection) -> None:
        self._connections.pop(connection, None)

    def connections_of(self, transport: MemoryTransport) -> list[MemoryConnection]:
        """The open ends that a transport holds, oldest first."""
        return [connection for connection in self._connections if connection.transport is transport]


class MemoryConnection:
    """One end of a connection."""

    def __init__(
        self, transport: MemoryTransport, other_node: str, peer: str, max_frame_bytes: int, context: Context
    ) -> None:
        self.transport = transport
        self.context = context
        self._network = transport.network
        self._node = transport.node
        self._other_node = other_node
        self._peer = peer
        self._max_frame_bytes = max_frame_bytes
        self._other: MemoryConnection | None = None
        self._handler: FrameHandler | None = None
        self._inbox: deque[bytearray] = deque()
        # What travels from here, oldest first: whichever timer fires first brings the first of them.
        self._travelling: deque[Callable[[MemoryConnection], None]] = deque()
        self._in_flight_bytes = 0
        self._last_arrival = 0.0
        self._paused = False
        self._closing = False
        self._lost = False
        self._gone = False

    def __repr__(self) -> str:
        return (
            f"MemoryConnection({self._node} -> {self._other_node} {self._peer}, {self._in_flight_bytes} bytes queued)"
        )

    def join(self, other: MemoryConnection) -> None:
        """Be one end of a connection, for which nobody listens yet."""
        self._other = other
        self._network.opened(self)

    def open(self, accept: AcceptHandler) -> None:
        """Have a handler, which is given what has arrived already."""
        if not self._gone:
            self._handler = accept(self)
            asyncio.get_running_loop().call_soon(self._deliver, context=self.context)

    @property
    def peer(self) -> str:
        return self._peer

    @property
    def is_gone(self) -> bool:
        """Whether ``on_closed`` was called."""
        return self._gone

    @property
    def queued_bytes(self) -> int:
        """Bytes sent from here that the other end's handler was not given yet."""
        return self._in_flight_bytes

    def send_frame(self, parts: Sequence[Payload]) -> None:
        if self._closing or self._gone:
            return
        frame = bytearray()
        for part in parts:
            frame += part.file.pread(part.size, part.position) if isinstance(part, FileRange) else part
        if self._network.loses(self._node, self._other_node):
            self._lost = True
            return
        self._in_flight_bytes += len(frame)
        self._send(len(frame) + 4, lambda other: other._arrived(frame))

    def pause_reading(self) -> None:
        self._paused = True

    def resume_reading(self) -> None:
        if self._paused:
            self._paused = False
            asyncio.get_running_loop().call_soon(self._deliver, context=self.context)

    def close(self) -> None:
        if not self._closing and not self._gone:
            self._closing = True
            # What was sent before goes before.
            self._send(0, lambda other: other.reset("closed by the peer"))
            self._end_soon("closed by its owner")

    def abort(self) -> None:
        if not self._gone:
            self._closing = True
            self._send(0, lambda other: other.reset("aborted by the peer"))
            self._end_soon("aborted by its owner")

    def send_eof(self) -> None:
        """Half-close: send no more, still read. For tests of what a peer of real sockets may do."""
        self._send(0, lambda other: other._ended())

    def reset(self, reason: str) -> None:
        """End this end, now."""
        if self._gone:
            return
        self._gone = self._closing = True
        self._inbox.clear()
        self._network.closed(self)
        handler, self._handler = self._handler, None
        if handler is not None:
            try:
                handler.on_closed(reason)
            except Exception:
                log.exception("the handler of %s failed as its connection closed", self._peer)

    def vanish(self) -> None:
        """The process of this end is gone: nobody here is told, and the peer hears of the end."""
        if not self._gone:
            self._send(0, lambda other: other.reset("the peer is gone"))
            self._gone = self._closing = True
            self._handler = None
            self._network.closed(self)

    def lost_something(self, source: str, destination: str) -> bool:
        """Whether either direction of this connection dropped a frame between these nodes."""
        if (self._node, self._other_node) == (source, destination):
            return self._lost
        other = self._other
        return other is not None and (self._other_node, self._node) == (source, destination) and other._lost

    def _send(self, size_bytes: int, act: Callable[[MemoryConnection], None]) -> None:
        if self._other is None:
            return
        self._travelling.append(act)
        self._last_arrival = self._network.carry(
            self._node, self._other_node, size_bytes, self._last_arrival, self._bring_next, self._other.context
        )

    def _bring_next(self) -> None:
        act = self._travelling.popleft()
        if self._other is not None:
            act(self._other)

    def _end_soon(self, reason: str) -> None:
        asyncio.get_running_loop().call_soon(self.reset, reason, context=self.context)

    def _arrived(self, frame: bytearray) -> None:
        self._inbox.append(frame)
        self._deliver()

    def _deliver(self) -> None:
        while self._inbox and self._handler is not None and not (self._paused or self._closing):
            frame = self._inbox.popleft()
            if self._other is not None:
                self._other._in_flight_bytes -= len(frame)
            try:
                if len(frame) > self._max_frame_bytes:
                    raise FrameTooLarge(f"a frame of {len(frame)} bytes, the limit is {self._max_frame_bytes}")
                self._handler.on_frame(memoryview(frame))
            except ProtocolError as error:
                log.warning("closing the connection from %s: %s", self._peer, error)
                self.close()
            except Exception:
                log.exception("closing the connection from %s: its handler failed", self._peer)
                self.close()

    def _ended(self) -> None:
        if self._handler is not None and not self._closing:
            self._handler.on_eof()


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
        accepted = MemoryConnection(self._transport, from_node, from_node, self._max_frame_bytes, self._context)
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
        self._is_dead = False

    def __repr__(self) -> str:
        return f"MemoryTransport({self.node}{', dead' if self._is_dead else ''})"

    def kill(self) -> None:
        """End the process without a word: its ports are free, its peers see their connections end, and whatever it
        still does reaches nobody."""
        self._is_dead = True
        for listener in self._listeners:
            listener.unbind()
        for connection in self.network.connections_of(self):
            connection.vanish()

    async def listen(
        self, host: str, port: int, accept: AcceptHandler, *, max_frame_bytes: int = MAX_FRAME_BYTES
    ) -> MemoryListener:
        listener = MemoryListener(self, host, port, accept, max_frame_bytes)
        self._listeners.append(listener)
        return listener

    async def connect(
        self, host: str, port: int, accept: AcceptHandler, *, timeout_ms: int, max_frame_bytes: int = MAX_FRAME_BYTES
    ) -> MemoryConnection:
        async with asyncio.timeout(timeout_ms / 1000):
            self._check_alive()
            destination = self.network.listener(host, port).node
            # One round trip, which a cut in either direction stops.
            await self.network.travel(self.node, destination)
            await self.network.travel(destination, self.node)
        self._check_alive()
        listener = self.network.listener(host, port)
        opener = MemoryConnection(self, destination, f"{host}:{port}", max_frame_bytes, copy_context())
        accepted = listener.admit(opener, self.node)
        opener.join(accepted)
        # The other side accepts in its own turn, unless it stands still.
        await asyncio.sleep(0)
        if opener.is_gone:
            raise ConnectionResetError(f"{host}:{port} closed the connection at once")
        opener.open(accept)
        return opener

    def _check_alive(self) -> None:
        if self._is_dead:
            raise ConnectionAbortedError(f"the process on {self.node} is dead")
