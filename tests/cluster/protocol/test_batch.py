"""The batch header, what may be changed in place, and the order in which a producer's batch is refused."""

from __future__ import annotations

import struct

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from cluster.protocol.batch import (
    HEADER_BYTES,
    INT32_MAX,
    crc_ok,
    decrement_sequence,
    increment_sequence,
    iter_batches,
    only_batch,
    only_batch_in_order,
    parse_header,
    set_log_append_time,
    set_offset_and_epoch,
    validate_from_client,
    validate_in_order,
)
from cluster.protocol.errors import CorruptBatch, ErrorCode, InvalidBatch
from cluster.protocol.records import NewRecord, build_batch, decode_records
from tests.cluster.protocol.malformed import assert_only_malformed, mutations
from tests.cluster.protocol.strategies import BATCH_HEADERS, INT32, INT64
from tests.cluster.protocol.vectors import COMMIT_MARKER, COMPRESSED, TRANSACTIONAL

LAYOUT = struct.Struct(">qiibIhiqqqhii")


@given(BATCH_HEADERS)
def test_header_round_trip(header):
    """Each field is read at its offset in Kafka's DefaultRecordBatch."""
    data = LAYOUT.pack(*header)
    assert len(data) == HEADER_BYTES
    assert parse_header(data) == header
    assert parse_header(memoryview(b"xyz" + data), 3) == header


def test_fields_of_a_batch_that_kafka_wrote():
    """The header of Kafka's own transactional batch reads as documented, and its checksum holds."""
    header = parse_header(TRANSACTIONAL)
    assert (header.size_bytes, len(TRANSACTIONAL)) == (87, 87)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (1000, 5, 7)
    assert (header.last_offset, header.next_offset, header.last_sequence) == (1, 2, 8)
    assert (header.base_timestamp, header.max_timestamp) == (1_700_000_000_000, 1_700_000_000_001)
    assert (header.codec, header.is_transactional, header.is_control, header.is_log_append_time) == (
        0,
        True,
        False,
        False,
    )
    assert crc_ok(TRANSACTIONAL, 0, 87)


def test_fields_of_a_control_batch_that_kafka_wrote():
    """A marker has no sequence and is both transactional and control."""
    header = parse_header(COMMIT_MARKER)
    assert (header.base_offset, header.leader_epoch, header.last_sequence) == (100, 3, -1)
    assert (header.is_control, header.is_transactional, header.size_bytes) == (True, True, 78)
    assert crc_ok(COMMIT_MARKER, 0, 78)


@pytest.mark.parametrize(("name", "codec"), [("gzip", 1), ("snappy", 2), ("lz4", 3), ("zstd", 4)])
def test_checksum_of_compressed_batches_that_kafka_wrote(name, codec):
    """The checksum covers the compressed bytes, so it is verified without unpacking."""
    batch = COMPRESSED[name]
    assert crc_ok(batch, 0, len(batch))
    assert parse_header(batch).codec == codec


@pytest.mark.parametrize(
    ("sequence", "step", "result"),
    [(0, 1, 1), (INT32_MAX, 1, 0), (INT32_MAX - 1, 4, 2), (INT32_MAX, 0, INT32_MAX), (7, 0, 7)],
)
def test_sequences_wrap_behind_the_greatest_int32(sequence, step, result):
    """2147483647 is followed by 0, and going back undoes going forward."""
    assert increment_sequence(sequence, step) == result
    assert decrement_sequence(result, step) == sequence


@given(st.integers(0, INT32_MAX), st.integers(0, INT32_MAX))
def test_decrement_undoes_increment(sequence, step):
    """For any sequence and step, and the result is always a sequence."""
    forward = increment_sequence(sequence, step)
    assert 0 <= forward <= INT32_MAX
    assert decrement_sequence(forward, step) == sequence


@given(INT64, INT32)
def test_offset_and_epoch_are_outside_the_checksum(base_offset, leader_epoch):
    """A batch gets its place in the log in place, and its checksum still holds."""
    batch = bytearray(b"??" + TRANSACTIONAL)
    set_offset_and_epoch(memoryview(batch), 2, base_offset, leader_epoch)
    header = parse_header(batch, 2)
    assert (header.base_offset, header.leader_epoch) == (base_offset, leader_epoch)
    assert crc_ok(batch, 2, 87)
    assert batch[2 + 16 :] == TRANSACTIONAL[16:]


