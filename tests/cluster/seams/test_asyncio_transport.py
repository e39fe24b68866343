"""The socket transport on real loopback sockets: chunking, order, ports, and what a connection costs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import socket
import struct
from functools import partial

import pytest

from cluster.protocol.framing import FIRST_BYTES
from cluster.seams.asyncio_connection import AsyncioConnection
from cluster.seams.asyncio_transport import AsyncioTransport
from tests.cluster.seams.recording import Acceptor, echo
from tests.cluster.seams.sockets import HOST, frame, read_frame, run


def test_frames_survive_any_chunking():
    """However the bytes are cut, frames arrive whole and in order, and so do their answers."""

    async def body(listener, acceptor):
        reader, writer = await asyncio.open_connection(HOST, listener.port)
        draw = random.Random(5)
        payloads = [draw.randbytes(draw.choice((0, 1, 10, 5_000, 70_000))) for _ in range(40)]
        stream = b"".join(frame(payload) for payload in payloads)
        position = 0

        async def send() -> None:
            nonlocal position
            while position < len(stream):
                size = draw.choice((1, 3, 1_000, 100_000))
                writer.write(stream[position : position + size])
                position += size
                await writer.drain()

        sending = asyncio.create_task(send())
        assert [await read_frame(reader) for _ in payloads] == payloads
        await sending
        assert acceptor.handlers[0].frames == payloads
        writer.close()
        await acceptor.handlers[0].until(lambda handler: handler.eofs == 1)

    run(body, echo)


def test_requests_that_come_together_are_answered_together(monkeypatch):
    """One system call sends the answers to all frames that one read brought, in order, and none waits for more."""

    async def body(listener, acceptor):
        reader, writer = await asyncio.open_connection(HOST, listener.port)
        writer.write(frame(b"first"))
        assert await read_frame(reader) == b"first"
        server = acceptor.handlers[0].connection
        assert isinstance(server, AsyncioConnection)
        written = []
        for call in (os.write, os.writev):
            noted = partial(lambda call, *arguments: written.append(count := call(*arguments)) or count, call)
            monkeypatch.setattr(os, call.__name__, noted)
        writer.write(b"".join(frame(b"%d" % number) for number in range(50)))
        assert [await read_frame(reader) for _ in range(50)] == [b"%d" % number for number in range(50)]
        assert len(written) == 1
        writer.close()
        await acceptor.handlers[0].until(lambda handler: handler.eofs == 1)

    run(body, echo)


def test_no_delay_and_peer():
    """Small answers leave at once, and each side knows its peer."""

    async def body(listener, acceptor):
        client = Acceptor()
        connection = await AsyncioTransport().connect(HOST, listener.port, client, timeout_ms=5_000)
        server = await acceptor.first()
        for end in (connection, server.connection):
            assert isinstance(end, AsyncioConnection)
            sock = end._transport.get_extra_info("socket")
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert connection.peer == f"{HOST}:{listener.port}"
        assert server.connection.peer.startswith(f"{HOST}:")
        connection.send_frame((b"a", memoryview(b"b"), bytearray(b"c")))
        await server.until(lambda handler: handler.frames == [b"abc"])
        connection.close()
        await client.handlers[0].until(lambda handler: handler.closed != [])
        assert client.handlers[0].closed == ["closed by its owner"]
        await server.until(lambda handler: handler.eofs == 1)

    run(body)


def test_a_declared_size_costs_nothing():
    """The buffer of a connection grows with the bytes received only."""

    async def body(listener, acceptor):
        _, writer = await asyncio.open_connection(HOST, listener.port)
        writer.write(frame(b"first") + struct.pack(">i", 100_000_000) + b"some bytes")
        server = await acceptor.first()
        await server.until(lambda handler: handler.frames == [b"first"])
        assert server.connection._frames.pending_bytes == 14
        assert server.connection._frames.allocated_bytes == FIRST_BYTES
        writer.close()

    run(body)


def test_ports():
    """Port 0 picks one; a port in use is an error; a closed listener refuses, and has aborted its connections."""

    async def main() -> None:
        transport = AsyncioTransport()
        acceptor = Acceptor()
        listener = await transport.listen(HOST, 0, acceptor)
        with pytest.raises(OSError, match="in use"):
            await transport.listen(HOST, listener.port, acceptor)
        client = Acceptor()
        await transport.connect(HOST, listener.port, client, timeout_ms=5_000)
        await acceptor.first()
        await listener.close()
        assert acceptor.handlers[0].closed == ["aborted by its owner"]
        await client.handlers[0].until(lambda handler: bool(handler.closed or handler.eofs))
        client.handlers[0].connection.abort()
        with pytest.raises(ConnectionRefusedError):
            await transport.connect(HOST, listener.port, client, timeout_ms=5_000)
        await listener.close()

    asyncio.run(main())


def test_closing_a_listener_while_a_connection_arrives():
    """A connection that asyncio has accepted, but not told of yet, is closed with the others."""

    async def main() -> None:
        acceptor = Acceptor()
        listener = await AsyncioTransport().listen(HOST, 0, acceptor)
        with socket.create_connection((HOST, listener.port)) as client:
            while not listener._connections:  # noqa: ASYNC110 - asyncio tells nobody of this moment
                await asyncio.sleep(0)
            async with asyncio.timeout(10):
                await listener.close()
            client.settimeout(10)
            with contextlib.suppress(ConnectionResetError):
                assert client.recv(1) == b""
        assert acceptor.handlers == []

    asyncio.run(main())


def test_connecting_takes_no_longer_than_its_timeout():
    """A peer that does not answer at all is a TimeoutError."""

    async def main() -> None:
        # A listening socket whose queue is full accepts no more connections.
        with socket.socket() as silent:
            silent.bind((HOST, 0))
            silent.listen(0)
            silent.setblocking(False)
            fillers = [socket.socket() for _ in range(3)]
            for filler in fillers:
                filler.setblocking(False)
                filler.connect_ex(silent.getsockname())
            with pytest.raises(TimeoutError):
                await AsyncioTransport().connect(HOST, silent.getsockname()[1], Acceptor(), timeout_ms=50)
            for filler in fillers:
                filler.close()

    asyncio.run(main())
