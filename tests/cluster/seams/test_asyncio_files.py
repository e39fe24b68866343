"""The socket transport sends parts of files: of any size, to slow readers, and what becomes of files that fail."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import socket
import struct
from itertools import pairwise

import pytest

from cluster.seams import send_queue
from cluster.seams.memory_storage import MemoryStorage
from cluster.seams.storage import range_of
from tests.cluster.seams.recording import Recorder
from tests.cluster.seams.sockets import HOST, read_frame, run, segment


@pytest.mark.parametrize("size", [1, 65_535, 65_536, 1_000_000, 20_000_000])
def test_file_ranges_of_any_size(tmp_path, size):
    """Small ranges are read, large ones go by sendfile; either way in order with what stands around them."""
    file, data = segment(tmp_path, size + 100)

    async def body(listener, acceptor):
        reader, writer = await asyncio.open_connection(HOST, listener.port, limit=1 << 20)
        server = await acceptor.first()
        for _ in range(2):
            server.connection.send_frame((b"head", range_of(file, 50, size), b"tail"))
        server.connection.send_frame((b"next",))
        for _ in range(2):
            assert await read_frame(reader) == b"head" + data[50 : 50 + size] + b"tail"
        assert await read_frame(reader) == b"next"
        assert server.connection.queued_bytes == 0
        writer.close()

    run(body)
    file.close()


@pytest.fixture
def sent(monkeypatch) -> list[int]:
    """What each sendfile sent, -1 where the socket was full."""
    counts: list[int] = []
    sendfile = os.sendfile

    def noted(*arguments: int) -> int:
        counts.append(-1)
        counts[-1] = sendfile(*arguments)
        return counts[-1]

    monkeypatch.setattr(os, "sendfile", noted)
    return counts


def test_a_slow_reader_of_files(tmp_path, sent, monkeypatch):
    """With a full socket the rest waits: none of it is in memory, and nobody asks the socket again until it has room.
    It arrives whole and in order when the peer reads."""
    file, data = segment(tmp_path, 30_000_000)
    monkeypatch.setattr(os, "pread", lambda *_: pytest.fail("read ahead"))

    async def body(listener, acceptor):
        reader, writer = await asyncio.open_connection(HOST, listener.port)
        server = await acceptor.first()
        parts = (b"a" * 100_000, range_of(file, 0, 15_000_000), b"b", range_of(file, 15_000_000, 15_000_000), b"c")
        server.connection.send_frame(parts)
        assert server.connection.queued_bytes > 10_000_000
        await until_blocked(server)
        # Nothing was sent after the socket was full but what it took as soon as it said that it had room again.
        assert sent[-1] == -1 and not any(one == two == -1 for one, two in pairwise(sent))
        digest = hashlib.sha256()
        (left,) = struct.unpack(">i", await reader.readexactly(4))
        assert left == 30_100_002
        while left:
            chunk = await reader.read(min(left, 300_000))
            digest.update(chunk)
            left -= len(chunk)
        expected = b"a" * 100_000 + data[:15_000_000] + b"b" + data[15_000_000:] + b"c"
        assert digest.digest() == hashlib.sha256(expected).digest()
        assert sum(count for count in sent if count > 0) == 30_000_000
        writer.close()

    run(body, send_buffer_bytes=102_400)
    file.close()


@pytest.mark.parametrize("wanted", [-1, 102_400, 300_000])
def test_the_send_buffer(wanted):
    """``send_buffer_bytes`` is SO_SNDBUF of accepted connections, of which Linux makes twice as much."""

    async def body(listener, acceptor):
        _, writer = await asyncio.open_connection(HOST, listener.port)
        server = await acceptor.first()
        accepted = server.connection._transport.get_extra_info("socket")
        size = accepted.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
        assert size == 2 * wanted if wanted > 0 else size not in (204_800, 600_000)
        writer.close()

    run(body, send_buffer_bytes=wanted)


def test_a_quick_reader_does_not_hold_the_loop(tmp_path, monkeypatch):
    """However much the socket takes, one connection has its share of a turn, and goes on in the next."""
    monkeypatch.setattr(send_queue, "_TURN_BYTES", 1_000_000)
    turns: list[list[int]] = []
    monkeypatch.setattr(os, "sendfile", lambda *arguments: turns[-1].append(arguments[3]) or arguments[3])
    file, _ = segment(tmp_path, 10_000_000)

    async def body(listener, acceptor):
        _, writer = await asyncio.open_connection(HOST, listener.port)
        server = await acceptor.first()
        turns.append([])
        # The size of the frame counts, too.
        server.connection.send_frame([range_of(file, at, 250_000) for at in range(0, 5_000_000, 250_000)])
        while server.connection.queued_bytes:
            turns.append([])
            await asyncio.sleep(0)
        assert [sum(turn) for turn in turns if turn] == [999_996, *[1_000_000] * 4, 4]
        writer.close()

    run(body)
    file.close()


async def until_blocked(server: Recorder) -> None:
    """Wait until the socket takes no more of what is queued."""
    for _ in range(100):
        before = server.connection.queued_bytes
        await asyncio.sleep(0.05)
        if before == server.connection.queued_bytes:
            break
    assert before


@pytest.mark.parametrize(("ahead", "size"), [(0, 20_000_000), (20_000_000, 50_000)])
def test_a_file_that_is_cut_while_it_is_sent(tmp_path, ahead, size):
    """The log was cut and written again while an answer waited for its reader: none of the new bytes is sent in the
    place of those that were promised, and the connection ends."""
    file, data = segment(tmp_path, 20_000_000)
    cut = size * 3 // 4

    async def body(listener, acceptor):
        reader, writer = await asyncio.open_connection(HOST, listener.port)
        server = await acceptor.first()
        server.connection.send_frame((bytes(ahead), range_of(file, 0, size)))
        await until_blocked(server)
        assert server.connection.queued_bytes > size - cut
        file.truncate(cut)
        file.append(bytes(20_000_000))
        received = bytearray()
        with contextlib.suppress(ConnectionError):
            while chunk := await reader.read(1 << 20):
                received += chunk
        await server.until(lambda handler: handler.closed != [])
        assert "was cut" in server.closed[0]
        assert received[4:] == (bytes(ahead) + data[:cut])[: len(received) - 4]
        writer.close()

    run(body, send_buffer_bytes=102_400)
    file.close()


def test_a_file_that_grows_or_is_deleted_while_it_is_sent(tmp_path):
    """Neither matters: bytes are never changed but by a cut, and an open file outlives its name."""
    file, data = segment(tmp_path, 20_000_000)

    async def body(listener, acceptor):
        reader, writer = await asyncio.open_connection(HOST, listener.port)
        server = await acceptor.first()
        server.connection.send_frame((range_of(file, 0, 20_000_000),))
        await until_blocked(server)
        file.append(b"more")
        os.unlink(file.path)
        assert await read_frame(reader) == data
        writer.close()

    run(body)
    file.close()


@pytest.mark.parametrize("end", ["aborted", "left"])
def test_no_descriptor_is_left(tmp_path, end):
    """A connection whose socket was full had a second descriptor, which goes with it."""
    file, _ = segment(tmp_path, 20_000_000)

    async def body(listener, acceptor):
        before = len(os.listdir("/proc/self/fd"))
        reader, writer = await asyncio.open_connection(HOST, listener.port)
        server = await acceptor.first()
        server.connection.send_frame((range_of(file, 0, 20_000_000),))
        await until_blocked(server)
        if end == "aborted":
            server.connection.abort()
        else:
            writer.transport.abort()
        await server.until(lambda handler: handler.closed != [])
        with contextlib.suppress(ConnectionError):
            while await reader.read(1 << 20):
                pass
        writer.close()
        await asyncio.sleep(0.05)
        assert len(os.listdir("/proc/self/fd")) == before

    run(body)
    file.close()


def test_files_without_a_descriptor():
    """A file in memory is sent as well."""
    file = MemoryStorage().open("segment")
    file.append(bytes(range(256)) * 2_000)

    async def body(listener, acceptor):
        reader, writer = await asyncio.open_connection(HOST, listener.port)
        server = await acceptor.first()
        server.connection.send_frame((b"x", range_of(file, 256, 400_000)))
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
        server.connection.send_frame((range_of(file, 10, size),))
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
        server.connection.send_frame((range_of(file, 0, 100_000),))
        await server.until(lambda handler: handler.closed != [])
        writer.close()

    run(body)
