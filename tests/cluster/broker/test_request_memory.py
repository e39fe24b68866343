"""queued.max.request.bytes counts a large request until it was processed, not only while it is received."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import pytest

from cluster.broker.answering import answering_awaited
from cluster.broker.exchange import Api, Exchange
from cluster.broker.metrics import Counters
from cluster.broker.pauses import Shares
from cluster.broker.portions import BYTES_AT_ONCE, Beside
from cluster.broker.server import ClientConnection
from cluster.protocol.apis import ApiKey
from cluster.protocol.messages import encode_request, request_class, response_class
from cluster.protocol.primitives import write_uvarint
from cluster.seams.asyncio_connection import AsyncioConnection
from cluster.seams.asyncio_transport import AsyncioTransport
from cluster.seams.transport import Connection
from tests.cluster.seams.sockets import HOST, frame, read_frame

LIMIT_BYTES = 4_000_000
LARGE_BYTES = 3_000_000
CLIENTS = 10
SMALL = 20


def large_request(correlation_id: int) -> bytes:
    """A request that has much in a tagged field that no one knows."""
    encoded = encode_request(request_class(ApiKey.DESCRIBE_CLUSTER)(), 0, correlation_id, "c")
    assert encoded[-1:] == b"\x00"
    return encoded[:-1] + b"\x01" + write_uvarint(100) + write_uvarint(LARGE_BYTES) + bytes(LARGE_BYTES)


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()
        with suppress(ConnectionError):
            await writer.wait_closed()


class Gate:
    """Work beside the loop that waits until it is let through."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.open = asyncio.Event()

    async def __call__(self, work: Callable[[], None]) -> None:
        self.begun.set()
        await self.open.wait()
        work()


def test_requests_that_are_worked_on_count() -> None:
    """Many large requests wait for a thread: only what the bound allows is read, small ones are served, and in the end
    everyone is answered."""

    async def main() -> None:
        gate, counters, connections = Gate(), Counters(), []

        async def handler(_request: Any, _exchange: Exchange) -> Any:
            return response_class(ApiKey.DESCRIBE_CLUSTER)(cluster_id="c", brokers=[])

        key = ApiKey.DESCRIBE_CLUSTER
        handle = answering_awaited(request_class(key), handler, Beside(gate), Shares(time.monotonic_ns))
        apis = {60: Api(key, 0, 0, handle)}

        def accept(connection: Connection) -> ClientConnection:
            connections.append(connection)
            return ClientConnection(connection, "L", apis, counters)

        listener = await AsyncioTransport().listen(HOST, 0, accept, queued_max_bytes=LIMIT_BYTES)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(listener.close)
            clients = [await stack.enter_async_context(connected(listener.port)) for _ in range(CLIENTS)]
            for number, (_reader, writer) in enumerate(clients):
                writer.write(frame(large_request(number)))
            await gate.begun.wait()
            # Small requests are served meanwhile; when theirs are answered the large ones had their chance.
            for _ in range(SMALL):
                async with connected(listener.port) as (reader, writer):
                    writer.write(frame(encode_request(request_class(key)(), 0, 99, "c")))
                    assert int.from_bytes((await read_frame(reader))[:4], "big") == 99
            assert counters.requests == SMALL + 1
            allocated = [each._frames.allocated_bytes for each in connections if isinstance(each, AsyncioConnection)]
            assert sum(allocated) < LARGE_BYTES + len(connections) * 200_000
            gate.open.set()
            for number, (reader, _writer) in enumerate(clients):
                assert int.from_bytes((await read_frame(reader))[:4], "big") == number

    asyncio.run(main())


async def _at_once(work: Callable[[], None]) -> None:
    work()


@pytest.mark.parametrize("size_bytes", [10, BYTES_AT_ONCE + 1])
def test_who_waits_for_others_need_not_keep_the_request(size_bytes: int) -> None:
    """Once its handler lets go of it, it is gone."""

    async def main() -> None:
        begun, gate = asyncio.Event(), asyncio.Event()

        async def handler(request: Any, _exchange: Exchange) -> Any:
            del request
            begun.set()
            await gate.wait()
            return response_class(ApiKey.LEAVE_GROUP)(error_code=0, members=[])

        key, counters = ApiKey.LEAVE_GROUP, Counters()
        beside, shares = Beside(_at_once), Shares(time.monotonic_ns)
        apis = {int(key): Api(key, 0, 0, answering_awaited(request_class(key), handler, beside, shares))}

        def accept(connection: Connection) -> ClientConnection:
            return ClientConnection(connection, "L", apis, counters)

        listener = await AsyncioTransport().listen(HOST, 0, accept)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(listener.close)
            reader, writer = await stack.enter_async_context(connected(listener.port))
            request = request_class(key)(group_id="g" * size_bytes, member_id="m")
            writer.write(frame(encode_request(request, 0, 7, "c")))
            del request
            await begun.wait()
            kept = [each for each in gc.get_objects() if type(each) is request_class(key)]
            gate.set()
            assert not kept
            assert int.from_bytes((await read_frame(reader))[:4], "big") == 7

    asyncio.run(main())
