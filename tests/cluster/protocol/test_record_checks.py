"""The walk over a producer's records: what it tells, what it refuses, and that it agrees with the full decoder."""

from __future__ import annotations

import gzip
import struct

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from cluster.protocol.batch import CODEC_GZIP, HEADER_BYTES, parse_header
from cluster.protocol.compression import compress
from cluster.protocol.errors import CorruptBatch, ErrorCode, InvalidBatch
from cluster.protocol.record_checks import MAX_RECORDS, RecordFacts, walk_records
from cluster.protocol.records import NewRecord, build_batch, decode_records, write_varint

CODECS = range(5)


def with_payload(payload: bytes, codec: int, count: int, *, packed: bool = False) -> bytes:
    """A batch around any bytes, with a good checksum."""
    blob = payload if packed else compress(codec, payload)
    checked = struct.pack(">hiqqqhii", codec, count - 1, 1000, 1000, -1, -1, -1, count) + blob
    return struct.pack(">qiibI", 0, 9 + len(checked), -1, 2, crc32c(checked)) + checked


def record(offset_delta: int = 0, key: bytes | None = b"k", extra: bytes = b"") -> bytes:
    body = b"\x00" + write_varint(5) + write_varint(offset_delta)
    body += write_varint(-1) if key is None else write_varint(len(key)) + key
    body += write_varint(1) + b"v" + write_varint(0) + extra
    return write_varint(len(body)) + body


def walk(batch: bytes, **options: int) -> RecordFacts:
    return walk_records(memoryview(batch), parse_header(batch), **options)


def refusal(batch: bytes, **options: int) -> ErrorCode:
    with pytest.raises(InvalidBatch) as refused:
        walk(batch, **options)
    return refused.value.error_code


@pytest.mark.parametrize("codec", CODECS)
def test_what_is_told(codec: int) -> None:
    """Times of all records, which lack a key, and whether the offsets run from 0."""
    records = [NewRecord(5, b"k", b"v"), NewRecord(3, None, b"w", [("h", None)]), NewRecord(9, b"", None)]
    assert walk(build_batch(records, codec=codec)) == RecordFacts(True, [1], [5, 3, 9])
    assert not walk(with_payload(record(0) + record(2), codec, 2)).has_offsets_in_order


def test_a_long_way_to_say_null() -> None:
    """-1 in two bytes is no key all the same."""
    long = record(key=None).replace(b"\x01", b"\x81\x00", 1)
    body = write_varint(len(long) - 1) + long[1:]
    assert walk(with_payload(body, 0, 1)).without_key == [0]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    ("payload", "count"),
    [
        (record(), 2),
        (record(0) + record(1), 1),
        (record()[:-1], 1),
        (record() + b"\x00", 1),
        (record(extra=b"\x00"), 1),
        (write_varint(-3) + record(), 1),
        (record(key=b"k" * 10).replace(write_varint(10), write_varint(60), 1), 1),
        (b"\xff" * 40, 1),
    ],
    ids=["too few", "too many", "cut short", "bytes after", "wrong size", "negative", "beyond", "endless varint"],
)
def test_records_that_are_not_what_they_say(codec: int, payload: bytes, count: int) -> None:
    """INVALID_RECORD, in every codec."""
    assert refusal(with_payload(payload, codec, count)) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_what_cannot_be_unpacked(codec: int) -> None:
    """UNKNOWN_SERVER_ERROR, as Kafka answers."""
    assert refusal(with_payload(b"no such data", codec, 1, packed=True)) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_bomb_is_refused_by_its_limit() -> None:
    """What would unpack to more than the limit is given up, and so are more records than anybody sends."""
    bomb = with_payload(gzip.compress(bytes(10_000_000)), CODEC_GZIP, 1, packed=True)
    assert len(bomb) < 20_000
    assert refusal(bomb, limit_bytes=1_000_000) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert refusal(with_payload(b"", 0, MAX_RECORDS + 1)) is ErrorCode.INVALID_RECORD


@given(st.sampled_from(CODECS), st.binary(max_size=80), st.integers(1, 4), st.integers(0, 255), st.integers(0, 79))
def test_the_walk_agrees_with_the_decoder(codec: int, noise: bytes, count: int, byte: int, place: int) -> None:
    """On damaged records either both refuse, or both find the same times and keys. Nothing else comes out."""
    payload = bytearray(b"".join(record(index, b"key" if index % 2 else None) for index in range(count)) + noise[:1])
    payload[place % len(payload)] = byte & 0x7F
    batch = with_payload(bytes(payload), codec, count)
    assert len(batch) >= HEADER_BYTES
    try:
        found = walk(batch)
    except InvalidBatch:
        with pytest.raises(CorruptBatch):
            decode_records(batch)
        return
    decoded = decode_records(batch)
    assert found.timestamps == [each.timestamp for each in decoded]
    assert found.without_key == [index for index, each in enumerate(decoded) if each.key is None]
