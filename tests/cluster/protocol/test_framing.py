"""Framing: frames survive any chunking, and memory follows the bytes that came, not those that were declared."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.protocol.framing import FIRST_BYTES, INITIAL_BYTES, KEEP_BYTES, FrameBuffer, FrameTooLarge


def feed(frames: FrameBuffer, data: bytes) -> list[bytes]:
    """Put all of ``data`` in, as fast as the buffer takes it, and copy the frames out."""
    out = []
    while data:
        room = frames.get_buffer()
        count = min(len(room), len(data))
        room[:count] = data[:count]
        out += [bytes(frame) for frame in frames.received(count)]
        data = data[count:]
    return out


def frame(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


PAYLOADS = st.lists(st.binary(max_size=40) | st.integers(0, 200_000).map(lambda size: b"x" * size), max_size=6)


@given(PAYLOADS, st.lists(st.integers(1, 100_000), min_size=1, max_size=20))
def test_any_chunking_gives_the_same_frames(payloads, sizes):
    """Frames come out whole, in order and unchanged, however the stream is cut."""
    frames = FrameBuffer(1_000_000)
    stream = b"".join(frame(payload) for payload in payloads)
    out: list[bytes] = []
    position = turn = 0
    while position < len(stream):
        size = sizes[turn % len(sizes)]
        out += feed(frames, stream[position : position + size])
        position, turn = position + size, turn + 1
    assert out == payloads
    assert frames.pending_bytes == 0


def test_byte_by_byte():
    """Also the size prefix may come in pieces."""
    frames = FrameBuffer(100)
    stream = frame(b"hello") + frame(b"") + frame(b"world")
    assert [item for byte in stream for item in feed(frames, bytes((byte,)))] == [b"hello", b"", b"world"]


def test_frames_are_writable_views_in_place():
    """What is written into a frame is written into the buffer: nothing was copied."""
    frames = FrameBuffer(100)
    room = frames.get_buffer()
    room[:9] = frame(b"hello")
    (first,) = frames.received(9)
    first[0] = ord("J")
    assert bytes(room[4:9]) == b"Jello"


@pytest.mark.parametrize("size", [-1, -2_147_483_648, 101, 2_147_483_647])
def test_sizes_outside_the_limit(size):
    """Negative or too large: the stream cannot be followed, but frames before it still come out."""
    frames = FrameBuffer(100)
    frames.get_buffer()[:9] = frame(b"hello")
    stream = frame(b"hello") + struct.pack(">i", size)
    frames.get_buffer()[: len(stream)] = stream
    iterator = frames.received(len(stream))
    assert bytes(next(iterator)) == b"hello"
    with pytest.raises(FrameTooLarge):
        next(iterator)


@pytest.mark.parametrize(
    ("begins", "name"), [(b"\x16\x03\x01\x02\x00\x01", "TLS"), (b"GET / HTTP/1.1\r\n", "HTTP"), (b"\x7f\0\0\0", "")]
)
def test_a_client_of_another_protocol_is_named(begins: bytes, name: str) -> None:
    """Its first bytes are taken for a size, which tells an operator nothing."""
    frames = FrameBuffer(1 << 20)
    with pytest.raises(FrameTooLarge) as refused:
        feed(frames, begins)
    assert ("looks like" in str(refused.value)) == bool(name) and name in str(refused.value)


def test_the_limit_itself_is_allowed():
    """A frame of exactly the greatest size."""
    assert feed(FrameBuffer(100), frame(b"x" * 100)) == [b"x" * 100]


def test_a_declared_size_allocates_nothing():
    """Whoever declares 100 MiB and sends five bytes more costs no memory."""
    frames = FrameBuffer(104_857_600)
    feed(frames, struct.pack(">i", 104_857_600) + b"abcde")
    frames.get_buffer()
    assert frames.allocated_bytes == FIRST_BYTES
    feed(frames, bytes(20_000))
    assert frames.allocated_bytes == INITIAL_BYTES


def test_a_first_byte_is_given_no_large_buffer():
    """A size prefix that comes byte by byte, and its frame after it."""
    frames = FrameBuffer(1_000_000)
    for byte in frame(b"x" * 1000):
        feed(frames, bytes((byte,)))
        frames.get_buffer()
        assert frames.allocated_bytes == FIRST_BYTES


def reads(frames: FrameBuffer, stream: bytes, waiting: int) -> int:
    """How many reads take ``stream`` in, of which ``waiting`` bytes at most have arrived and are not read yet."""
    taken = count = 0
    while taken < len(stream):
        room = frames.get_buffer()
        size = min(len(room), waiting, len(stream) - taken)
        room[:size] = stream[taken : taken + size]
        taken += size
        count += 1
        list(frames.received(size))
    return count


@pytest.mark.parametrize("size", [4_000, 8_100, 16_255, 16_380, 16_500, 32_000])
def test_requests_in_flight_are_read_together(size):
    """Whatever their size, also just below that of a small buffer: one by one costs a third more."""
    request = frame(bytes(size))
    assert reads(FrameBuffer(1_000_000), frame(b"small") + 1_000 * request, 5 * len(request)) < 600


def test_byte_by_byte_no_buffer_becomes_large():
    """Requests of 4 to 16 KB, each byte a read: the buffer is the least that holds them."""
    for size in (4_000, 8_100, 16_255):
        frames = FrameBuffer(1_000_000)
        assert reads(frames, 2 * frame(bytes(size)), 1) == 2 * (size + 4)
        assert frames.allocated_bytes <= 16_384


@given(st.integers(1, 3_000_000))
def test_memory_follows_the_bytes_that_came(received):
    """At any time at most about twice what has arrived is allocated."""
    frames = FrameBuffer(104_857_600)
    feed(frames, (struct.pack(">i", 104_857_600) + bytes(received))[:received])
    frames.get_buffer()
    assert frames.allocated_bytes <= max(INITIAL_BYTES, 2 * received + 16_384)


def test_a_large_buffer_is_given_back():
    """After one large frame the connection is as cheap as before."""
    frames = FrameBuffer(10_000_000)
    assert len(feed(frames, frame(bytes(5_000_000)))) == 1
    assert frames.allocated_bytes > KEEP_BYTES
    frames.get_buffer()
    assert frames.allocated_bytes == INITIAL_BYTES


def test_a_buffer_in_steady_use_is_kept():
    """Frames of one MiB reuse what was allocated for the first."""
    frames = FrameBuffer(10_000_000)
    feed(frames, frame(bytes(1_000_000)))
    allocated = frames.allocated_bytes
    for _ in range(5):
        feed(frames, frame(bytes(1_000_000)))
        assert frames.allocated_bytes == allocated


def test_the_iteration_may_be_left_and_begun_again():
    """A paused owner finds the frames that it did not take, in order."""
    frames = FrameBuffer(100)
    stream = frame(b"one") + frame(b"two") + frame(b"three")
    frames.get_buffer()[: len(stream)] = stream
    assert bytes(next(frames.received(len(stream)))) == b"one"
    assert [bytes(item) for item in frames.frames()] == [b"two", b"three"]
    frames.clear()
    assert list(frames.frames()) == []


def test_there_is_always_room():
    """``get_buffer`` never returns an empty view, which asyncio would take for an error."""
    frames = FrameBuffer(1_000_000)
    stream = struct.pack(">i", 500_000) + bytes(500_000)
    for position in range(0, len(stream), 10_007):
        assert len(frames.get_buffer()) > 0
        feed(frames, stream[position : position + 10_007])
