"""The socket transport on real loopback sockets: chunking, order, half-close, files, back-pressure, endings."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import random
import socket
import struct
from collections.abc import Awaitable, Callable

import pytest

from cluster.protocol.errors import MalformedRequest
from cluster.protocol.framing import INITIAL_BYTES
from cluster.seams import asyncio_connection
from cluster.seams.asyncio_connection import AsyncioConnection
from cluster.seams.asyncio_transport import AsyncioListener, AsyncioTransport
from cluster.seams.memory_storage import MemoryStorage
from cluster.seams.os_storage import OsStorage
from cluster.seams.storage import FileRange
from tests.cluster.seams.recording import Acceptor, Recorder, echo

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


def test_requests_that_come_together_are_answered_together():
    """One system call sends the answers to all frames that one read brought, in order, and none waits for more."""

    async def body(listener, acceptor):
        reader, writer = await asyncio.open_connection(HOST, listener.port)
        writer.write(frame(b"first"))
        assert await read_frame(reader) == b"first"
        server = acceptor.handlers[0].connection
        assert isinstance(server, AsyncioConnection)
        written = []
        transport = server._transport
        write = transport.write
        transport.write = lambda data: (written.append(len(data)), write(data))
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


def test_a_half_closed_peer_gets_its_answers():
    """The end of input is told once, the connection stays open for what is owed, and the owner closes it."""

    async def body(listener, acceptor):
        reader, writer = await asyncio.open_connection(HOST, listener.port)
        writer.write(frame(b"one") + frame(b"two"))
        writer.write_eof()
        server = await acceptor.first()
        await server.until(lambda handler: handler.eofs == 1)
        assert server.frames == [b"one", b"two"]
        assert not server.closed
        server.connection.send_frame((b"late answer",))
        server.connection.close()
        assert await read_frame(reader) == b"late answer"
        assert await reader.read() == b""
        await server.until(lambda handler: handler.closed != [])
        writer.close()

    run(body)


def test_end_of_input_is_told_once():
    """Also when reading is paused and resumed after it."""

    async def body(listener, acceptor):
        _, writer = await asyncio.open_connection(HOST, listener.port)
        writer.write_eof()
        server = await acceptor.first()
        await server.until(lambda handler: handler.eofs == 1)
        server.connection.pause_reading()
        server.connection.resume_reading()
        await asyncio.sleep(0.05)
        assert server.eofs == 1
        writer.close()

    run(body)


def segment(tmp_path, size: int):
    """A file of random bytes on disk, and the bytes."""
    data = random.Random(size).randbytes(size)
    file = OsStorage().open(str(tmp_path / f"segment-{size}"))
    file.append(data)
    return file, data


@pytest.mark.parametrize("size", [1, 65_535, 65_536, 1_000_000, 20_000_000])
def test_file_ranges_of_any_size(tmp_path, size):
    """Small ranges are read, large ones go by sendfile; either way in order with what stands around them."""
    file, data = segment(tmp_path, size + 100)

    async def body(listener, acceptor):
        reader, writer = await asyncio.open_connection(HOST, listener.port, limit=1 << 20)
        server = await acceptor.first()
        for _ in range(2):
            server.connection.send_frame((b"head", FileRange(file, 50, size), b"tail"))
        server.connection.send_frame((b"next",))
        for _ in range(2):
            assert await read_frame(reader) == b"head" + data[50 : 50 + size] + b"tail"
        assert await read_frame(reader) == b"next"
        assert server.connection.queued_bytes == 0
        writer.close()

    run(body)
    file.close()


def test_a_slow_reader_of_files(tmp_path, monkeypatch):
    """With a full socket the rest waits uncopied, and arrives whole and in order when the peer reads."""
    file, data = segment(tmp_path, 30_000_000)
    sent = []
    sendfile = os.sendfile
    monkeypatch.setattr(os, "sendfile", lambda *arguments: sent.append(count := sendfile(*arguments)) or count)

    async def body(listener, acceptor):
        reader, writer = await asyncio.open_connection(HOST, listener.port)
        server = await acceptor.first()
        parts = (b"a" * 100_000, FileRange(file, 0, 15_000_000), b"b", FileRange(file, 15_000_000, 15_000_000), b"c")
        server.connection.send_frame(parts)
        assert server.connection.queued_bytes > 10_000_000
        transport = server.connection._transport
        assert transport.get_write_buffer_size() <= 200_000
        digest = hashlib.sha256()
        (left,) = struct.unpack(">i", await reader.readexactly(4))
        assert left == 30_100_002
        while left:
            chunk = await reader.read(min(left, 300_000))
            digest.update(chunk)
            left -= len(chunk)
        expected = b"a" * 100_000 + data[:15_000_000] + b"b" + data[15_000_000:] + b"c"
        assert digest.digest() == hashlib.sha256(expected).digest()
        assert sum(sent) > 20_000_000
        writer.close()

    run(body)
    file.close()


def test_files_without_a_descriptor():
    """A file in memory is sent as well."""
    file = MemoryStorage().open("segment")
    file.append(bytes(range(256)) * 2_000)

    async def body(listener, acceptor):
        reader, writer = await asyncio.open_connection(HOST, listener.port)
        server = await acceptor.first()
        server.connection.send_frame((b"x", FileRange(file, 256, 400_000)))
        assert await read_frame(reader) == b"x" + (bytes(range(256)) * 2_000)[256:400_256]
        writer.close()

    run(body)


@pytest.mark.parametrize("size", [100, 100_000])
def test_a_file_that_ends_early_ends_the_connection(tmp_path, size):
    """The frame's size was promised: nothing can stand for the missing bytes."""
    file, _ = segment(tmp_path, size)

    async def body(listener, acceptor):
        _, writer = await asyncio.open_connection(HOST, listener.port)
        server = await acceptor.first()
        server.connection.send_frame((FileRange(file, 10, size),))
        await server.until(lambda handler: handler.closed != [])
        assert "before a range that was promised" in server.closed[0]
        writer.close()

    run(body)
    file.close()