def test_log_append_time_needs_a_new_checksum():
    """Stamping sets the bit and the greatest timestamp, and the checksum is that of the changed bytes."""
    batch = bytearray(TRANSACTIONAL)
    set_log_append_time(batch, 0, 1_800_000_000_000)
    header = parse_header(batch)
    assert header.is_log_append_time
    assert header.max_timestamp == 1_800_000_000_000
    assert crc_ok(batch, 0, 87)
    assert {record.timestamp for record in decode_records(batch)} == {1_800_000_000_000}


def test_log_append_time_of_a_partial_batch():
    """A batch that is not wholly there cannot be stamped."""
    with pytest.raises(CorruptBatch):
        set_log_append_time(bytearray(TRANSACTIONAL[:-1]), 0, 0)


def test_batches_are_walked_up_to_a_partial_tail():
    """A response may end within a batch; what is whole before it is used."""
    whole = TRANSACTIONAL + COMMIT_MARKER
    for cut in (1, 20, 61, 70, 77):
        walked = list(iter_batches(memoryview(whole + COMMIT_MARKER[:cut])))
        assert [(position, header.base_offset) for position, header in walked] == [(0, 0), (87, 100)]


def test_walking_stops_at_what_is_no_batch():
    """Garbage is not a partial tail: a header that cannot be is told."""
    with pytest.raises(CorruptBatch):
        list(iter_batches(TRANSACTIONAL + bytes(100)))


@pytest.mark.parametrize("size", [0, 1, 60])
def test_a_header_needs_61_bytes(size):
    """Fewer bytes are refused, at any position."""
    with pytest.raises(CorruptBatch):
        parse_header(TRANSACTIONAL[:size])
    with pytest.raises(CorruptBatch):
        parse_header(TRANSACTIONAL, len(TRANSACTIONAL) - size)


@pytest.mark.parametrize(("position", "size"), [(0, 60), (0, 88), (1, 87), (-1, 87), (0, 0)])
def test_checksum_of_what_is_not_there_does_not_hold(position, size):
    """A size or position outside the buffer is not verified but refused."""
    assert not crc_ok(TRANSACTIONAL, position, size)


def client_batch(**changes) -> bytearray:
    """A batch as a producer sends it, with header fields changed and the checksum made right again."""
    batch = bytearray(
        build_batch(
            [NewRecord(1000, b"k", b"v"), NewRecord(1001, b"k", b"w")], producer_id=9, producer_epoch=0, base_sequence=0
        )
    )
    header = parse_header(batch)._replace(**{name: value for name, value in changes.items() if name != "crc"})
    LAYOUT.pack_into(batch, 0, *header)
    struct.pack_into(">I", batch, 17, changes.get("crc", crc32c(batch[21:])))
    return batch


def refusal(batch: bytes, **options) -> ErrorCode | None:
    """The code with which a batch is refused, or None."""
    try:
        limit = options.pop("limit", 1_000_000)
        header = only_batch(memoryview(batch), **options)
        validate_from_client(memoryview(batch), header, limit)
    except InvalidBatch as error:
        return error.error_code
    return None


def test_a_good_batch_is_accepted():
    """Its header is returned, also from exactly the greatest size that is allowed."""
    batch = client_batch()
    header = only_batch(memoryview(batch))
    validate_from_client(memoryview(batch), header, len(batch))
    assert header == parse_header(batch)


