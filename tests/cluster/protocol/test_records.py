"""Records in batches: Kafka's own bytes, round trips in every codec, and bounds on what unpacks."""

from __future__ import annotations

import struct
import zlib

import cramjam
import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch

from cluster.protocol.batch import HEADER_BYTES, parse_header
from cluster.protocol.compression import _XERIAL_HEADER, CODEC_NAMES, compress, decompress
from cluster.protocol.errors import CorruptBatch
from cluster.protocol.records import NewRecord, Record, build_batch, decode_records, read_varint, write_varint
from tests.cluster.protocol.malformed import assert_only_malformed, mutations, peak_bytes
from tests.cluster.protocol.strategies import INT64, RECORDS
from tests.cluster.protocol.vectors import ABORT_MARKER, COMMIT_MARKER, COMPRESSED, TRANSACTIONAL

CODECS = st.sampled_from(sorted(CODEC_NAMES))


def with_payload(batch: bytes, payload: bytes) -> bytes:
    """The batch with other records, its length and checksum made right."""
    changed = bytearray(batch[:HEADER_BYTES] + payload)
    struct.pack_into(">i", changed, 8, len(changed) - 12)
    struct.pack_into(">I", changed, 17, crc32c(changed[21:]))
    return bytes(changed)


def test_a_batch_that_kafka_wrote():
    """Keys, nulls, headers and timestamps as documented; building the same records gives the same bytes."""
    assert decode_records(TRANSACTIONAL) == [
        Record(0, 1_700_000_000_000, b"k", b"v1", ()),
        Record(1, 1_700_000_000_001, None, b"v2", (("h", b"x"), ("n", None))),
    ]
    assert (
        build_batch(
            [
                NewRecord(1_700_000_000_000, b"k", b"v1"),
                NewRecord(1_700_000_000_001, None, b"v2", (("h", b"x"), ("n", None))),
            ],
            producer_id=1000,
            producer_epoch=5,
            base_sequence=7,
            transactional=True,
        )
        == TRANSACTIONAL
    )


@pytest.mark.parametrize(
    ("marker", "offset", "key"), [(ABORT_MARKER, 101, "00000000"), (COMMIT_MARKER, 100, "00000001")]
)
def test_a_marker_that_kafka_wrote(marker, offset, key):
    """A control record has its type in the key and the coordinator's epoch in the value."""
    (record,) = decode_records(marker)
    assert (record.offset, record.key, record.value) == (offset, bytes.fromhex(key), bytes.fromhex("000000000009"))
    assert (
        build_batch(
            [NewRecord(record.timestamp, record.key, record.value)],
            base_offset=offset,
            leader_epoch=3,
            producer_id=1000,
            producer_epoch=5,
            transactional=True,
            control=True,
        )
        == marker
    )


@pytest.mark.parametrize("name", sorted(COMPRESSED))
def test_compressed_batches_that_kafka_wrote(name):
    """All four codecs unpack to the same three records."""
    expected = [Record(offset, 1000 + offset, b"k", b"v" * 10, ()) for offset in range(3)]
    assert decode_records(COMPRESSED[name]) == expected


def test_the_smallest_batch():
    """One record without key and value is 68 bytes, with the checksum that Kafka computes."""
    batch = build_batch([NewRecord(0)])
    assert len(batch) == 68
    assert parse_header(batch).crc == 0x34BB9273


@given(RECORDS, CODECS, st.integers(0, 1 << 40))
def test_round_trip(records, codec, base_offset):
    """What is packed unpacks to the same records, in every codec, at their offsets."""
    batch = build_batch(records, codec=codec, base_offset=base_offset)
    assert decode_records(batch + b"whatever follows") == [
        Record(base_offset + index, *record) for index, record in enumerate(records)
    ]
    assert parse_header(batch).codec == codec


@given(RECORDS, st.sampled_from([0, 1, 2, 3, 4]))
def test_kafka_python_reads_our_batches(records, codec):
    """An independent reader finds the same records and a good checksum."""
    batch = DefaultRecordBatch(build_batch(records, codec=codec))
    assert batch.validate_crc()
    assert [(item.offset, item.timestamp, item.key, item.value, tuple(item.headers)) for item in batch] == [
        (index, record.timestamp, record.key, record.value, record.headers) for index, record in enumerate(records)
    ]


@given(INT64)
def test_varint_round_trip(value):
    """Any int64 comes back, and takes at most ten bytes."""
    data = write_varint(value)
    assert read_varint(data, 0) == (value, len(data))
    assert len(data) <= 10


def test_a_varint_ends():
    """A varint without an end is refused after ten bytes, however long the input is."""
    with pytest.raises(CorruptBatch):
        read_varint(b"\xff" * 1_000_000, 0)


