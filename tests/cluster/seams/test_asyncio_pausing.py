"""The socket transport under back-pressure: who is paused, or does not read answers, is not read from."""

from __future__ import annotations

import asyncio

import pytest

from cluster.seams import asyncio_connection
from cluster.seams.asyncio_transport import AsyncioTransport
from tests.cluster.seams.recording import Acceptor, Recorder
from tests.cluster.seams.sockets import HOST, frame, read_frame, run


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


@pytest.mark.parametrize("sent", [b"", frame(b"x") * 3])
def test_a_peer_that_leaves_is_noticed_while_reading_is_paused(sent):
    """Also behind what it sent before."""

    async def body(listener, acceptor):
        _, writer = await asyncio.open_connection(HOST, listener.port)
        server = await acceptor.first()
        server.connection.pause_reading()
        writer.write(sent)
        await asyncio.sleep(0.05)
        assert not server.connection.is_left()
        writer.close()
        # Nothing tells of it: it must be asked for.
        for _ in range(500):
            if server.connection.is_left():
                break
            await asyncio.sleep(0.01)
        assert server.connection.is_left()
        assert (server.frames, server.eofs) == ([], 0)
        server.connection.abort()
        await server.connection.wait_closed()
        assert server.connection.is_left()

    run(body)


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