def test_a_file_that_was_closed_ends_the_connection(tmp_path):
    """A descriptor that may belong to another file by now is never used."""
    file, _ = segment(tmp_path, 100_000)
    file.close()

    async def body(listener, acceptor):
        _, writer = await asyncio.open_connection(HOST, listener.port)
        server = await acceptor.first()
        server.connection.send_frame((FileRange(file, 0, 100_000),))
        await server.until(lambda handler: handler.closed != [])
        writer.close()

    run(body)


def test_pause_and_resume():
    """Paused, nothing is delivered, not even what has arrived; resumed, everything comes in order."""

    def pause_at_two(recorder: Recorder, view: memoryview) -> None:
        if bytes(view) == b"2":
            recorder.connection.pause_reading()

    async def body(listener, acceptor):
        _, writer = await asyncio.open_connection(HOST, listener.port)
        writer.write(b"".join(frame(str(number).encode()) for number in range(5)))
        server = await acceptor.first()
        await server.until(lambda handler: len(handler.frames) == 3)
        writer.write(frame(b"5"))
        writer.write_eof()
        await asyncio.sleep(0.05)
        assert server.frames == [b"0", b"1", b"2"]
        assert server.eofs == 0
        server.connection.resume_reading()
        assert len(server.frames) == 3, "nothing is delivered from inside resume_reading"
        await server.until(lambda handler: handler.eofs == 1)
        assert server.frames == [b"0", b"1", b"2", b"3", b"4", b"5"]
        writer.close()

    run(body, pause_at_two)


def test_pausing_again_before_reading_goes_on():
    """Resume and pause in one turn leave it paused; pausing from the start delivers nothing."""

    async def body(listener, acceptor):
        _, writer = await asyncio.open_connection(HOST, listener.port)
        server = await acceptor.first()
        server.connection.pause_reading()
        writer.write(frame(b"x"))
        server.connection.resume_reading()
        server.connection.pause_reading()
        await asyncio.sleep(0.05)
        assert server.frames == []
        server.connection.resume_reading()
        await server.until(lambda handler: handler.frames == [b"x"])
        writer.close()

    run(body)


def test_pausing_while_being_accepted():
    """A handler that pauses before it returns is not read from at all until it resumes."""

    async def main() -> None:
        acceptor = Acceptor()

        def accept(connection):
            connection.pause_reading()
            return acceptor(connection)

        listener = await AsyncioTransport().listen(HOST, 0, accept)
        _, writer = await asyncio.open_connection(HOST, listener.port)
        writer.write(frame(b"x") * 3)
        server = await acceptor.first()
        await asyncio.sleep(0.05)
        assert server.frames == []
        assert server.connection._frames.pending_bytes == 0
        server.connection.resume_reading()
        await server.until(lambda handler: len(handler.frames) == 3)
        writer.close()
        await listener.close()

    asyncio.run(main())


def test_who_does_not_read_answers_is_not_read_from(monkeypatch):
    """Frames stop being delivered while much is queued for the peer, and go on when it reads."""
    monkeypatch.setattr(asyncio_connection, "CHOKE_BYTES", 1_000_000)
    answer = bytes(500_000)
    requests = 100

    def answer_large(recorder: Recorder, view: memoryview) -> None:
        recorder.connection.send_frame((answer,))

    async def body(listener, acceptor):
        reader, writer = await asyncio.open_connection(HOST, listener.port)
        writer.write(frame(b"please") * requests)
        server = await acceptor.first()
        await server.until(lambda handler: handler.connection.queued_bytes > 1_000_000)
        await asyncio.sleep(0.05)
        assert len(server.frames) < requests
        assert server.connection.queued_bytes < 3_000_000
        for _ in range(requests):
            assert len(await read_frame(reader)) == len(answer)
        assert len(server.frames) == requests
        writer.close()

    run(body, answer_large)


