"""One accepted connection: the client's endpoint, the dial to the upstream, and the two links between them.

Owns the life of a connection: accepted, dialing (with a timeout), open, closed. As in Toxiproxy, there are no half-open
connections: when one side ends, its bytes are delivered, then both sides close. Does not own how bytes move (``link``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Protocol, cast

from chaos.proxy import addresses, sockets
from chaos.proxy.frames import Dialogue
from chaos.proxy.link import Link
from chaos.proxy.pipe import PipeDirection
from chaos.proxy.toxic import Toxic
from chaos.proxy.toxics.frame_types import SURPLUS
from cluster.seams.randomness import Random
from cluster.seams.units import seconds_of_ms

logger = logging.getLogger(__name__)


class ConnectionOwner(Protocol):
    """The part of a proxy that a connection uses."""

    name: str
    upstream: str
    dial_timeout_ms: int

    def toxics(self, direction: PipeDirection) -> Iterable[Toxic]: ...

    def random_for(self, connection_index: int, direction: PipeDirection, toxic_name: str) -> Random: ...

    def accepted(self, client: ProxyEndpoint) -> ProxiedConnection | None:
        """Called when a client has connected. Returns its connection, or None to refuse it."""
        ...

    def dial_failed(self, connection: ProxiedConnection) -> None: ...

    def connection_gone(self, connection: ProxiedConnection) -> None: ...


class ProxyEndpoint(asyncio.Protocol):
    """One socket of a connection: the source of one link and the sink of the other."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.lost = False
        #: the peer has sent its end, so there is nothing more to read
        self.ended = False
        #: the link that reads from this endpoint
        self.outgoing: Link | None = None
        #: the link that writes to this endpoint
        self.incoming: Link | None = None
        self._write_straight_to: asyncio.Transport | None = None

    @property
    def peer(self) -> str:
        """``host:port`` of the other side; ``-`` if not connected."""
        name = self.transport.get_extra_info("peername") if self.transport is not None else None
        return addresses.join(str(name[0]), int(name[1])) if name else "-"

    def wire(self, outgoing: Link, incoming: Link, to: ProxyEndpoint) -> None:
        """Attach the links, so that bytes can flow."""
        self.outgoing = outgoing
        self.incoming = incoming
        self._write_straight_to = to.transport

    # --- called by asyncio

    def data_received(self, data: bytes) -> None:
        link = self.outgoing
        if link is None:
            return  # the connection is aborted before it was open
        counters = link.counters
        counters.bytes_in += len(data)
        if link.fast and self._write_straight_to is not None:
            counters.bytes_out += len(data)
            link.walk.advance(data)
            self._write_straight_to.write(data)
        else:
            link.receive(data)

    def eof_received(self) -> bool:
        self.ended = True
        if self.outgoing is not None:
            self.outgoing.source_ended()
        return True  # keep the transport open: the link that writes to it decides when it closes

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        if self.incoming is not None:
            self.incoming.sink_lost()
        if self.outgoing is not None:
            self.outgoing.source_ended()

    def pause_writing(self) -> None:
        if self.incoming is not None:
            self.incoming.sink_blocked()

    def resume_writing(self) -> None:
        if self.incoming is not None:
            self.incoming.sink_ready()

    # --- called by the links

    def pause_reading(self) -> None:
        if self.transport is not None and not self.ended:
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        if self.transport is not None and not self.ended:
            self.transport.resume_reading()

    def write(self, data: bytes | memoryview) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        """Close at once. Bytes that the kernel has not taken are lost."""
        if self.transport is not None:
            self.transport.abort()

    def reset(self) -> None:
        """Close with a RST."""
        if self.transport is not None and not self.lost:
            sockets.arm_reset(self.transport)
            self.transport.abort()


class ClientEndpoint(ProxyEndpoint):
    """The client's side. Reads nothing until the upstream is connected."""

    def __init__(self, owner: ConnectionOwner) -> None:
        super().__init__()
        self._owner = owner
        self._connection: ProxiedConnection | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        # Pause reading in the next turn, not here: before Python 3.11.4, asyncio adds its reader after this call, which
        # undoes a pause. The next turn is still before the first bytes are read.
        asyncio.get_running_loop().call_soon(self._hold)
        self._connection = self._owner.accepted(self)
        if self._connection is None:
            self.transport.abort()

    def _hold(self) -> None:
        """Pause reading, unless the upstream is connected already."""
        if self.outgoing is None and self.transport is not None and not self.transport.is_closing():
            self.transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._connection is not None:
            self._connection.endpoint_lost()


