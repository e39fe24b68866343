"""The segment reader against other readers, on vectors, on made batches and on damaged bytes."""

from __future__ import annotations

import resource
import struct
import warnings
import zlib
from pathlib import Path
from typing import Any

import cramjam
import crc32c
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.batches import CODECS, BatchFields, Record, encode_batch
from tests.verifier.oracle import reading as oracle
from verifier.evidence.sequenced_value import encode
from verifier.segments import records as records_module
from verifier.segments import value_spans, walk
from verifier.segments.compression import MAX_DECOMPRESSED_BYTES, DecompressionError, decompress
from verifier.segments.records import find_values
from verifier.segments.rows import SegmentFile, find_segments, read_segment
from verifier.segments.value_spans import BatchChunk, find_spans

with warnings.catch_warnings():
    # kafka-python loads its schemas by a call that Python 3.11 deprecates
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.memory_records import MemoryRecords

#: Made by Kafka 3.8.0's own classes. Three records "v" * 10, key "k".
VECTORS = {
    "gzip": "000000000000000000000059ffffffff024066a60400010000000200000000000003e800000000000003eaffffffffffffffffffff"
    "ffffffff000000031f8b08000000000000ff5362606060ca16298303062506262674111616541100cf8b0a2a36000000",
    "snappy": "00000000000000000000006bffffffff02ccc6c10700020000000200000000000003e800000000000003eaffffffffffffffffff"
    "ffffffffff0000000382534e4150505900000000010000000100000026361c22000000026b147615011000220002023e12003c0404026b1476"
    "76767676767676767600",
    "lz4": "00000000000000000000005effffffff0217e0185e00030000000200000000000003e800000000000003eaffffffffffffffffffff"
    "ffffffff0000000304224d186040821e0000008522000000026b147601005c00220002021200250404120050767676760000000000",
    "zstd": "000000000000000000000056ffffffff020185a3bc00040000000200000000000003e800000000000003eaffffffffffffffffffff"
    "ffffffff0000000328b52ffd0058cc00007822000000026b147600220002020404030040c635912e0017010000",
}
#: A transactional batch of two records (one with headers), and a commit marker.
TRANSACTION = (
    "00000000000000000000004bffffffff02228973fb0010000000010000018bcfe568000000018bcfe5680100000000000003e8000500000007"
    "00000002120000" "00026b047631001e0002020104763204026802780" "26e01"
)  # fmt: skip
COMMIT = (
    "000000000000006400000042000000030213" "35b9650030000000000000018bcfe568020000018bcfe5680200000000000003e80005ffff"
    "ffff00000001200000000800000001" "0c00000000000900"
)  # fmt: skip


def rows_of(path: Path, data: bytes, run_id: int = 77, chunk_bytes: int = 1 << 20) -> list[dict[str, Any]]:
    path.write_bytes(data)
    segment = SegmentFile("run", run_id, 1, "t", 0, 0, str(path))
    return pa.Table.from_batches(list(read_segment(segment, chunk_bytes))).to_pylist()


def values_of(data: bytes) -> list[bytes | None]:
    """All values of a segment's bytes, by the verifier's own steps."""
    buffer = np.frombuffer(data, dtype=np.uint8)
    found = walk.walk(buffer)
    values: list[bytes | None] = []
    for position, size in zip(found.positions.tolist(), found.sizes.tolist(), strict=True):
        fields = walk.headers(buffer, np.array([position]))
        codec = int(fields["attributes"][0]) & walk.CODEC_MASK
        blob = data[position + walk.HEADER_BYTES : position + size]
        plain = np.frombuffer(decompress(codec, blob) if codec else blob, dtype=np.uint8)
        counts = fields["record_count"].astype(np.int64)
        records = find_values(plain, np.array([0]), np.array([plain.size]), counts)
        assert not records.damaged.any()
        for start, length in zip(records.position.tolist(), records.size.tolist(), strict=True):
            values.append(None if length < 0 else plain[start : start + length].tobytes())
    return values


def kafka_python_values(data: bytes) -> list[bytes | None]:
    values: list[bytes | None] = []
    records = MemoryRecords(data)
    while records.has_next():
        batch = records.next_batch()
        assert batch.validate_crc()
        values += [record.value for record in batch]
    return values