def test_no_records():
    """A batch has at least one record."""
    with pytest.raises(ValueError, match="at least one"):
        build_batch([])


@pytest.mark.parametrize("size", [0, 1, 70_000, 200_000])
@pytest.mark.parametrize("codec", sorted(CODEC_NAMES))
def test_codecs_round_trip_at_every_block_size(codec, size):
    """Data below and above the codecs' block sizes, compressible and not."""
    for data in (b"a" * size, zlib.compress(bytes(range(256)) * 1000, 0)[:size]):
        assert decompress(codec, compress(codec, data)) == data


def test_raw_snappy_is_accepted():
    """librdkafka sends one raw block without xerial framing."""
    assert decompress(2, bytes(cramjam.snappy.compress_raw(b"hello" * 10))) == b"hello" * 10


def test_several_xerial_blocks():
    """snappy-java cuts long data into blocks, each with its length."""
    packed = compress(2, b"x" * 100_000)
    assert packed.startswith(b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")
    assert decompress(2, packed) == b"x" * 100_000


def test_lz4_frames_are_readable_by_java():
    """Independent blocks of 64 KiB without checksums, as Kafka's own writer makes them."""
    assert compress(3, b"a" * 200_000).startswith(bytes.fromhex("04224d18604082"))
    assert bytes(cramjam.lz4.decompress(compress(3, b"a" * 200_000))) == b"a" * 200_000


@pytest.mark.parametrize(("codec", "low", "high"), [(1, 1, 9), (3, 1, 12), (4, -50, 19)])
def test_a_higher_level_packs_tighter(codec, low, high):
    """KIP-390's levels are the codec's own; whoever reads need not know them."""
    data = b"".join(b"key-%d value-%d of some length; " % (number, number * number) for number in range(20_000))
    loose, tight = (compress(codec, data, level) for level in (low, high))
    assert len(tight) < len(loose) < len(data)
    assert decompress(codec, loose) == decompress(codec, tight) == data


@pytest.mark.parametrize(("codec", "level"), [(1, -1), (3, 9), (4, 3)])
def test_kafkas_default_levels_are_the_codecs_own(codec, level):
    """A batch is the same with the default level and without one."""
    data = b"one two three four " * 1000
    assert compress(codec, data, level) == compress(codec, data)


def test_lz4_of_a_high_level_is_readable_by_java():
    """Independent blocks of 64 KiB, without the content's size; levels above 12 are 12."""
    packed = compress(3, b"abcdefgh" * 50_000, 17)
    assert packed[4] & 0b0110_1000 == 0b0110_0000
    assert packed[5] == 0x40
    assert packed == compress(3, b"abcdefgh" * 50_000, 12)


def test_gzip_of_several_members():
    """A gzip stream may be a concatenation."""
    assert decompress(1, compress(1, b"one") + compress(1, b"two")) == b"onetwo"


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_bomb_is_refused_within_bounds(codec):
    """What unpacks to more than the limit is refused, and no more memory than the limit is used."""
    bomb = compress(codec, bytes(50_000_000))
    limit = 1_000_000

    def unpack() -> None:
        with pytest.raises(CorruptBatch):
            decompress(codec, bomb, limit)

    assert peak_bytes(unpack) < 2 * limit + 2 * len(bomb) + 100_000


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_data_cut_short_is_refused(codec):
    """At any point: a truncated blob never passes for a shorter one."""
    packed = compress(codec, b"".join(bytes((index % 251,)) * 3 for index in range(300)))
    for end in range(0, len(packed) - 1, 7):
        if codec == 2 and end == len(_XERIAL_HEADER):
            continue  # no blocks, a legal stream
        with pytest.raises(CorruptBatch):
            decompress(codec, packed[:end])


def test_unknown_codecs():
    """Codecs 5 to 7 do not exist, and are refused both ways."""
    with pytest.raises(CorruptBatch):
        decompress(5, b"x")
    with pytest.raises(ValueError, match="unknown codec"):
        compress(7, b"x")


@given(RECORDS, CODECS, mutations())
def test_damage_behind_a_good_checksum(records, codec, mutate):
    """Records that lie although the checksum holds are refused as corrupt, or happen to be valid."""
    batch = build_batch(records, codec=codec)
    assert_only_malformed(decode_records, with_payload(batch, mutate(batch[HEADER_BYTES:])))


def test_a_count_that_cannot_be():
    """Two thousand million declared records in seven bytes fail at once."""
    batch = bytearray(build_batch([NewRecord(0)]))
    struct.pack_into(">i", batch, 57, 2_147_483_647)
    batch = bytearray(with_payload(bytes(batch), bytes(batch[HEADER_BYTES:])))
    with pytest.raises(CorruptBatch):
        decode_records(batch)