class UpstreamEndpoint(ProxyEndpoint):
    """The upstream's side."""

    def __init__(self, connection: ProxiedConnection) -> None:
        super().__init__()
        self._connection = connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._connection.opened()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._connection.endpoint_lost()


class ProxiedConnection:
    """A client, its upstream, and the two links between them."""

    def __init__(self, owner: ConnectionOwner, index: int, client: ProxyEndpoint) -> None:
        self.index = index
        self.client = client
        self.client_address = client.peer
        self.upstream = UpstreamEndpoint(self)
        self.upstream_address = owner.upstream
        self.links: dict[PipeDirection, Link] = {}
        self.accepted_at = asyncio.get_running_loop().time()
        self._owner = owner
        self._dialogue = Dialogue(on_repeat=self._request_repeated)
        self._swallows_surplus = False
        self._aborted = False
        self._dialing: asyncio.Task[None] | None = asyncio.create_task(self._dial())
        # Not a finally in the task, because a task that is cancelled before its first step does not run it.
        self._dialing.add_done_callback(self._dial_ended)

    def __repr__(self) -> str:
        return f"ProxiedConnection({self._owner.name}#{self.index}, {self.client_address}, {self.state})"

    @property
    def state(self) -> str:
        """``dialing``, ``open``, or ``closing`` once one side has ended."""
        if not self.links:
            return "closing" if self._aborted else "dialing"
        ended = (self.client, self.upstream)
        return "closing" if any(endpoint.lost or endpoint.ended for endpoint in ended) else "open"

    async def _dial(self) -> None:
        try:
            host, port = addresses.split(self.upstream_address)
            async with asyncio.timeout(seconds_of_ms(self._owner.dial_timeout_ms)):
                await asyncio.get_running_loop().create_connection(
                    lambda: self.upstream, host or addresses.DEFAULT_HOST, port
                )
        except (OSError, TimeoutError, UnicodeError, addresses.AddressError) as error:
            logger.info("proxy %s: cannot reach %s: %s", self._owner.name, self.upstream_address, error)
            self._owner.dial_failed(self)
            # the client sees an orderly end, or a RST if it has sent something already
            self.client.close()

    def _dial_ended(self, _task: asyncio.Task[None]) -> None:
        self._dialing = None
        self.endpoint_lost()

    def opened(self) -> None:
        """Called when the upstream is connected. Creates the links with the current toxics and lets bytes flow."""
        if self._aborted or self.client.lost:
            self.upstream.abort()
            return
        upward = self._link(PipeDirection.UPSTREAM, self.client, self.upstream)
        downward = self._link(PipeDirection.DOWNSTREAM, self.upstream, self.client)
        self.links = {PipeDirection.UPSTREAM: upward, PipeDirection.DOWNSTREAM: downward}
        self.client.wire(upward, downward, self.upstream)
        self.upstream.wire(downward, upward, self.client)
        self.client.resume_reading()

    def _link(self, direction: PipeDirection, source: ProxyEndpoint, sink: ProxyEndpoint) -> Link:
        def random_for(toxic_name: str) -> Random:
            return self._owner.random_for(self.index, direction, toxic_name)

        return Link(direction, source, sink, self._owner.toxics(direction), random_for, self.reset, self._dialogue)

    def _request_repeated(self) -> None:
        """Drop second responses from now on, until the connection ends."""
        if not self._swallows_surplus:
            self._swallows_surplus = True
            name = SURPLUS.name
            self.links[PipeDirection.DOWNSTREAM].add(
                Toxic(name, SURPLUS, PipeDirection.DOWNSTREAM, PipeDirection.DOWNSTREAM)
            )

    def reset(self) -> None:
        """Send a RST to both sides."""
        self._aborted = True
        self.client.reset()
        self.upstream.reset()

    def abort(self) -> None:
        """End everything at once, including the dial."""
        self._aborted = True
        if self._dialing is not None:
            self._dialing.cancel()
        self.client.abort()
        self.upstream.abort()

    def endpoint_lost(self) -> None:
        """Tell the proxy if both endpoints are lost and the dial has ended."""
        upstream_gone = self.upstream.lost or self.upstream.transport is None
        if self.client.lost and upstream_gone and self._dialing is None:
            self._owner.connection_gone(self)