@pytest.mark.parametrize("size", [-1, 1_001, 2_147_483_647])
def test_an_oversize_frame_closes_the_connection(size):
    """Frames before it are answered; what is behind it cannot be found."""

    async def body(listener, acceptor):
        reader, writer = await asyncio.open_connection(HOST, listener.port)
        writer.write(frame(b"good") + struct.pack(">i", size))
        assert await read_frame(reader) == b"good"
        assert await reader.read() == b""
        server = await acceptor.first()
        await server.until(lambda handler: handler.closed != [])
        assert "the limit is 1000" in server.closed[0]
        writer.close()

    run(body, echo, max_frame_bytes=1_000)


def test_a_declared_size_costs_nothing():
    """The buffer of a connection grows with the bytes received only."""

    async def body(listener, acceptor):
        _, writer = await asyncio.open_connection(HOST, listener.port)
        writer.write(frame(b"first") + struct.pack(">i", 100_000_000) + b"some bytes")
        server = await acceptor.first()
        await server.until(lambda handler: handler.frames == [b"first"])
        assert server.connection._frames.pending_bytes == 14
        assert server.connection._frames.allocated_bytes == INITIAL_BYTES
        writer.close()

    run(body)


@pytest.mark.parametrize("error", [MalformedRequest("nonsense"), ZeroDivisionError("a bug")])
def test_an_exception_closes_this_connection_alone(error, caplog):
    """Whether the peer's fault or ours: other connections go on, and the reason is told."""

    def fail_on_bad(recorder: Recorder, view: memoryview) -> None:
        if bytes(view) == b"bad":
            raise error
        echo(recorder, view)

    async def body(listener, acceptor):
        reader, writer = await asyncio.open_connection(HOST, listener.port)
        other_reader, other_writer = await asyncio.open_connection(HOST, listener.port)
        writer.write(frame(b"good") + frame(b"bad") + frame(b"never seen"))
        assert await read_frame(reader) == b"good"
        assert await reader.read() == b""
        other_writer.write(frame(b"still here"))
        assert await read_frame(other_reader) == b"still here"
        server = acceptor.handlers[0]
        await server.until(lambda handler: handler.closed != [])
        assert server.frames == [b"good", b"bad"]
        assert str(error) in server.closed[0]
        writer.close()
        other_writer.close()

    run(body, fail_on_bad)
    assert ("Traceback" in caplog.text) == isinstance(error, ZeroDivisionError)


def test_a_refusing_owner(caplog):
    """An accept handler that fails costs its own connection, and nobody is told that it closed."""

    async def main() -> None:
        def accept(connection):
            raise ValueError("no")

        listener = await AsyncioTransport().listen(HOST, 0, accept)
        reader, writer = await asyncio.open_connection(HOST, listener.port)
        with contextlib.suppress(ConnectionResetError):
            assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()
        await listener.close()

    asyncio.run(main())
    assert "no handler for the connection" in caplog.text


def test_abort_drops_what_is_queued():
    """``on_closed`` comes once, later, and nothing can be sent afterwards."""

    async def body(listener, acceptor):
        _, writer = await asyncio.open_connection(HOST, listener.port)
        server = await acceptor.first()
        server.connection.send_frame((bytes(20_000_000),))
        server.connection.abort()
        assert server.closed == []
        await server.until(lambda handler: handler.closed != [])
        assert server.closed == ["aborted by its owner"]
        server.connection.send_frame((b"x",))
        server.connection.close()
        server.connection.abort()
        server.connection.pause_reading()
        server.connection.resume_reading()
        await asyncio.sleep(0.02)
        assert server.closed == ["aborted by its owner"]
        assert server.connection.queued_bytes == 0
        writer.close()

    run(body)


def test_close_sends_what_is_queued_first(tmp_path):
    """Megabytes that wait, also in files, still reach a peer that reads; frames from it are dropped meanwhile."""
    file, data = segment(tmp_path, 5_000_000)

    async def body(listener, acceptor):
        reader, writer = await asyncio.open_connection(HOST, listener.port)
        server = await acceptor.first()
        server.connection.send_frame((bytes(8_000_000),))
        server.connection.send_frame((FileRange(file, 0, 5_000_000),))
        server.connection.close()
        server.connection.send_frame((b"too late",))
        writer.write(frame(b"dropped"))
        assert await read_frame(reader) == bytes(8_000_000)
        assert await read_frame(reader) == data
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
        await server.until(lambda handler: handler.closed != [])
        assert server.frames == []
        writer.close()

    run(body)
    file.close()


def test_a_closing_connection_does_not_linger(monkeypatch):
    """A peer that never takes what is queued is dropped after a while."""
    monkeypatch.setattr(asyncio_connection, "LINGER_S", 0.05)

    async def body(listener, acceptor):
        _, writer = await asyncio.open_connection(HOST, listener.port)
        server = await acceptor.first()
        server.connection.send_frame((bytes(30_000_000),))
        server.connection.close()
        await server.until(lambda handler: handler.closed != [])
        assert "did not take" in server.closed[0]
        writer.close()

    run(body)


def test_a_peer_that_vanishes():
    """A reset is told as the reason."""

    async def body(listener, acceptor):
        _, writer = await asyncio.open_connection(HOST, listener.port)
        server = await acceptor.first()
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
        await server.until(lambda handler: handler.closed != [])
        assert "reset" in server.closed[0].lower()

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
