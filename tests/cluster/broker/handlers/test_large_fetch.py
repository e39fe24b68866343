"""A large fetch goes from the segment's file to the socket by sendfile: no byte of it passes through the broker."""

from __future__ import annotations

import asyncio
import os
import struct
from pathlib import Path

import pytest

from cluster.log.config import LogConfig
from cluster.log.partition_log import PartitionLog
from cluster.protocol.batch import parse_header
from cluster.protocol.fetch import FetchResult, build_response, parse_response
from cluster.seams.asyncio_transport import AsyncioTransport
from cluster.seams.clock import ManualClock
from cluster.seams.os_storage import OsStorage
from cluster.seams.send_queue import SENDFILE_LEAST_BYTES
from cluster.seams.storage import FileRange
from tests.cluster.seams.recording import Acceptor
from tests.simulation.client import batch


@pytest.mark.parametrize("size", [SENDFILE_LEAST_BYTES // 2, SENDFILE_LEAST_BYTES, 8 * SENDFILE_LEAST_BYTES])
def test_from_the_segment_to_the_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """From 64 KiB on by sendfile, below by one read; either way what was appended arrives."""
    sent: list[int] = []
    sendfile = os.sendfile
    monkeypatch.setattr(os, "sendfile", lambda *arguments: sent.append(count := sendfile(*arguments)) or count)
    log = PartitionLog.open(str(tmp_path / "t-0"), "t", 0, LogConfig(), OsStorage(), ManualClock(), clean=True)
    records = bytearray(batch(bytes(size - len(batch(b"")))))
    log.append_as_leader(memoryview(records), parse_header(records), 0, 0)
    found = log.read(0, 1, log.log_end_offset).records
    assert isinstance(found, FileRange)

    async def main() -> None:
        acceptor = Acceptor(None)
        listener = await AsyncioTransport().listen("127.0.0.1", 0, acceptor)
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, limit=1 << 20)
        server = await acceptor.first()
        server.connection.send_frame(build_response(12, 5, 0, 0, [FetchResult("t", 0, 0, 1, 1, 0, found)]))
        (left,) = struct.unpack(">i", await reader.readexactly(4))
        response = parse_response(memoryview(await reader.readexactly(left)), 12)
        assert bytes(response.partitions[0].records or b"") == bytes(records)
        writer.close()
        await listener.close()

    asyncio.run(main())
    log.close(clean=False)
    assert sum(sent) == (len(records) if len(records) >= SENDFILE_LEAST_BYTES else 0)
