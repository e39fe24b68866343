"""The socket transport sends parts of files: of any size, to slow readers, and what becomes of files that fail."""

from __future__ import annotations

import asyncio
import hashlib
import os
import struct

import pytest

from cluster.seams.memory_storage import MemoryStorage
from cluster.seams.storage import FileRange
from tests.cluster.seams.sockets import HOST, read_frame, run, segment


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
