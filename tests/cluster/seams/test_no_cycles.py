"""A connection that is closed is freed at once: it is no garbage that someone has to search for."""

from __future__ import annotations

import asyncio
import gc
import weakref

from cluster.seams.asyncio_connection import AsyncioConnection
from cluster.seams.asyncio_transport import AsyncioTransport
from cluster.seams.transport import Connection
from tests.cluster.seams.sockets import HOST, frame


class Echo:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def on_frame(self, frame: memoryview) -> None:
        self._connection.send_frame([bytes(frame)])

    def on_eof(self) -> None:
        self._connection.close()

    def on_closed(self, reason: str) -> None:
        pass


def test_a_closed_connection_is_freed() -> None:
    """With its buffer, which may be large: without a collection."""

    async def main() -> None:
        made: list[weakref.ref[Connection]] = []

        def accept(connection: Connection) -> Echo:
            assert isinstance(connection, AsyncioConnection)
            made.append(weakref.ref(connection))
            return Echo(connection)

        listener = await AsyncioTransport().listen(HOST, 0, accept, queued_max_bytes=1_000_000)
        for payload in (b"small", b"x" * 400_000):
            reader, writer = await asyncio.open_connection(HOST, listener.port)
            writer.write(frame(payload))
            await reader.readexactly(4 + len(payload))
            writer.write_eof()
            assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()
        for _ in range(10):
            await asyncio.sleep(0)
        assert [each() for each in made] == [None, None]
        await listener.close()

    gc.disable()
    try:
        asyncio.run(main())
    finally:
        gc.enable()
