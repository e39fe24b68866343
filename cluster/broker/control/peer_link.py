"""One connection to one peer, opened when it is needed and dropped when it fails.

Owns the connection of a control link. Does not own retries: each call is one attempt, and says so by raising.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from cluster.client.connection import BrokerConnection
from cluster.seams.transport import Transport

#: Where the peer is now: (host, port), or None if that is not known.
Locate = Callable[[], Awaitable[tuple[str, int] | None]]


class PeerLink:
    """Requests to one peer, pipelined on one connection."""

    def __init__(self, transport: Transport, locate: Locate, client_id: str, timeout_ms: int) -> None:
        self._transport = transport
        self._locate = locate
        self._client_id = client_id
        self._timeout_ms = timeout_ms
        self._connection: BrokerConnection | None = None
        self._opening = asyncio.Lock()

    def __repr__(self) -> str:
        return f"PeerLink({self._client_id}, {self._connection!r})"

    async def ask(self, message: Any, version: int) -> Any:
        """Send one request and return its response. Raises OSError (ConnectionError, TimeoutError) on any failure."""
        connection = await self._connected()
        try:
            return await connection.send(message, version, self._timeout_ms)
        except OSError:
            self._drop(connection)
            raise

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def _connected(self) -> BrokerConnection:
        async with self._opening:
            if self._connection is None or self._connection.is_closed:
                address = await self._locate()
                if address is None:
                    raise ConnectionError("the peer's address is not known")
                self._connection = await BrokerConnection.open(
                    self._transport, *address, client_id=self._client_id, timeout_ms=self._timeout_ms
                )
            return self._connection

    def _drop(self, connection: BrokerConnection) -> None:
        connection.close()
        if self._connection is connection:
            self._connection = None