@pytest.mark.parametrize("codec", VECTORS)
def test_kafkas_own_batches_are_read(codec: str) -> None:
    """Each codec's vector, made by Apache Kafka, gives its three values, as it does to kafka-python."""
    data = bytes.fromhex(VECTORS[codec])
    assert values_of(data) == [b"v" * 10] * 3 == kafka_python_values(data)


def test_a_transactional_batch_and_its_marker(tmp_path: Path) -> None:
    """Headers, null keys and null values are stepped over; a control batch is a batch and has no values."""
    data, marker = bytes.fromhex(TRANSACTION), bytes.fromhex(COMMIT)
    assert values_of(data) == [b"v1", b"v2"] == kafka_python_values(data)
    rows = rows_of(tmp_path / "0.log", data + marker)
    assert [row["problem"] for row in rows if row["kind"] == "batch"] == [None, None]
    assert [(row["base_offset"], row["value_problem"]) for row in rows if row["kind"] == "span"] == [(0, "foreign")]
    assert (rows[1]["producer_id"], rows[1]["producer_epoch"], rows[0]["base_sequence"]) == (1000, 5, 7)


records = st.builds(
    Record,
    value=st.none() | st.binary(max_size=200),
    key=st.none() | st.binary(max_size=20),
    headers=st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=9)), max_size=2),
    timestamp_delta=st.integers(-(2**40), 2**40),
)
batches = st.lists(
    st.tuples(st.lists(records, min_size=1, max_size=6), st.sampled_from(sorted(CODECS)), st.integers(-1, 2**40)),
    min_size=1,
    max_size=4,
)


@given(batches)
def test_all_readers_agree_on_any_batches(drawn: list[tuple[list[Record], str, int]]) -> None:
    """The verifier's reader, kafka-python's and the oracle's find the same values in the same bytes."""
    data, offset = b"", 0
    for content, codec, producer_id in drawn:
        data += encode_batch(content, BatchFields(base_offset=offset, codec=codec, producer_id=producer_id))
        offset += len(content)
    wanted = [record.value for content, _, _ in drawn for record in content]
    assert values_of(data) == wanted == kafka_python_values(data)


def test_the_cluster_reads_what_the_verifier_reads() -> None:
    """The cluster's decoder, which shares no line with the verifier's, finds the same values."""
    cluster_records = pytest.importorskip("cluster.protocol.records")
    for codec in CODECS:
        data = encode_batch([Record(b"a" * 50), Record(None), Record(b"b")], BatchFields(codec=codec))
        assert [record.value for record in cluster_records.decode_records(data)] == values_of(data)


def test_the_crc_is_checked_over_the_right_bytes() -> None:
    """Offset and leader epoch lie outside the CRC; every other byte behind it lies inside."""
    data = bytearray(encode_batch([Record(b"value")], BatchFields()))
    for position in (0, 7, 12, 15):
        changed = bytearray(data)
        changed[position] ^= 1
        assert _crc_ok(changed)
    for position in range(17, len(data)):
        changed = bytearray(data)
        changed[position] ^= 1
        assert not _crc_ok(changed)


def _crc_ok(data: bytearray) -> bool:
    buffer = np.frombuffer(bytes(data), dtype=np.uint8)
    crc = np.array([struct.unpack_from(">I", data, 17)[0]], dtype=np.uint32)
    return bool(walk.check_crcs(buffer, np.array([0]), np.array([len(data)]), crc)[0])


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_are_walked_without_an_error(junk: bytes, behind_a_batch: bool) -> None:
    """The walk ends where batches end and says what follows; it accounts for every byte."""
    data = (encode_batch([Record(b"x")], BatchFields()) if behind_a_batch else b"") + junk
    found = walk.walk(np.frombuffer(data, dtype=np.uint8))
    assert int(found.sizes.sum()) == found.tail_position
    assert (found.tail == "") == (found.tail_position == len(data))


