"""The layout of a sequenced value: both decoders agree with the encoder, each other and the written layout."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.evidence.sequenced_value import (
    FLAG_SENTINEL,
    HEADER_BYTES,
    SequencedValue,
    ValueEncoder,
    decode,
    decode_array,
    decode_at,
    encode,
)

field63 = st.integers(0, 2**63 - 1)
encoded_values = st.builds(
    encode,
    field63,
    st.integers(0, 2**32 - 1),
    field63,
    field63,
    size_bytes=st.integers(HEADER_BYTES, 300),
    flags=st.integers(0, 255),
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A value with one byte changed or its end cut off."""
    value = bytearray(draw(encoded_values))
    if draw(st.booleans()):
        return bytes(value[: draw(st.integers(0, len(value) - 1))])
    position = draw(st.integers(0, len(value) - 1))
    value[position] ^= draw(st.integers(1, 255))
    return bytes(value)


anything = st.one_of(encoded_values, damaged(), st.binary(max_size=120))


def test_layout_is_the_written_one() -> None:
    """Every field stands where the module's table says, big-endian, with zlib's CRCs."""
    value = encode(0x0102030405060708, 0x11121314, 0x2122232425262728, 0x3132333435363738, size_bytes=53, flags=1)
    assert value[:4] == b"GPLS"
    assert value[4:8] == b"\x01\x01\x00\x00"
    assert value[8:16] == bytes(range(1, 9))
    assert value[16:24] == b"\x11\x12\x13\x14\x00\x00\x00\x00"
    assert value[24:40] == bytes(range(0x21, 0x29)) + bytes(range(0x31, 0x39))
    assert value[40:48] == struct.pack(">II", zlib.crc32(value[48:]), zlib.crc32(value[:44]))
    assert len(value) == 53


@given(field63, st.integers(0, 2**32 - 1), field63, field63, st.integers(HEADER_BYTES, 5000), st.integers(0, 255))
def test_round_trip(run_id: int, stream_id: int, sequence: int, time_ns: int, size: int, flags: int) -> None:
    """What was encoded is decoded, for every value of every field."""
    value = ValueEncoder(run_id, stream_id, size, flags).encode(sequence, time_ns)
    assert decode(value) == SequencedValue(run_id, stream_id, sequence, time_ns, flags, size)


@given(damaged())
def test_damage_is_seen(value: bytes) -> None:
    """A value with a changed byte or without its end never decodes."""
    assert decode(value) is None


@given(st.lists(anything, max_size=12), st.binary(max_size=7))
def test_scalar_and_vectorised_agree(values: list[bytes], lead: bytes) -> None:
    """decode_at says of each value in a flat buffer exactly what decode says of it alone."""
    buffer = np.frombuffer(lead + b"".join(values), dtype=np.uint8)
    sizes = np.array([len(value) for value in values], dtype=np.int64)
    positions = np.cumsum(np.concatenate([[len(lead)], sizes]))[:-1].astype(np.int64)
    columns = decode_at(buffer, positions, sizes)
    for row, value in enumerate(values):
        one = decode(value)
        assert bool(columns.valid[row]) == (one is not None)
        expected = (one.run_id, one.stream_id, one.sequence, one.send_time_ns, one.flags) if one else (0, 0, 0, 0, 0)
        assert tuple(int(column[row]) for column in columns[1:]) == expected


@given(st.lists(st.tuples(field63, field63), min_size=1, max_size=20), st.integers(HEADER_BYTES, 200))
def test_array_of_one_size(pairs: list[tuple[int, int]], size: int) -> None:
    """decode_array reads uint8[n, size] row by row, and sees the sentinel's flag."""
    encoder = ValueEncoder(7, 3, size, FLAG_SENTINEL)
    rows = np.frombuffer(b"".join(encoder.encode(*pair) for pair in pairs), dtype=np.uint8).reshape(len(pairs), size)
    columns = decode_array(rows)
    assert columns.valid.all() and columns.is_sentinel.all()
    assert list(zip(columns.sequence.tolist(), columns.send_time_ns.tolist(), strict=True)) == pairs


def test_fields_beyond_63_bits_are_not_ours() -> None:
    """A header with correct CRCs but a field of 2^63 or more is not valid, in both decoders."""
    header = struct.pack(">4sBBHQIIQQI", b"GPLS", 1, 0, 0, 1, 1, 0, 2**63, 5, 0)
    value = header + struct.pack(">I", zlib.crc32(header))
    assert decode(value) is None
    assert not decode_array(np.frombuffer(value, dtype=np.uint8).reshape(1, 48)).valid[0]


