"""The relay before each link of a foreign cluster's clients: frames in, frames out, addresses rewritten.

Client -> relay -> link (the proxy, with its toxics) -> broker. Owns the two connections of each client and that one
ends with the other. What is rewritten is ``chaos.rewriting.rewriter``'s; what is broken is the proxy's, which sees the
same frames as the broker.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from chaos.rewriting.rewriter import AddressRewriter, ToldAddress
from cluster.protocol.errors import ProtocolError
from cluster.seams.transport import Connection, Listener, Transport

logger = logging.getLogger(__name__)

HOST = "127.0.0.1"
DIAL_TIMEOUT_MS = 10_000
#: What may wait for one side before the other is no longer read.
MOST_QUEUED_BYTES = 8 << 20
#: Between two looks at what still waits.
_DRAIN_S = 0.01

Rewriting = Callable[[], AddressRewriter]


class Relay:
    """One listener before one link. ``upstream`` is where the link listens."""

    def __init__(self, name: str, upstream: ToldAddress, rewriting: Rewriting, transport: Transport) -> None:
        self._name = name
        self._upstream = upstream
        self._rewriting = rewriting
        self._transport = transport
        self._bound: Listener | None = None
        self._pairs: set[Pair] = set()

    def __repr__(self) -> str:
        return f"Relay({self._name} -> {self._upstream.host}:{self._upstream.port}, {len(self._pairs)} connections)"

    async def start(self) -> int:
        """Listen; the port. Raises ``OSError``."""
        self._bound = await self._transport.listen(HOST, 0, self._accept)
        return self._bound.port

    async def stop(self) -> None:
        """Stop listening, and end every connection."""
        if self._bound is not None:
            await self._bound.close()
        for pair in list(self._pairs):
            pair.end("the relay stops")

    def _accept(self, client: Connection) -> _Side:
        pair = Pair(self._name, client, self._rewriting(), self._pairs.discard)
        self._pairs.add(pair)
        pair.dial(self._transport, self._upstream)
        return pair.client_side


class Pair:
    """A client's connection and the one to the link, which live and end together."""

    def __init__(
        self, name: str, client: Connection, rewriter: AddressRewriter, on_end: Callable[[Pair], None]
    ) -> None:
        self._name = name
        self._rewriter = rewriter
        self._on_end = on_end
        self._client: Connection = client
        self._broker: Connection | None = None
        self._ended = False
        self.client_side = _Side(self.from_client, self)
        self._broker_side = _Side(self.from_broker, self)
        self._dialing: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"Pair({self._name}, {self._client.peer}, ended={self._ended})"

    def dial(self, transport: Transport, upstream: ToldAddress) -> None:
        """Connect to the link; the client is not read before."""
        self._client.pause_reading()
        self._dialing = asyncio.create_task(self._dial(transport, upstream))

    async def _dial(self, transport: Transport, upstream: ToldAddress) -> None:
        def attach(connection: Connection) -> _Side:
            self._broker = connection
            return self._broker_side

        try:
            await transport.connect(upstream.host, upstream.port, attach, timeout_ms=DIAL_TIMEOUT_MS)
        except (OSError, TimeoutError) as error:
            self.end(f"the link cannot be reached: {error}")
            return
        if self._ended and self._broker is not None:
            self._broker.abort()
        else:
            self._client.resume_reading()

    def from_client(self, frame: memoryview) -> None:
        """A request."""
        if self._broker is None:
            raise ProtocolError("a request before the link was there")
        answer = self._rewriter.request(frame)
        if answer is not None:
            self._client.send_frame((answer,))
        else:
            self._pass(self._broker, bytes(frame), self._client)

    def from_broker(self, frame: memoryview) -> None:
        """An answer."""
        rewritten = self._rewriter.response(frame)
        self._pass(self._client, bytes(frame) if rewritten is None else rewritten, self._broker)

    def _pass(self, sink: Connection, frame: bytes, source: Connection | None) -> None:
        sink.send_frame((frame,))
        if source is not None and sink.queued_bytes > MOST_QUEUED_BYTES:
            source.pause_reading()
            self._resume_later(sink, source)

    def _resume_later(self, sink: Connection, source: Connection) -> None:
        if self._ended:
            return
        if sink.queued_bytes > MOST_QUEUED_BYTES // 2:
            asyncio.get_running_loop().call_later(_DRAIN_S, self._resume_later, sink, source)
        else:
            source.resume_reading()

    def end(self, reason: str) -> None:
        """Both connections end; what was passed on is still delivered. A second call does nothing."""
        if self._ended:
            return
        self._ended = True
        logger.debug("%r ends: %s", self, reason)
        if self._dialing is not None and self._broker is None:
            self._dialing.cancel()
        for each in (self._client, self._broker):
            if each is not None:
                each.close()
        self._on_end(self)


class _Side:
    """What one connection of a pair is told."""

    def __init__(self, taken: Callable[[memoryview], None], pair: Pair) -> None:
        self._taken = taken
        self._pair = pair

    def on_frame(self, frame: memoryview) -> None:
        self._taken(frame)

    def on_eof(self) -> None:
        self._pair.end("closed by its other end")

    def on_closed(self, reason: str) -> None:
        self._pair.end(reason)


class Relays:
    """The relays of a run: one for each link, all with the book of their group of clients."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._relays: list[Relay] = []
        self._strangers: set[int] = set()

    def __repr__(self) -> str:
        return f"Relays({len(self._relays)} relays)"

    async def start(self, links: Mapping[str, Mapping[int, ToldAddress]]) -> dict[str, dict[int, int]]:
        """Listen before each link of each group, ``{group: {broker: link}}``; the ports, likewise."""
        ports: dict[str, dict[int, int]] = {}
        for group, brokers in links.items():
            book: dict[int, ToldAddress] = {}
            ports[group] = {}
            for broker, upstream in brokers.items():
                relay = Relay(f"{group}-b{broker}", upstream, self._rewriting(book), self._transport)
                ports[group][broker] = await relay.start()
                book[broker] = ToldAddress(HOST, ports[group][broker])
                self._relays.append(relay)
        return ports

    async def stop(self) -> None:
        """End all of them."""
        for relay in self._relays:
            await relay.stop()

    def _rewriting(self, book: Mapping[int, ToldAddress]) -> Rewriting:
        return lambda: AddressRewriter(book, self._stranger)

    def _stranger(self, broker_id: int) -> None:
        """Said once of each: an error in this log makes the run unknown (docs/target.md)."""
        if broker_id not in self._strangers:
            self._strangers.add(broker_id)
            logger.error("broker %d joined the cluster during the run: no link leads there", broker_id)