def test_records_stand_in_the_order_of_their_offsets() -> None:
    """A batch whose records have offsets 0, 2, 1 or 0, 1, 1 is damaged."""
    good = encode_batch([Record(b"a"), Record(b"b"), Record(b"c")], BatchFields())[walk.HEADER_BYTES :]
    size = len(good) // 3
    for order, is_damaged in (((0, 1, 2), False), ((0, 2, 1), True), ((0, 1, 1), True)):
        data = b"".join(good[each * size : (each + 1) * size] for each in order)
        found = find_values(np.frombuffer(data, np.uint8), np.array([0]), np.array([len(data)]), np.array([3]))
        assert found.damaged.tolist() == [is_damaged], order


@given(st.binary(max_size=120), st.integers(-3, 40))
def test_damaged_records_mark_their_batch_and_no_other(junk: bytes, count: int) -> None:
    """Bytes that are not the announced records never raise and leave the neighbor's values alone."""
    good = encode_batch([Record(b"first"), Record(b"second")], BatchFields())[walk.HEADER_BYTES :]
    buffer = np.frombuffer(good + junk, dtype=np.uint8)
    starts, ends = np.array([0, len(good)]), np.array([len(good), len(good) + len(junk)])
    found = find_values(buffer, starts, ends, np.array([2, count]))
    assert not found.damaged[0]
    assert [buffer[p : p + s].tobytes() for p, s in zip(found.position, found.size, strict=True)][:2] == [
        b"first", b"second",
    ]  # fmt: skip
    try:
        wanted = oracle.read_records(junk, count)
    except (ValueError, IndexError):
        assert found.damaged[1]
    else:
        assert not found.damaged[1]
        assert len(wanted) == int((found.batch == 1).sum())


def test_spans_follow_the_values(tmp_path: Path) -> None:
    """A run ends where stream, sequence, batch or the state of a value changes."""
    values = [encode(77, 1, 5, 9), encode(77, 1, 6, 9), encode(77, 1, 8, 9), encode(77, 2, 9, 9), b"?", b"??"]
    values += [encode(78, 1, 1, 9), _damaged(encode(77, 1, 2, 9, size_bytes=60)), encode(77, 1, 3, 9, flags=1)]
    data = encode_batch([Record(value) for value in values], BatchFields(base_offset=10))
    data += encode_batch([Record(encode(77, 1, 4, 9))], BatchFields(base_offset=19))
    rows = [row for row in rows_of(tmp_path / "0.log", data) if row["kind"] == "span"]
    names = ("first_offset", "last_offset", "stream", "first_sequence", "last_sequence", "sentinel", "value_problem")
    assert [tuple(row[name] for name in names) for row in rows] == [
        (10, 11, 1, 5, 6, False, None),
        (12, 12, 1, 8, 8, False, None),
        (13, 13, 2, 9, 9, False, None),
        (14, 15, None, None, None, False, "foreign"),
        (16, 16, 1, 1, 1, False, "run"),
        (17, 17, 1, 2, 2, False, "payload"),
        (18, 18, 1, 3, 3, True, None),
        (19, 19, 1, 4, 4, False, None),
    ]


def _damaged(value: bytes) -> bytes:
    return value[:-1] + bytes([value[-1] ^ 1])


@pytest.mark.parametrize("chunk_bytes", [1, 300, 1 << 20])
def test_a_file_is_accounted_for_whatever_the_chunks(tmp_path: Path, chunk_bytes: int) -> None:
    """Batches sum up to what was walked, the torn tail is counted apart, and chunks change nothing."""
    whole = b"".join(
        encode_batch([Record(encode(77, 1, n, 1))] * 2, BatchFields(base_offset=2 * n, codec=codec))
        for n, codec in enumerate(CODECS)
    )
    rows = rows_of(tmp_path / "0.log", whole + whole[:30], chunk_bytes=chunk_bytes)
    file = rows[-1]
    assert (file["kind"], file["problem"], file["size_bytes"]) == ("file", "torn", len(whole) + 30)
    assert file["position"] == len(whole) == sum(row["size_bytes"] for row in rows if row["kind"] == "batch")
    assert (file["record_count"], file["next_offset"]) == (len(CODECS), 2 * len(CODECS))
    assert [row["first_offset"] for row in rows if row["kind"] == "span"] == list(range(2 * len(CODECS)))


