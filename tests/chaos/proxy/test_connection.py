"""The life of a connection at its awkward moments."""

from __future__ import annotations

import asyncio
import socket
import struct

import pytest

from chaos.proxy.proxy import Proxy
from tests.chaos.proxy.harness import HOST

pytestmark = pytest.mark.timeout(10)


@pytest.mark.parametrize("turns", range(8))
def test_a_proxy_can_stop_at_any_turn_of_the_loop(turns: int) -> None:
    """A connection that is aborted just after it was accepted, before or within its dial, is gone at once."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        upstream = await asyncio.start_server(lambda _reader, writer: writer.close(), HOST, 0)
        proxy = Proxy("p", f"{HOST}:0", f"{HOST}:{upstream.sockets[0].getsockname()[1]}", 1, 1000)
        await proxy.start()
        port = int(proxy.listen.rpartition(":")[2])
        with socket.socket() as client:
            client.setblocking(False)
            await loop.sock_connect(client, (HOST, port))
            for _ in range(turns):
                await asyncio.sleep(0)
            started = loop.time()
            await proxy.stop(keep_port=False)
            assert loop.time() - started < 0.5
            assert proxy.connections() == []
            assert proxy.counters.accepted == proxy.counters.closed
        upstream.close()
        await asyncio.sleep(0.01)

    asyncio.run(scenario())


@pytest.mark.parametrize("turns", range(8))
def test_a_client_may_reset_at_any_turn_of_the_loop(turns: int) -> None:
    """A client that goes away while the upstream is dialed leaves nothing behind."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        upstream = await asyncio.start_server(lambda _reader, writer: writer.close(), HOST, 0)
        proxy = Proxy("p", f"{HOST}:0", f"{HOST}:{upstream.sockets[0].getsockname()[1]}", 1, 1000)
        await proxy.start()
        with socket.socket() as client:
            client.setblocking(False)
            await loop.sock_connect(client, (HOST, int(proxy.listen.rpartition(":")[2])))
            for _ in range(turns):
                await asyncio.sleep(0)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        async with asyncio.timeout(5):
            while proxy.connections() or not proxy.counters.accepted:  # noqa: ASYNC110 (there is no event for it)
                await asyncio.sleep(0.002)
        await proxy.stop(keep_port=False)
        upstream.close()
        await asyncio.sleep(0.01)

    asyncio.run(scenario())
