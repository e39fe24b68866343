"""How connections of the socket transport end: half-close, errors, abort, close, and peers that vanish."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct

import pytest

from cluster.protocol.errors import MalformedRequest
from cluster.seams import asyncio_connection
from cluster.seams.asyncio_transport import AsyncioTransport
from cluster.seams.storage import range_of
from tests.cluster.seams.recording import Recorder, echo
from tests.cluster.seams.sockets import HOST, frame, read_frame, run, segment


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
        assert "the limit is 1000 (socket.request.max.bytes)" in server.closed[0]
        writer.close()

    run(body, echo, max_frame_bytes=1_000)


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
        server.connection.send_frame((range_of(file, 0, 5_000_000),))
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
