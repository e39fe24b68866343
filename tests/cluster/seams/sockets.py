"""What tests of the socket transport share: a listener on loopback, frames as bytes, files of random bytes."""

from __future__ import annotations

import asyncio
import random
import struct
from collections.abc import Awaitable, Callable

from cluster.seams.asyncio_transport import AsyncioListener, AsyncioTransport
from cluster.seams.os_storage import OsStorage
from tests.cluster.seams.recording import Acceptor

HOST = "127.0.0.1"


def frame(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def run(body: Callable[[AsyncioListener, Acceptor], Awaitable[None]], on_frame=None, **options) -> None:
    """Run ``body`` against a fresh listener, and close it."""

    async def main() -> None:
        acceptor = Acceptor(on_frame)
        listener = await AsyncioTransport().listen(HOST, 0, acceptor, **options)
        try:
            async with asyncio.timeout(30):
                await body(listener, acceptor)
        finally:
            await listener.close()
        assert all(len(handler.closed) == 1 for handler in acceptor.handlers)

    asyncio.run(main())


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(size)


def segment(tmp_path, size: int):
    """A file of random bytes on disk, and the bytes."""
    data = random.Random(size).randbytes(size)
    file = OsStorage().open(str(tmp_path / f"segment-{size}"))
    file.append(data)
    return file, data
