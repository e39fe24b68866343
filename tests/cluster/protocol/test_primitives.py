"""Primitive types: round trips, and every length against what is left."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.protocol import primitives
from cluster.protocol.errors import MalformedRequest
from tests.cluster.protocol.malformed import assert_only_malformed
from tests.cluster.protocol.strategies import TEXT, UINT32


@given(UINT32)
def test_uvarint_round_trip(value):
    """Any 32-bit value, in at most five bytes."""
    data = primitives.write_uvarint(value)
    assert primitives.read_uvarint(data + b"\xff", 0) == (value, len(data))
    assert len(data) <= 5


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff\x7f", b"\x80\x80\x80\x80\x80\x00", b"\xff" * 100])
def test_uvarints_beyond_32_bits(data):
    """Longer or larger ones are malformed."""
    with pytest.raises(MalformedRequest):
        primitives.read_uvarint(data, 0)


@given(st.none() | TEXT)
def test_strings_round_trip(text):
    """In both encodings, null told from empty."""
    for write, read in (
        (primitives.write_nullable_string, primitives.read_nullable_string),
        (primitives.write_compact_nullable_string, primitives.read_compact_nullable_string),
    ):
        data = write(text)
        assert read(b"!" + data + b"rest", 1) == (text, 1 + len(data))


@pytest.mark.parametrize("read", [primitives.read_string, primitives.read_compact_string])
def test_null_is_no_string(read):
    """Where null may not be, it is malformed."""
    with pytest.raises(MalformedRequest):
        read(b"\xff\xff" if read is primitives.read_string else b"\x00", 0)


@pytest.mark.parametrize("size", [-2, -32768, 3, 32767])
def test_string_lengths(size):
    """A length below -1 or beyond the end is malformed."""
    with pytest.raises(MalformedRequest):
        primitives.read_nullable_string(struct.pack(">h", size) + b"ab", 0)


@pytest.mark.parametrize("count", [-2, -1, 6, primitives.MAX_ELEMENTS + 1, 2_147_483_647])
def test_array_lengths(count):
    """As many elements as cannot fit into what is left are malformed, before anything loops."""
    with pytest.raises(MalformedRequest):
        primitives.read_count(struct.pack(">i", count) + bytes(10), 0, 2)


def test_an_array_that_just_fits():
    """Five elements of two bytes in ten bytes."""
    assert primitives.read_count(struct.pack(">i", 5) + bytes(10), 0, 2) == (5, 4)
    assert primitives.read_compact_count(b"\x06" + bytes(10), 0, 2) == (5, 1)


def test_tags():
    """Tagged fields come back as views, and are skipped to the same place."""
    data = b"\x02\x00\x01a\x05\x02bc" + b"rest"
    tags, position = primitives.read_tags(data, 0, (0, 5))
    assert [(tag, bytes(value)) for tag, value in tags] == [(0, b"a"), (5, b"bc")]
    assert primitives.read_tags(data, 0, (5,)) == (tags[1:], 8)
    assert (position, primitives.skip_tags(data, 0)) == (8, 8)
    assert primitives.skip_tags(b"\x00", 0) == 1


@given(st.binary(max_size=20))
def test_any_bytes_as_tags(data):
    """Only MalformedRequest comes out."""

    def read(body: bytes) -> None:
        with primitives.refusing_malformed("tags"):
            primitives.read_tags(body, 0, (0, 1))

    assert_only_malformed(read, data)
