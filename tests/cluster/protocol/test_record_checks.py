"""The walk over a producer's records: what it tells, what it refuses, and that it agrees with the full decoder."""

from __future__ import annotations

import gzip
import struct
from random import Random

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from cluster.protocol import record_checks
from cluster.protocol.batch import CODEC_GZIP, HEADER_BYTES, parse_header
from cluster.protocol.compression import compress
from cluster.protocol.errors import CorruptBatch, ErrorCode, InvalidBatch
from cluster.protocol.record_checks import MAX_RECORDS, Effort, RecordFacts, walk_records
from cluster.protocol.record_spans import NO_SPAN
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
    return walk_records(memoryview(batch), parse_header(batch), Effort.all(**options))


def refusal(batch: bytes, **options: int) -> ErrorCode:
    with pytest.raises(InvalidBatch) as refused:
        walk(batch, **options)
    return refused.value.error_code


@pytest.mark.parametrize("codec", CODECS)
def test_what_is_told(codec: int) -> None:
    """Times of all records, which lack a key, and whether the offsets run from 0."""
    records = [NewRecord(5, b"k", b"v"), NewRecord(3, None, b"w", [("h", None)]), NewRecord(9, b"", None)]
    assert walk(build_batch(records, codec=codec)) == RecordFacts(True, [1], [0, -2, 4], 5)
    assert not walk(with_payload(record(0) + record(2), codec, 2)).has_offsets_in_order


@pytest.mark.parametrize("codec", CODECS)
def test_few_offsets_out_of_order_are_mended(codec: int) -> None:
    """All records are built again for one of them: a batch of very many is refused as soon as one is found."""
    most = record_checks.MOST_OUT_OF_ORDER
    swapped = [record(0), record(2), record(1), *(record(delta) for delta in range(3, most + 1))]
    assert not walk(with_payload(b"".join(swapped[:most]), codec, most)).has_offsets_in_order
    assert refusal(with_payload(b"".join(swapped), codec, most + 1)) is ErrorCode.INVALID_RECORD


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
    assert refusal(bomb, bytes_left=1_000_000) is ErrorCode.UNKNOWN_SERVER_ERROR
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


def batch_of_spans(seed: int) -> bytes:
    """Records of few shapes, in spans: the same lengths again and again, times that grow into more bytes."""
    random = Random(seed)
    records: list[NewRecord] = []
    now_ms = 1_700_000_000_000
    while len(records) < random.choice((3, 70, 300)):
        key = random.choice((None, b"", b"key", bytes(70)))
        value = random.choice((None, bytes(3), bytes(100), bytes(9000)))
        headers = random.choice(((), (), (("name", b"value"),)))
        step_ms = random.choice((0, 0, 1, 30, -1, 5000))
        for _ in range(random.choice((1, 2, 9, 90))):
            now_ms += step_ms
            records.append(NewRecord(now_ms, key, value, headers))
    return build_batch(records)


@pytest.mark.parametrize("seed", range(40))
def test_spans_are_told_as_single_records_are(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is checked together is what the decoder finds, one by one."""
    batch = batch_of_spans(seed)
    decoded = decode_records(batch)
    found = walk(batch)
    assert found.timestamps == [each.timestamp for each in decoded]
    assert found.without_key == [index for index, each in enumerate(decoded) if each.key is None]
    assert found.has_offsets_in_order
    monkeypatch.setattr(record_checks, "span_from", lambda *_arguments: NO_SPAN)
    assert walk(batch) == found


@pytest.mark.parametrize("seed", range(150))
def test_a_damaged_run_is_told_as_damaged_records_are(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte anywhere in a run may change a length, a time, an offset or nothing that is looked at."""
    random = Random(seed)
    records = [NewRecord(1000 + 2 * number, b"key", bytes(40)) for number in range(random.choice((20, 100)))]
    batch = bytearray(build_batch(records))
    for _ in range(random.choice((1, 2))):
        # Mostly among the first bytes of a record, where the lengths are.
        place = HEADER_BYTES + 50 * random.randrange(len(records)) + random.randrange(-6, 12)
        batch[min(max(place, HEADER_BYTES), len(batch) - 1)] = random.randrange(256)
    batch[17:21] = struct.pack(">I", crc32c(batch[21:]))
    outcomes = []
    for _ in range(2):
        try:
            outcomes.append(walk(bytes(batch)))
        except InvalidBatch as refused:
            outcomes.append(refused.error_code)
        monkeypatch.setattr(record_checks, "span_from", lambda *_arguments: NO_SPAN)
    assert outcomes[0] == outcomes[1]


def test_spans_save_the_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of equal records costs a few steps, not one for each record."""
    single = []
    read = record_checks._read
    monkeypatch.setattr(record_checks, "_read", lambda *arguments: single.append(1) or read(*arguments))
    records = [NewRecord(1_700_000_000_000 + number, b"key", bytes(100)) for number in range(150)]
    walk(build_batch(records))
    assert len(single) < 10


def test_records_without_a_shape_in_common_are_not_looked_at_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no runs are, fewer and fewer are tried."""
    tried = []
    monkeypatch.setattr(record_checks, "span_from", lambda *arguments: tried.append(arguments) or NO_SPAN)
    walk(build_batch([NewRecord(5, b"key", bytes(100)) for _ in range(5000)]))
    assert len(tried) < 12
