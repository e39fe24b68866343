"""A batch written again: with fewer records, as compaction does it (Kafka's LogCleaner), or with another codec.

Owns what stays as it was: base and last offset, producer, sequence and leader epoch, so that offsets and sequences
never change. Does not own which records stay (``cluster.log.compaction``), nor which codec a topic wants.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from crc32c import crc32c

from cluster.protocol.batch import (
    CODEC_MASK,
    CRC_FROM,
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
)
from cluster.protocol.compression import compress, decompress
from cluster.protocol.primitives import Buffer
from cluster.protocol.records import Record, pack_record

_HEAD = struct.Struct(">qiibI")
_CHECKED = struct.Struct(">hiqqqhii")


def rebuild_batch(header: BatchHeader, records: Sequence[Record], delete_horizon_ms: int | None) -> bytes:
    """The batch of ``header`` with these of its records.

    With a delete horizon that takes the place of the base timestamp, and the records' deltas count from there. The
    greatest timestamp is that of the records that stay; under LogAppendTime it belongs to all, and stays.
    """
    base_timestamp = delete_horizon_ms if delete_horizon_ms is not None else header.base_timestamp
    packed = b"".join(pack_record(record, record.offset - header.base_offset, base_timestamp) for record in records)
    attributes = header.attributes | (DELETE_HORIZON_BIT if delete_horizon_ms is not None else 0)
    stamped = header.is_log_append_time
    max_timestamp = header.max_timestamp if stamped else max(record.timestamp for record in records)
    return _assemble(header, attributes, base_timestamp, max_timestamp, len(records), compress(header.codec, packed))


def recompress_batch(batch: Buffer, header: BatchHeader, codec: int) -> bytes:
    """The batch of ``header`` with the same records in another codec.

    Raises ``CorruptBatch`` if they cannot be unpacked.
    """
    packed = decompress(header.codec, memoryview(batch)[HEADER_BYTES : header.size_bytes])
    attributes = header.attributes & ~CODEC_MASK | codec
    times = header.base_timestamp, header.max_timestamp
    return _assemble(header, attributes, *times, header.record_count, compress(codec, packed))


def with_max_timestamp(batch: Buffer, header: BatchHeader, max_timestamp: int) -> bytes:
    """The batch of ``header`` with another greatest timestamp in it: its records are taken as they are."""
    payload = bytes(memoryview(batch)[HEADER_BYTES : header.size_bytes])
    return _assemble(header, header.attributes, header.base_timestamp, max_timestamp, header.record_count, payload)


def empty_batch(header: BatchHeader) -> bytes:
    """The batch of ``header`` without records: what it says about offsets and its producer's sequence survives."""
    attributes = header.attributes & ~(CODEC_MASK | DELETE_HORIZON_BIT)
    return _assemble(header, attributes, header.max_timestamp, header.max_timestamp, 0, b"")


def _assemble(
    header: BatchHeader, attributes: int, base_timestamp: int, max_timestamp: int, count: int, payload: bytes
) -> bytes:
    checked = (
        _CHECKED.pack(
            attributes,
            header.last_offset_delta,
            base_timestamp,
            max_timestamp,
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            count,
        )
        + payload
    )
    length = CRC_FROM - LOG_OVERHEAD + len(checked)
    return _HEAD.pack(header.base_offset, length, header.leader_epoch, MAGIC, crc32c(checked)) + checked
