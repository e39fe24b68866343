"""A tiny writer of record batches v2, for tests: obvious, slow, and sharing no line with any reader.

The CRC is taken with the ``crc32c`` package; the verifier's reader uses another one.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import cramjam
import crc32c

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


@dataclass(frozen=True)
class Record:
    """One record; None is a null key or value."""

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp_delta: int = 0


@dataclass(frozen=True)
class BatchFields:
    """The fields of a batch header that a test may want to set."""

    base_offset: int = 0
    leader_epoch: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    codec: str = "none"
    attributes: int = 0
    base_timestamp: int = 1_700_000_000_000
    extra: dict[str, int] = field(default_factory=dict)


def varint(value: int) -> bytes:
    """Zig-zag variable-length integer, as Kafka writes it."""
    number = (value << 1) ^ (value >> 63)
    number &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def encode_record(record: Record, offset_delta: int) -> bytes:
    """One record with its length."""

    def optional(data: bytes | None) -> bytes:
        return varint(-1) if data is None else varint(len(data)) + data

    body = b"\x00" + varint(record.timestamp_delta) + varint(offset_delta)
    body += optional(record.key) + optional(record.value) + varint(len(record.headers))
    for name, value in record.headers:
        body += varint(len(name.encode())) + name.encode() + optional(value)
    return varint(len(body)) + body


def compress(codec: str, plain: bytes) -> bytes:
    """The records of a batch as the named codec frames them (snappy: Java's xerial framing)."""
    if codec == "gzip":
        return gzip.compress(plain)
    if codec == "snappy":
        block = bytes(cramjam.snappy.compress_raw(plain))
        return b"\x82SNAPPY\x00" + struct.pack(">iii", 1, 1, len(block)) + block
    if codec == "lz4":
        return bytes(cramjam.lz4.compress(plain))
    if codec == "zstd":
        return bytes(cramjam.zstd.compress(plain))
    return plain


def encode_batch(records: Sequence[Record], fields: BatchFields) -> bytes:
    """The bytes of one batch with a right CRC; ``fields.extra`` overrides header fields by name."""
    plain = b"".join(encode_record(record, delta) for delta, record in enumerate(records))
    blob = compress(fields.codec, plain)
    covered = struct.pack(
        ">hiqqqhii",
        fields.attributes | CODECS[fields.codec],
        fields.extra.get("last_offset_delta", len(records) - 1),
        fields.base_timestamp,
        fields.base_timestamp + max((record.timestamp_delta for record in records), default=0),
        fields.producer_id,
        fields.producer_epoch,
        fields.base_sequence,
        fields.extra.get("record_count", len(records)),
    )
    covered += blob
    crc = fields.extra.get("crc", crc32c.crc32c(covered))
    magic = fields.extra.get("magic", 2)
    body = struct.pack(">ibI", fields.leader_epoch, magic, crc) + covered
    return struct.pack(">qi", fields.base_offset, fields.extra.get("batch_length", len(body))) + body