def test_an_empty_file_is_a_file(tmp_path: Path) -> None:
    """A segment that was rolled and not yet written gives its file row alone."""
    assert [(row["kind"], row["next_offset"], row["problem"]) for row in rows_of(tmp_path / "0.log", b"")] == [
        ("file", 0, None)
    ]


def test_segments_are_found_wherever_the_data_lies(tmp_path: Path) -> None:
    """Only 20-digit logs in partition directories count; what is being deleted, and the broker's own log, do not."""
    for name in ("data/t-0", "other/t-with-dash-12", "data/t-1.0123456789abcdef0123456789abcdef-delete"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "00000000000000000042.log").touch()
    (tmp_path / "data/t-0/00000000000000000042.index").touch()
    (tmp_path / "broker.log").touch()
    found = find_segments("run", 7, 3, tmp_path)
    assert [(each.topic, each.partition, each.base_offset, each.broker) for each in found] == [
        ("t", 0, 42, 3), ("t-with-dash", 12, 42, 3),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("codec", "blob"), [(1, b"no"), (2, b"\xff\xff\xff\xff\x7f"), (3, b"no"), (4, b"no"), (7, b"")]
)
def test_what_does_not_decompress_says_so(codec: int, blob: bytes) -> None:
    """Damage and absurd lengths are one kind of error, and cost no memory."""
    with pytest.raises(DecompressionError):
        decompress(codec, blob)


def test_raw_snappy_is_read_as_well() -> None:
    """librdkafka writes snappy without Java's framing."""
    plain = b"abc" * 100
    assert decompress(2, bytes(cramjam.snappy.compress_raw(plain))) == plain


def test_a_compressed_batch_with_a_wrong_crc_is_not_decompressed() -> None:
    """Its bytes cannot be trusted; a plain one is still read for what it tells."""
    for codec, found in (("none", 1), ("zstd", 0)):
        data = encode_batch([Record(encode(77, 1, 0, 1))], BatchFields(codec=codec, extra={"crc": 1}))
        buffer = np.frombuffer(data, dtype=np.uint8)
        positions, sizes = np.array([0]), np.array([len(data)])
        fields = walk.headers(buffer, positions)
        crc_ok = walk.check_crcs(buffer, positions, sizes, fields["crc"])
        chunk = BatchChunk(buffer, positions, sizes, fields, crc_ok, walk.problems(fields, crc_ok))
        assert find_spans(77, chunk).batch.size == found
        assert chunk.problems == ["the CRC does not match the bytes"]


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_batches_of_which_none_decompresses_are_damaged(tmp_path: Path, codec: int) -> None:
    """With a CRC that matches: a plain batch that says it is compressed, alone in its file."""
    data = bytearray(encode_batch([Record(encode(77, 1, 0, 1))], BatchFields()))
    struct.pack_into(">h", data, 21, codec)
    struct.pack_into(">I", data, 17, crc32c.crc32c(data[21:]))
    problems = [row["problem"] for row in rows_of(tmp_path / "00000000000000000000.log", bytes(data)) if row["problem"]]
    assert problems, "nothing was said"
    assert all("its records do not decompress" in problem for problem in problems)


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_what_unpacks_to_too_much_is_damage_and_takes_no_memory(codec: int) -> None:
    """Half a gigabyte of zeros fits into a few megabytes."""
    packed = packed_zeros(codec, blocks=32)
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DecompressionError):
        decompress(codec, packed)
    used_bytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb) << 10
    assert used_bytes < MAX_DECOMPRESSED_BYTES * 3 // 2


def packed_zeros(codec: int, blocks: int) -> bytes:
    """So many times 16 MB of zeros, without ever holding more than one of them."""
    block = bytes(16 << 20)
    if codec == 1:
        gzip = zlib.compressobj(1, wbits=31)
        return b"".join(gzip.compress(block) for _ in range(blocks)) + gzip.flush()
    if codec == 2:
        raw = bytes(cramjam.snappy.compress_raw(block))
        return b"\x82SNAPPY\x00" + bytes(8) + (struct.pack(">i", len(raw)) + raw) * blocks
    compressor = (cramjam.lz4 if codec == 3 else cramjam.zstd).Compressor()
    for _ in range(blocks):
        compressor.compress(block)
    return bytes(compressor.finish())