@pytest.mark.parametrize(
    ("batch", "code"),
    [
        (b"", ErrorCode.INVALID_RECORD),
        (bytes(16), ErrorCode.INVALID_RECORD),
        (client_batch(magic=1), ErrorCode.INVALID_RECORD),
        (client_batch() + client_batch(), ErrorCode.INVALID_RECORD),
        (client_batch() + b"x", ErrorCode.INVALID_RECORD),
        (client_batch()[:-1], ErrorCode.INVALID_RECORD),
        (client_batch(batch_length=48), ErrorCode.CORRUPT_MESSAGE),
        (client_batch(batch_length=-1), ErrorCode.CORRUPT_MESSAGE),
        (client_batch(base_offset=1), ErrorCode.INVALID_RECORD),
        (client_batch(crc=1), ErrorCode.CORRUPT_MESSAGE),
        (client_batch(last_offset_delta=-1), ErrorCode.INVALID_RECORD),
        (client_batch(last_offset_delta=2), ErrorCode.INVALID_RECORD),
        (client_batch(record_count=0), ErrorCode.INVALID_RECORD),
        (client_batch(record_count=1), ErrorCode.INVALID_RECORD),
        (client_batch(attributes=0x20), ErrorCode.INVALID_RECORD),
        (client_batch(base_sequence=-1), ErrorCode.INVALID_RECORD),
        (client_batch(attributes=5), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    ],
    ids=[
        "empty", "no magic", "old magic", "two batches", "bytes after", "cut short", "length too small",
        "negative length", "base offset", "checksum", "negative delta", "delta beyond count", "no records",
        "count below delta", "control batch", "no sequence", "unknown codec",
    ],
)  # fmt: skip
def test_each_refusal_has_kafkas_code(batch, code):
    """Rows 3 and 9-13 of docs/produce-checks.md."""
    assert refusal(batch) is code


def test_the_order_of_refusals():
    """Of several faults the first row decides."""
    everything = {"base_offset": 5, "crc": 1, "record_count": 0, "attributes": 0x20}
    assert refusal(client_batch(magic=0, **everything), limit=10) is ErrorCode.INVALID_RECORD
    assert refusal(client_batch(**everything), limit=10) is ErrorCode.INVALID_RECORD
    assert refusal(client_batch(crc=1, record_count=0), limit=10) is ErrorCode.MESSAGE_TOO_LARGE
    assert refusal(client_batch(crc=1, record_count=0)) is ErrorCode.CORRUPT_MESSAGE
    assert refusal(client_batch(record_count=0, attributes=0x20)) is ErrorCode.INVALID_RECORD


def test_zstd_needs_produce_7():
    """Row 3 again: older clients could not read it back."""
    batch = client_batch(attributes=4)
    assert refusal(batch) is None
    assert refusal(batch, zstd_allowed=False) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert (
        refusal(client_batch(attributes=4, base_offset=1), zstd_allowed=False) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    )


def test_without_a_producer_id_no_sequence_is_needed():
    """Producer id -1 with sequence -1 is the plain producer."""
    assert refusal(client_batch(producer_id=-1, producer_epoch=-1, base_sequence=-1)) is None


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "base_offset": st.sampled_from([0, 1]),
            "batch_length": st.integers(40, 90),
            "magic": st.integers(1, 3),
            "crc": st.integers(0, 1),
            "attributes": st.integers(0, 0x3F),
            "last_offset_delta": st.integers(-2, 3),
            "record_count": st.integers(-1, 3),
            "producer_id": st.integers(-1, 1),
            "base_sequence": st.integers(-1, 1),
        },
    ),
    st.sampled_from([50, 1_000_000]),
    st.booleans(),
    st.integers(0, 2),
)
def test_one_look_and_one_after_the_other_agree(changes, limit, zstd_allowed, cut):  # fmt: skip
    """The quick look at a whole header lets through what the checks in their order let through, and nothing else."""
    batch = memoryview(client_batch(**changes))
    batch = batch[: len(batch) - cut]

    def outcome(frame, validate):
        try:
            header = frame(batch, zstd_allowed=zstd_allowed)
            validate(batch, header, limit)
        except InvalidBatch as error:
            return error.error_code
        return header

    assert outcome(only_batch, validate_from_client) == outcome(only_batch_in_order, validate_in_order)


@given(st.sampled_from([TRANSACTIONAL, COMMIT_MARKER, *COMPRESSED.values()]), mutations())
def test_only_protocol_errors_come_out(batch, mutate):
    """Damaged batches are refused by every function that reads them, and by nothing but protocol errors."""
    for read in (
        parse_header,
        decode_records,
        lambda data: list(iter_batches(data)),
        lambda data: validate_from_client(memoryview(data), only_batch(memoryview(data)), 1_000),
        lambda data: set_log_append_time(bytearray(data), 0, 1),
        lambda data: crc_ok(data, 0, len(data)),
    ):
        assert_only_malformed(read, mutate(batch))
