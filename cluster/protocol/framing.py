"""Framing: int32 size, then that many bytes. Owns the receive buffer of one connection; pure.

Frames are handed out in place. The buffer grows with the bytes that arrive, never with the size that is declared:
anyone who declares 100 MiB and sends 5 bytes costs 5 bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

from cluster.protocol.errors import ProtocolError

_SIZE = struct.Struct(">i")
_SIZE_BYTES = _SIZE.size
#: Five requests of 16 KB, as many as a producer has in flight, fit: one read takes them all.
INITIAL_BYTES = 131_072
#: Until a read has filled half of it: a client that sends little costs little. (Two thousand silent connections had
#: 260 MB.)
FIRST_BYTES = 4_096
#: Up to this it grows by doubling, then to the full size: five hundred that send byte by byte had 65 MB.
SMALL_BYTES = 16_384
#: A buffer that grew beyond this for one large frame is given back when it is empty.
KEEP_BYTES = 2_097_152
#: Less room than this at the end of the buffer is not worth a system call, unless it completes a frame.
_LEAST_ROOM_BYTES = 4_096


#: How clients of other protocols begin, where Kafka's have the size of a frame.
_OTHER_PROTOCOLS = {
    **dict.fromkeys((b"GET ", b"HEAD", b"POST", b"PUT ", b"OPTI", b"PRI ", b"HTTP"), "HTTP"),
    **{bytes((22, 3, minor)): "TLS" for minor in range(4)},
}


def _guess(head: bytes | bytearray) -> str:
    """What the first four bytes of a connection look like, for people; empty for nothing known."""
    name = _OTHER_PROTOCOLS.get(bytes(head)) or _OTHER_PROTOCOLS.get(bytes(head[:3]))
    return f" (it looks like {name}, which is not spoken here)" if name else ""


class FrameTooLarge(ProtocolError):
    """A size prefix that is negative or above the limit. The stream cannot be followed any further."""


class FrameBuffer:
    """Bytes in, frames out. A frame is a writable view and valid until the next ``get_buffer``."""

    __slots__ = ("_buffer", "_end", "_key", "_last_read", "_limit", "_resized", "_start", "_view")

    def __init__(self, max_frame_bytes: int, resized: Callable[[int], None] | None = None, key: str = "") -> None:
        """``resized`` is told before the buffer grows above ``INITIAL_BYTES`` how large the frame will be for which it
        grows, and 0 when it is small again. ``key`` is the setting that the limit is from, for people."""
        self._limit = max_frame_bytes
        self._key = f" ({key})" if key else ""
        self._resized = resized
        self._buffer = bytearray(FIRST_BYTES)
        self._view = memoryview(self._buffer)
        # Bytes [start, end) have arrived and not been handed out.
        self._start = 0
        self._end = 0
        self._last_read = 0

    def __repr__(self) -> str:
        return f"FrameBuffer({self.pending_bytes} bytes pending, {len(self._buffer)} allocated)"

    @property
    def pending_bytes(self) -> int:
        """Bytes that arrived and are no part of a frame that was handed out."""
        return self._end - self._start

    @property
    def allocated_bytes(self) -> int:
        return len(self._buffer)

    def close(self) -> None:
        """Let go of the buffer, and of whom to tell: what refers to this is freed at once, without a search for
        garbage."""
        self._resized = None
        self._start = self._end = 0
        self._buffer = bytearray()
        self._view = memoryview(self._buffer)

    def get_buffer(self, size_hint: int = -1) -> memoryview:
        """Room for at least one more byte. Frames handed out before are no longer valid."""
        # A read that fills most of a small buffer may have left the next request behind. What arrived byte by byte has
        # not: the last read is what counts.
        allocated_bytes = len(self._buffer)
        is_small_for_it = 2 * self._last_read > allocated_bytes < INITIAL_BYTES
        if self._start == self._end:
            self._start = self._end = 0
            if allocated_bytes > KEEP_BYTES:
                self.trim()
            elif is_small_for_it:
                self._grow()
            return self._view
        if is_small_for_it:
            self._grow()
        elif self._short_of_room():
            if self._start >= len(self._buffer) // 2:
                self._move_to_front()
            else:
                self._grow()
        return self._view[self._end :]

    def trim(self) -> bool:
        """Give back a large buffer that nothing is in; False if something is. Frames handed out are valid no more."""
        if self._start != self._end:
            return False
        if len(self._buffer) > INITIAL_BYTES:
            self._start = self._end = 0
            self._replace(INITIAL_BYTES)
            if self._resized is not None:
                self._resized(0)
        return True

    def _grow(self) -> None:
        capacity = max(2 * len(self._buffer), INITIAL_BYTES if len(self._buffer) >= SMALL_BYTES else 0)
        if self._resized is not None and capacity > INITIAL_BYTES and self.pending_bytes >= _SIZE_BYTES:
            (size,) = _SIZE.unpack_from(self._buffer, self._start)
            size = _SIZE_BYTES + max(0, min(size, self._limit))
            capacity = min(capacity, max(size, len(self._buffer) + INITIAL_BYTES))
            self._resized(size)
        self._replace(capacity)

    def received(self, count: int) -> Iterator[memoryview]:
        """``count`` bytes were written into the last ``get_buffer``; the frames that are complete now.

        Raises ``FrameTooLarge`` in its place in the sequence.
        """
        self._end += count
        self._last_read = count
        return self.frames()

    def clear(self) -> None:
        """Forget what arrived: it is no longer wanted."""
        self._start = self._end = 0

    def frames(self) -> Iterator[memoryview]:
        """The complete frames that were not handed out yet. The iteration may be left and begun again."""
        while (begin := self._start + _SIZE_BYTES) <= self._end:
            (size,) = _SIZE.unpack_from(self._buffer, self._start)
            if not 0 <= size <= self._limit:
                guess = _guess(self._buffer[self._start : begin])
                raise FrameTooLarge(f"a frame of {size} bytes, the limit is {self._limit}{self._key}{guess}")
            end = begin + size
            if end > self._end:
                return
            self._start = end
            yield self._view[begin:end]

    def _short_of_room(self) -> bool:
        room = len(self._buffer) - self._end
        # Of a buffer that is small still, half: who sends byte by byte is not given a large one for the first of them.
        if room >= min(_LEAST_ROOM_BYTES, len(self._buffer) // 2):
            return False
        pending = self._end - self._start
        if room == 0 or pending < _SIZE_BYTES:
            return True
        (size,) = _SIZE.unpack_from(self._buffer, self._start)
        return bool(_SIZE_BYTES + size > pending + room)

    def _move_to_front(self) -> None:
        pending = self._end - self._start
        # Start is at least half way, so the two ranges do not overlap.
        self._view[:pending] = self._view[self._start : self._end]
        self._start, self._end = 0, pending

    def _replace(self, capacity: int) -> None:
        buffer = bytearray(capacity)
        view = memoryview(buffer)
        pending = self._end - self._start
        view[:pending] = self._view[self._start : self._end]
        self._buffer, self._view = buffer, view
        self._start, self._end = 0, pending