@pytest.mark.parametrize("unpacked_bytes", [1, 200, 1 << 20])
def test_compressed_batches_are_read_in_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unpacked_bytes: int
) -> None:
    """However many are unpacked at a time, the same values are found."""
    monkeypatch.setattr(value_spans, "UNPACKED_BYTES", unpacked_bytes)
    batches = [
        encode_batch(
            [Record(encode(77, 1, 10 * number + step, 1)) for step in range(3)],
            BatchFields(base_offset=3 * number, codec="zstd" if number % 3 else "none"),
        )
        for number in range(7)
    ]
    found = rows_of(tmp_path / "00000000000000000000.log", b"".join(batches))
    stretches = [(row["first_offset"], row["first_sequence"], row["stream"]) for row in found if row["kind"] == "span"]
    assert stretches == [(3 * number, 10 * number, 1) for number in range(7)]


@given(st.integers(0, 400), st.integers(1, 255))
def test_one_flipped_byte_is_seen_as_the_oracle_sees_it(position: int, flip: int) -> None:
    """Wherever a byte of a batch changes, both readers tell the same of the batch and its values."""
    values = [encode(77, 1, n, 1, size_bytes=60) for n in range(4)]
    data = bytearray(encode_batch([Record(value) for value in values], BatchFields(producer_id=5, base_sequence=0)))
    data[position % len(data)] ^= flip
    if position % 3 == 0:  # also with a CRC that fits
        struct.pack_into(">I", data, 17, crc32c.crc32c(bytes(data[21:])))
    buffer = np.frombuffer(bytes(data), dtype=np.uint8)
    found = walk.walk(buffer)
    if found.tail or found.sizes.size != 1:
        return
    fields = walk.headers(buffer, found.positions)
    crc_ok = walk.check_crcs(buffer, found.positions, found.sizes, fields["crc"])
    chunk = BatchChunk(buffer, found.positions, found.sizes, fields, crc_ok, walk.problems(fields, crc_ok))
    spans = find_spans(77, chunk)
    wanted = oracle.read_batch(bytes(data), 0, 77)
    assert (chunk.problems[0] is None) == (wanted.problem is None)
    told = [
        (
            offset,
            int(spans.stream[n]) if spans.problem[n] in (0, 1) and spans.stream[n] >= 0 else None,
        )
        for n in range(spans.batch.size)
        for offset in range(int(spans.first_offset[n]), int(spans.last_offset[n]) + 1)
    ]
    assert told == sorted((slot.offset, slot.value[0] if slot.value else None) for slot in wanted.slots)


def read_every_way(
    buffer: np.ndarray[Any, Any], starts: list[int], ends: list[int], counts: list[int]
) -> tuple[Any, ...]:
    """What is found as it is; then without the step that takes all records at once: in lockstep, and one by one."""
    arrays = [np.array(each, dtype=np.int64) for each in (starts, ends, counts)]
    quick = find_values(buffer, *arrays)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "verifier.segments.records._all_at_once",
            lambda _buffer, starts, *_: np.zeros(starts.size, dtype=np.bool_),
        )
        patch.setattr("verifier.segments.records.WIDE", 0)
        in_lockstep = find_values(buffer, *arrays)
        patch.setattr("verifier.segments.records.WIDE", 1 << 30)
        one_by_one = find_values(buffer, *arrays)
    return quick, in_lockstep, one_by_one


