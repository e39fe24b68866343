"""Fetches a partition's log from its leader and writes the raw batches to a segment file of the run.

Owns the requests and the file. Decodes no record: a Fetch response has the bytes that are on the leader's disk, and the
verifier reads them like any other segment (docs/target.md "What is judged").
"""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path

from cluster.client.connection import BrokerConnection
from cluster.client.retried_calls import parse_address
from cluster.protocol.fetch import FetchPartition, FetchRequest, build_request, parse_response
from cluster.seams.transport import Transport
from verifier.evidence.run_model import FinalPartition

#: The version of Fetch that every Kafka since 2.3 serves. Newer versions identify topics by their ids.
VERSION = 11
CLIENT_ID = "gapless-conductor"
ASK_MS = 30_000
MAX_BYTES = 8 << 20
#: The head of a batch: base offset and length. The last offset delta comes later, after magic, CRC and attributes.
_HEAD = struct.Struct(">qi")
_LAST_OFFSET_DELTA = struct.Struct(">i")
_OVERHEAD, _DELTA_AT = 12, 23


class NotServed(Exception):
    """The leader does not serve its log. The message says what it answered."""


async def save_served_log(final: FinalPartition, address: str, directory: Path, transport: Transport) -> None:
    """Write one partition's log, from its start to its high watermark, to a new file in ``directory``.

    ``address`` is the leader's ``host:port``. Raises NotServed or ``OSError``.
    """
    path = directory / f"{final.log_start_offset:020d}.log"
    await asyncio.to_thread(_begin, path)
    host, port = parse_address(address)
    connection = await BrokerConnection.open(transport, host, port, client_id=CLIENT_ID, timeout_ms=ASK_MS)
    try:
        offset = final.log_start_offset
        while offset < final.high_watermark:
            batches, offset = whole_batches(await _fetched(connection, final, offset), offset)
            if not batches:
                raise NotServed(f"{final.topic}-{final.partition}: the leader returned no records at offset {offset}")
            await asyncio.to_thread(_append, path, batches)
    finally:
        connection.close()


def _begin(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(exist_ok=False)


def _append(path: Path, batches: bytes) -> None:
    with path.open("ab") as file:
        file.write(batches)


def whole_batches(records: bytes, offset: int) -> tuple[bytes, int]:
    """The complete batches in a response, from the first one that ends at ``offset`` or later, and the next offset.

    Keeps every later batch, even if offsets go back or repeat: the log is judged as it is. Pure.
    """
    place, kept = 0, bytearray()
    while len(records) - place >= _OVERHEAD:
        base_offset, length = _HEAD.unpack_from(records, place)
        end = place + _OVERHEAD + length
        if length < _DELTA_AT - _OVERHEAD + _LAST_OFFSET_DELTA.size or end > len(records):
            break
        (delta,) = _LAST_OFFSET_DELTA.unpack_from(records, place + _DELTA_AT)
        if kept or base_offset + delta >= offset:
            kept += records[place:end]
            offset = max(offset, base_offset + delta + 1)
        place = end
    return bytes(kept), offset


async def _fetched(connection: BrokerConnection, final: FinalPartition, offset: int) -> bytes:
    wanted = FetchPartition(final.topic, final.partition, -1, offset, -1, -1, MAX_BYTES)
    request = FetchRequest(-1, 1_000, 1, MAX_BYTES, 0, 0, -1, [wanted])
    frame = build_request(VERSION, connection.next_correlation_id(), CLIENT_ID, request)

    def consume(answer: memoryview) -> bytes:
        response = parse_response(answer, VERSION)
        for each in response.partitions:
            if each.error_code:
                raise NotServed(
                    f"{final.topic}-{final.partition}: a fetch at offset {offset} failed with error {each.error_code}"
                )
            return b"" if each.records is None else bytes(each.records)  # type: ignore[arg-type]
        raise NotServed(f"{final.topic}-{final.partition}: a fetch failed with error {response.error_code}")

    return await connection.exchange(frame, consume)
