"""A broker as another one asks it: over a connection of its own, or in process where both are the same broker.

Owns the connection, opened when it is needed and dropped when it fails; where a broker is looked for; and the order of
calls in process: a handler that was begun is never cancelled half-way, even if the controller resigns meanwhile. Does
not own retries: each call is one attempt, and says so by raising.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol, TypeVar

from cluster.broker.control.membership.session import Session
from cluster.broker.endpoints import PeerAddresses
from cluster.broker.metadata_cache import MetadataCache
from cluster.client.connection import BrokerConnection
from cluster.metadata.paths import broker_path
from cluster.metadata.store import NoNodeError
from cluster.metadata.znodes import BrokerRegistration
from cluster.protocol.message_classes import Request
from cluster.seams.transport import Transport

_Answer = TypeVar("_Answer")

#: Where the peer is now: (host, port), or None if that is not known.
Locate = Callable[[], Awaitable[tuple[str, int] | None]]


class Deliver(Protocol):
    """Handles a LeaderAndIsr, UpdateMetadata or StopReplica request and returns its response."""

    def __call__(self, request: Request[_Answer]) -> Awaitable[_Answer]: ...


class Peer(Protocol):
    """One broker, as its channel reaches it."""

    async def ask(self, message: Request[_Answer], version: int) -> _Answer:
        """Send one request and return its response. Raises OSError (TimeoutError is one) or StoreError while the
        broker is out of reach."""
        ...

    def close(self) -> None: ...


class RemotePeer:
    """Requests to one peer, pipelined on one connection."""

    def __init__(self, transport: Transport, locate: Locate, client_id: str, timeout_ms: int) -> None:
        self._transport = transport
        self._locate = locate
        self._client_id = client_id
        self._timeout_ms = timeout_ms
        self._connection: BrokerConnection | None = None
        self._opening = asyncio.Lock()
        self._opener: asyncio.Task[BrokerConnection] | None = None
        self._is_closed = False

    def __repr__(self) -> str:
        return f"RemotePeer({self._client_id}, {self._connection!r})"

    async def ask(self, message: Request[_Answer], version: int) -> _Answer:
        """Send one request and return its response. Raises OSError (ConnectionError, TimeoutError) on any failure."""
        connection = await self._connected()
        try:
            return await connection.send(message, version, self._timeout_ms)
        except OSError:
            self._drop(connection)
            raise

    def close(self) -> None:
        """For good: all calls that wait for a connection, or for a turn to open one, are refused now."""
        self._is_closed = True
        if self._opener is not None:
            self._opener.cancel()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def _connected(self) -> BrokerConnection:
        async with self._opening:
            if self._is_closed:
                raise ConnectionError("this link is closed")
            if self._connection is None or self._connection.is_closed:
                self._connection = await self._opened()
            return self._connection

    async def _opened(self) -> BrokerConnection:
        self._opener = asyncio.get_running_loop().create_task(self._open())
        try:
            connection = await self._opener
        except asyncio.CancelledError:
            waiter = asyncio.current_task()
            if waiter is not None and waiter.cancelling():
                raise
            raise ConnectionError("this link was closed") from None
        finally:
            self._opener = None
        if self._is_closed:
            connection.close()
            raise ConnectionError("this link was closed")
        return connection

    async def _open(self) -> BrokerConnection:
        address = await self._locate()
        if address is None:
            raise ConnectionError("the peer's address is not known")
        return await BrokerConnection.open(
            self._transport, *address, client_id=self._client_id, timeout_ms=self._timeout_ms
        )

    def _drop(self, connection: BrokerConnection) -> None:
        connection.close()
        if self._connection is connection:
            self._connection = None


class InProcessPeer:
    """One per broker, shared by all its controllerships, so that they cannot overtake each other."""

    def __init__(self, deliver: Deliver) -> None:
        self._deliver = deliver
        self._in_order = asyncio.Lock()
        self._running: set[asyncio.Task[object]] = set()

    def __repr__(self) -> str:
        return f"InProcessPeer({len(self._running)} running)"

    async def ask(self, message: Request[_Answer], version: int) -> _Answer:
        task = asyncio.get_running_loop().create_task(self._run(message))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    def close(self) -> None:
        """Nothing to close; running work continues."""

    async def _run(self, message: Request[_Answer]) -> _Answer:
        async with self._in_order:
            return await self._deliver(message)


class Peers:
    """Makes the links of one broker to the brokers of its cluster. ``deliver`` hands a request to this broker's own
    handlers."""

    def __init__(
        self,
        *,
        broker_id: int,
        transport: Transport,
        session: Session,
        addresses: PeerAddresses,
        cache: MetadataCache,
        timeout_ms: int,
        deliver: Deliver,
    ) -> None:
        self._broker_id = broker_id
        self._transport = transport
        self._session = session
        self._addresses = addresses
        self._cache = cache
        self._timeout_ms = timeout_ms
        self._local = InProcessPeer(deliver)

    def __repr__(self) -> str:
        return f"Peers(of broker {self._broker_id})"

    def link_to(self, broker_id: int) -> Peer:
        """A link of its own to a broker, in process to this one."""
        if broker_id == self._broker_id:
            return self._local
        locate = partial(self._locate, broker_id)
        return RemotePeer(self._transport, locate, f"broker-{self._broker_id}-control", self._timeout_ms)

    async def _locate(self, broker_id: int) -> tuple[str, int] | None:
        """Our own link to a peer, else what it has registered, else what we last learned about it."""
        address = self._addresses.address(broker_id)
        if address is not None:
            return address
        endpoints = self._cache.endpoints(broker_id)
        if self._session.is_connected:
            try:
                data, _ = await self._session.read(lambda: self._session.store.get(broker_path(broker_id)))
                endpoints = BrokerRegistration.decode(broker_id, data).endpoints
            except NoNodeError:
                return None
        return self._addresses.address(broker_id, endpoints)