@given(
    st.lists(
        st.tuples(
            st.integers(1, 90),
            st.sampled_from([0, 1, 50, 56, 57, 60, 64, 200]),
            st.integers(-70, 70),
            st.none() | st.binary(max_size=2),
        ),
        min_size=1,
        max_size=4,
    ),
    st.lists(st.tuples(st.integers(0, 100_000), st.integers(1, 255)), max_size=3),
    st.integers(1, 100),
)
def test_records_of_one_length_are_read_as_any_others(
    drawn: list[tuple[int, int, int, bytes | None]], flips: list[tuple[int, int]], group: int
) -> None:
    """Batches of equal records, whole or with any bytes changed: at once and step by step, the same is found."""
    blobs, counts = [], []
    for count, size, timestamp, key in drawn:
        records = [Record(bytes([n % 256]) * size, key, timestamp_delta=timestamp) for n in range(count)]
        blobs.append(encode_batch(records, BatchFields())[walk.HEADER_BYTES :])
        counts.append(count)
    ends = np.cumsum([len(blob) for blob in blobs]).tolist()
    data = bytearray(b"".join(blobs))
    for position, flip in flips:
        data[position % len(data)] ^= flip
    buffer = np.frombuffer(bytes(data), dtype=np.uint8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("verifier.segments.records.GROUP_RECORDS", group)
        quick, *slow = read_every_way(buffer, [0, *ends[:-1]], ends, counts)
    assert all(np.array_equal(one, other) for way in slow for one, other in zip(quick, way, strict=True))
    if not flips:
        assert not quick.damaged.any()
        assert quick.batch.size == sum(counts)


def test_any_change_of_a_byte_is_seen_by_both_ways() -> None:
    """Every byte of a batch of equal records, with every bit of it, a long varint and an announced count included."""
    blob = encode_batch([Record(b"v" * 57, timestamp_delta=n) for n in range(3)], BatchFields())[walk.HEADER_BYTES :]
    for position in range(len(blob)):
        for bit in range(8):
            data = bytearray(blob)
            data[position] ^= 1 << bit
            buffer = np.frombuffer(bytes(data), dtype=np.uint8)
            for count in (2, 3, 4):
                quick, *slow = read_every_way(buffer, [0], [len(data)], [count])
                for way in slow:
                    assert all(np.array_equal(one, other) for one, other in zip(quick, way, strict=True)), (
                        position,
                        bit,
                    )


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(-1, 3)), max_size=60), st.integers(-2, 2))
def test_records_of_any_lengths_are_read_as_the_oracle_reads_them(drawn: list[tuple[int, int]], wrong: int) -> None:
    """However many batches they are in, and with a count that is not theirs."""
    records = [Record(b"v" * size, None if key < 0 else b"k" * key) for size, key in drawn]
    blob = encode_batch(records, BatchFields())[walk.HEADER_BYTES :] if records else b""
    count = len(records) + wrong
    buffer = np.frombuffer(blob * 2, dtype=np.uint8)
    for found in read_every_way(buffer, [0, len(blob)], [len(blob), 2 * len(blob)], [count, count]):
        assert found.damaged.tolist() == [bool(wrong) or not records] * 2
        values = [buffer[p : p + s].tobytes() for p, s in zip(found.position, found.size, strict=True)]
        assert values == ([] if found.damaged[0] else 2 * [b"v" * size for size, _ in drawn])


def test_a_batch_of_many_odd_records_takes_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step costs as much for one record as for hundreds: one for each record would be an hour for a bomb of zstd."""
    blob = encode_batch([Record(b"v" * (n % 2)) for n in range(5000)], BatchFields())[walk.HEADER_BYTES :]
    steps = []
    step = records_module._step

    def counted(*arguments: Any) -> Any:
        steps.append(arguments[1].size)
        return step(*arguments)

    monkeypatch.setattr(records_module, "_step", counted)
    found = find_values(np.frombuffer(blob, np.uint8), np.array([0]), np.array([len(blob)]), np.array([5000]))
    assert found.size.tolist() == [0, 1] * 2500
    assert len(steps) <= 2


def test_equal_records_are_read_at_once() -> None:
    """The short way is taken: through all lengths of an offset delta that a batch of this size has."""
    for size in (40, 53, 54, 55, 56, 57, 58, 120):
        blob = encode_batch([Record(b"v" * size) for _ in range(9000)], BatchFields())[walk.HEADER_BYTES :]
        buffer = np.frombuffer(blob, dtype=np.uint8)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("verifier.segments.records._in_lockstep", None)
            patch.setattr("verifier.segments.records._one_by_one", None)
            found = find_values(buffer, np.array([0]), np.array([len(blob)]), np.array([9000]))
        assert found.offset_delta.tolist() == list(range(9000))
