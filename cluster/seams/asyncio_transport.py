"""Transport over real sockets: listening and connecting. Owns ports and the connections that a port accepted.

Does not own what happens on a connection (``cluster.seams.asyncio_connection``).
"""

from __future__ import annotations

import asyncio
import os
import socket

from cluster.seams.asyncio_connection import AsyncioConnection
from cluster.seams.descriptors import CLIENTS, ENOUGH, PEERS, Share, limit
from cluster.seams.frame_memory import FrameMemory
from cluster.seams.frame_turns import FrameTurns, Turning
from cluster.seams.out_of_memory import halt_if_out_of_memory
from cluster.seams.transport import MAX_FRAME_BYTES, AcceptHandler
from cluster.seams.units import seconds_of_ms
from cluster.seams.unread_answers import UnreadAnswers

_BACKLOG = 1_024
#: A flood must not have all file descriptors before the first of it can be turned away: of fewer than are enough, a
#: turn of the loop takes fewer connections.
_ACCEPTED_AT_ONCE = 16


class AsyncioListener:
    """One listening port and the connections it accepted."""

    def __init__(
        self,
        accept: AcceptHandler,
        max_frame_bytes: int,
        send_buffer_bytes: int,
        queued_max_bytes: int,
        unread_max_bytes: int,
        share: Share,
        turning: Turning | None,
    ) -> None:
        self._turns = FrameTurns(asyncio.get_running_loop(), turning)
        self._accept = accept
        self._max_frame_bytes = max_frame_bytes
        self._send_buffer_bytes = send_buffer_bytes
        self._memory = FrameMemory(queued_max_bytes, asyncio.get_running_loop()) if queued_max_bytes > 0 else None
        self._unread = UnreadAnswers(unread_max_bytes) if unread_max_bytes > 0 else None
        self._share = share
        self._connections: set[AsyncioConnection] = set()
        self._server: asyncio.Server | None = None
        self._port = 0

    def __repr__(self) -> str:
        return f"AsyncioListener(port {self._port}, {len(self._connections)} connections)"

    @property
    def port(self) -> int:
        return self._port

    async def start(self, host: str, port: int) -> None:
        """Bind and listen. Raises ``OSError``."""
        loop = asyncio.get_running_loop()
        # To asyncio the backlog is also how many connections it takes in one turn of the loop, before it shows any.
        at_once = max(1, _ACCEPTED_AT_ONCE * min(limit(), ENOUGH) // ENOUGH)
        self._server = await loop.create_server(self._new_connection, host, port, backlog=at_once)
        for listening in self._server.sockets:
            with socket.socket(fileno=os.dup(listening.fileno())) as same:
                same.listen(_BACKLOG)
        self._port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server is None:
            return
        self._server.close()
        connections = list(self._connections)
        for connection in connections:
            connection.abort()
        for connection in connections:
            await connection.wait_closed()
        await self._server.wait_closed()

    def _new_connection(self) -> AsyncioConnection:
        try:
            return self._made()
        except MemoryError as error:
            # asyncio tells no one what fails here, and continues to listen
            halt_if_out_of_memory(error)
            raise

    def _made(self) -> AsyncioConnection:
        connection = AsyncioConnection(
            self._accept,
            self._max_frame_bytes,
            on_gone=self._connections.discard,
            send_buffer_bytes=self._send_buffer_bytes,
            memory=self._memory,
            unread=self._unread,
            share=self._share,
            turns=self._turns,
        )
        self._connections.add(connection)
        return connection


class AsyncioTransport:
    """Real sockets on the running loop. ``turning``: its selector, if that counts the turns (``turn_selector``)."""

    def __init__(self, turning: Turning | None = None) -> None:
        self._turning = turning

    def __repr__(self) -> str:
        return "AsyncioTransport()"

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
    ) -> AsyncioListener:
        share = PEERS if is_for_peers else CLIENTS
        listener = AsyncioListener(
            accept, max_frame_bytes, send_buffer_bytes, queued_max_bytes, unread_max_bytes, share, self._turning
        )
        await listener.start(host, port)
        return listener

    async def connect(
        self, host: str, port: int, accept: AcceptHandler, *, timeout_ms: int, max_frame_bytes: int = MAX_FRAME_BYTES
    ) -> AsyncioConnection:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(seconds_of_ms(timeout_ms)):
            _, connection = await loop.create_connection(
                lambda: AsyncioConnection(accept, max_frame_bytes, on_gone=None), host, port
            )
        return connection
