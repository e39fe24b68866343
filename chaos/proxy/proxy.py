"""One proxy: its listener, its connections and its toxics. Owns starting, stopping, and changing toxics on open links.

Does not own which proxies exist (``registry``) or the JSON bodies of requests (``toxic``, ``request_body``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass

from chaos.proxy import addresses, errors, sockets
from chaos.proxy.connection import ClientEndpoint, ProxiedConnection, ProxyEndpoint
from chaos.proxy.pipe import PipeDirection, StreamCounters
from chaos.proxy.toxic import Toxic
from cluster.seams.randomness import Random, derive

logger = logging.getLogger(__name__)

_DROP_TIMEOUT_S = 1.0


@dataclass(slots=True)
class ConnectionCounters:
    """Connections of a proxy since it was created."""

    accepted: int = 0
    closed: int = 0
    dial_failed: int = 0


class Proxy:
    """A named pair of listen and upstream address. Calls that change it must not overlap; the registry ensures that."""

    def __init__(self, name: str, listen: str, upstream: str, seed: int, dial_timeout_ms: int) -> None:
        self.name = name
        #: as given, until the proxy is started; then the numeric address that is bound
        self.listen = listen
        self.upstream = upstream
        self.enabled = False
        self.dial_timeout_ms = dial_timeout_ms
        self.counters = ConnectionCounters()
        self._seed = seed
        self._toxics: dict[PipeDirection, list[Toxic]] = {direction: [] for direction in PipeDirection}
        self._totals = {direction: StreamCounters() for direction in PipeDirection}
        self._connections: dict[int, ProxiedConnection] = {}
        self._server: asyncio.Server | None = None
        self._reserved: sockets.BoundSocket | None = None
        self._idle = asyncio.Event()
        self._idle.set()

    def __repr__(self) -> str:
        return f"Proxy({self.name!r}, {self.listen} -> {self.upstream}, {'on' if self.enabled else 'off'})"

    def to_json(self) -> dict[str, object]:
        """The proxy as JSON, with keys in Toxiproxy's order but without its accidental ``Logger``."""
        return {
            "name": self.name,
            "listen": self.listen,
            "upstream": self.upstream,
            "enabled": self.enabled,
            "toxics": [toxic.to_json() for toxic in self.all_toxics()],
        }

    # --- starting and stopping

    async def start(self) -> None:
        """Start listening, unless already started. Raises ``ApiError`` 500 with the text that Go would have."""
        if self.enabled:
            return
        try:
            host, port = await addresses.resolve(self.listen)
        except addresses.AddressError as error:
            raise errors.system_error(f"listen tcp: {error}") from None
        listener, self._reserved = self._reserved, None
        try:
            if listener is None:
                listener = sockets.bind(host, port)
            sockets.listen(listener)
        except OSError as error:
            if listener is not None:
                listener.close()
            reason = (error.strerror or str(error)).lower()
            raise errors.system_error(f"listen tcp {addresses.join(host, port)}: bind: {reason}") from None
        self.listen = addresses.join(*sockets.address_of(listener))
        self.enabled = True
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: ClientEndpoint(self), sock=listener, backlog=sockets.LISTEN_BACKLOG
        )
        logger.info("%r started", self)

    async def stop(self, *, keep_port: bool) -> None:
        """Close the listener and every connection; toxics stay.

        With ``keep_port``, the port stays bound without a listener: connections are refused, and no outgoing connection
        of this machine can take the port before the proxy is started again.
        """
        if not self.enabled:
            if not keep_port:
                self.release_port()
            return
        self.enabled = False
        if self._server is not None:
            self._server.close()
            self._server = None
        if keep_port:
            try:
                self._reserved = sockets.bind(*addresses.split(self.listen))
            except OSError as error:
                logger.warning("proxy %s: port of %s cannot be kept: %s", self.name, self.listen, error)
        await self.drop_connections()
        logger.info("%r stopped", self)

    def release_port(self) -> None:
        """Release the port that a stopped proxy still holds."""
        if self._reserved is not None:
            self._reserved.close()
            self._reserved = None

    async def change_upstream(self, upstream: str) -> None:
        """Send new connections to another upstream and abort the existing ones. The listener stays."""
        self.upstream = upstream
        await self.drop_connections()

    async def drop_connections(self) -> None:
        """Abort every connection and wait until their sockets are closed."""
        for connection in list(self._connections.values()):
            connection.abort()
        try:
            async with asyncio.timeout(_DROP_TIMEOUT_S):
                await self._idle.wait()
        except TimeoutError:
            logger.warning("%r: connections linger after they were aborted: %s", self, self._connections)

    # --- toxics: when a call returns, every open link has the change

    def all_toxics(self) -> list[Toxic]:
        """All toxics: upstream first, then downstream, each in the order of the chain."""
        return [toxic for direction in PipeDirection for toxic in self._toxics[direction]]

    def toxic(self, name: str) -> Toxic:
        """The toxic with this name. Raises ``ApiError`` 404."""
        for toxic in self.all_toxics():
            if toxic.name == name:
                return toxic
        raise errors.toxic_not_found()

    def add_toxic(self, toxic: Toxic) -> None:
        self._toxics[toxic.direction].append(toxic)
        for connection in self._open_connections():
            connection.links[toxic.direction].add(toxic)

    def toxic_updated(self, toxic: Toxic) -> None:
        for connection in self._open_connections():
            connection.links[toxic.direction].update(toxic)

    def remove_toxic(self, toxic: Toxic) -> None:
        self._toxics[toxic.direction].remove(toxic)
        for connection in self._open_connections():
            connection.links[toxic.direction].remove(toxic)

    def remove_all_toxics(self) -> None:
        for toxic in self.all_toxics():
            self.remove_toxic(toxic)

    def _open_connections(self) -> list[ProxiedConnection]:
        return [connection for connection in self._connections.values() if connection.links]

    # --- for connections (ConnectionOwner)

    def toxics(self, direction: PipeDirection) -> Iterable[Toxic]:
        return self._toxics[direction]

    def random_for(self, connection_index: int, direction: PipeDirection, toxic_name: str) -> Random:
        """The random generator of a toxic on one stream of one connection: the same in every run with this seed."""
        return derive(self._seed, "toxic", self.name, connection_index, direction, toxic_name)

    def accepted(self, client: ProxyEndpoint) -> ProxiedConnection | None:
        if not self.enabled:
            return None
        index = self.counters.accepted
        self.counters.accepted += 1
        connection = ProxiedConnection(self, index, client)
        self._connections[index] = connection
        self._idle.clear()
        return connection

    def dial_failed(self, connection: ProxiedConnection) -> None:
        self.counters.dial_failed += 1

    def connection_gone(self, connection: ProxiedConnection) -> None:
        if self._connections.pop(connection.index, None) is None:
            return
        self.counters.closed += 1
        for direction, link in connection.links.items():
            self._totals[direction].add(link.counters)
        if not self._connections:
            self._idle.set()

    # --- for statistics

    def connections(self) -> list[ProxiedConnection]:
        """The connections that still exist, oldest first."""
        return list(self._connections.values())

    def stream_totals(self, direction: PipeDirection) -> tuple[StreamCounters, int]:
        """The counters of a stream over all connections, past and current, and the bytes that are held now."""
        total = StreamCounters()
        total.add(self._totals[direction])
        held_bytes = 0
        for connection in self._open_connections():
            link = connection.links[direction]
            total.add(link.counters)
            held_bytes += link.held_bytes
        return total, held_bytes