@pytest.mark.parametrize("field", ["version", "reserved", "reserved2", "payload_crc"])
def test_a_well_formed_header_that_breaks_the_table_is_not_ours(field: str) -> None:
    """A CRC alone does not make a value: another version, a reserved field in use, a CRC of padding that is absent."""
    fields = {"version": 1, "reserved": 0, "reserved2": 0, "payload_crc": 0, field: 7}
    header = struct.pack(
        ">4sBBHQIIQQI",
        *(b"GPLS", fields["version"], 0, fields["reserved"], 1, 2, fields["reserved2"], 3, 4, fields["payload_crc"]),
    )
    value = header + struct.pack(">I", zlib.crc32(header))
    assert decode(value) is None
    assert not decode_array(np.frombuffer(value, dtype=np.uint8).reshape(1, 48)).valid[0]


def test_positions_outside_the_buffer_are_not_valid() -> None:
    """A value that would reach outside the buffer is not valid, and nothing is read there."""
    value = np.frombuffer(encode(1, 2, 3, 4), dtype=np.uint8)
    columns = decode_at(value, np.array([0, 1, -1, 400]), np.array([48, 48, 48, 48]))
    assert columns.valid.tolist() == [True, False, False, False]
    assert decode_at(value[:5], np.array([0]), np.array([5])).valid.tolist() == [False]


@pytest.mark.parametrize("arguments", [(-1, 0), (2**63, 0), (0, -1), (0, 2**32), (0, 0, 47), (0, 0, 48, 256)])
def test_encoder_refuses_what_does_not_fit(arguments: tuple[int, ...]) -> None:
    """Ids, sizes and flags outside their range are refused when the encoder is made."""
    with pytest.raises(ValueError, match=r"sequenced value|outside|do not fit"):
        ValueEncoder(*arguments)


def test_encode_refuses_what_does_not_fit() -> None:
    """A sequence or time below 0 or from 2^63 on is refused."""
    encoder = ValueEncoder(1, 1)
    for pair in ((-1, 0), (0, -1), (2**63, 0), (0, 2**63)):
        with pytest.raises(ValueError, match="outside"):
            encoder.encode(*pair)


def test_array_of_another_shape_is_refused() -> None:
    """decode_array takes uint8[n, size] and nothing else."""
    with pytest.raises(ValueError, match="uint8"):
        decode_array(np.zeros(48, dtype=np.uint8))


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 3), st.sampled_from([48, 49, 56, 70, 111]), field63),
        min_size=1,
        max_size=30,
    ),
    st.lists(st.tuples(st.integers(0, 10_000), st.integers(1, 255)), max_size=4),
)
def test_values_that_have_much_in_common_are_judged_one_by_one(
    drawn: list[tuple[int, int, int, int]], flips: list[tuple[int, int]]
) -> None:
    """Values of few runs, streams and sizes, with any bytes changed: the shared way says what decode says of each."""
    values = [encode(run, stream, time_ns % 1000, time_ns, size_bytes=size) for run, stream, size, time_ns in drawn]
    data = bytearray(b"".join(values))
    for position, flip in flips:
        data[position % len(data)] ^= flip
    sizes = np.array([len(value) for value in values], dtype=np.int64)
    positions = np.cumsum(sizes) - sizes
    columns = decode_at(np.frombuffer(bytes(data), dtype=np.uint8), positions, sizes)
    for row, (position, size) in enumerate(zip(positions.tolist(), sizes.tolist(), strict=True)):
        one = decode(bytes(data[position : position + size]))
        assert bool(columns.valid[row]) == (one is not None)
        if one is not None:
            assert (one.run_id, one.stream_id, one.sequence) == tuple(int(c[row]) for c in columns[1:4])


@pytest.mark.parametrize("limit", [1, 64])
def test_a_byte_changed_anywhere_in_one_of_many_is_seen(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte of the first, a middle and the last of equal values, whether paddings are compared or not."""
    monkeypatch.setattr("verifier.evidence.value_crcs.MOST_KINDS", limit)
    monkeypatch.setattr("verifier.evidence.value_crcs.COMPARED_BYTES", 40)
    size, count = 67, 7
    # two streams: more kinds than the lower limit
    whole = b"".join(encode(5, 1 + number // 5, number, 9, size_bytes=size) for number in range(count))
    positions = np.arange(count, dtype=np.int64) * size
    for row in (0, 3, count - 1):
        for at in range(size):
            data = bytearray(whole)
            data[row * size + at] ^= 0x10
            valid = decode_at(np.frombuffer(bytes(data), dtype=np.uint8), positions, np.full(count, size)).valid
            assert valid.tolist() == [number != row for number in range(count)], (row, at)
