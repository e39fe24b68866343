"""The layout of a sequenced value: a fixed 48-byte header, then padding. Owns encoding and both decodings.

Does not know records, batches or files. All integers are big-endian::

    0  magic         4s   b"GPLS"          24  sequence      u64  within the stream, from 0, without gap at the source
    4  version       u8   1                32  send_time_ns  u64  monotonic clock, the intended time of sending
    5  flags         u8   bit 0: sentinel  40  payload_crc   u32  zlib.crc32 of the padding
    6  reserved      u16  0                44  header_crc    u32  zlib.crc32 of bytes 0..43
    8  run_id        u64                   48  padding
    16 stream_id     u32
    20 reserved2     u32  0

The 64-bit fields stay below 2^63, so that they fit the signed columns of Arrow and Spark; a header that breaks this
is not ours. The scalar and the vectorised decoder are two readings of this one table; tests hold them equal.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from verifier.evidence.value_crcs import check_padding, header_crcs

MAGIC = b"GPLS"
VERSION = 1
HEADER_BYTES = 48
FLAG_SENTINEL = 1

#: Streams from here on are sentinels': the sentinel of partition ``p`` is of stream ``SENTINEL_STREAM + p``.
SENTINEL_STREAM = 2**31

MAX_FIELD = 2**63 - 1
MAX_STREAM_ID = 2**32 - 1

_HEADER = struct.Struct(">4sBBHQIIQQI")
_CRC = struct.Struct(">I")
_CRC_POSITION = _HEADER.size
_MAGIC_NUMBER = int.from_bytes(MAGIC, "big")

#: The same table for numpy.
_HEADER_DTYPE = np.dtype(
    [
        ("magic", ">u4"),
        ("version", "u1"),
        ("flags", "u1"),
        ("reserved", ">u2"),
        ("run_id", ">u8"),
        ("stream_id", ">u4"),
        ("reserved2", ">u4"),
        ("sequence", ">u8"),
        ("send_time_ns", ">u8"),
        ("payload_crc", ">u4"),
        ("header_crc", ">u4"),
    ]
)


def value_name(stream: int, sequence: int | str) -> str:
    """How a value is named to people and in exports: ``s3/120`` is sequence 120 of stream 3."""
    return f"s{stream}/{sequence}"


class SequencedValue(NamedTuple):
    """One decoded value. ``size_bytes`` is the whole value, header and padding."""

    run_id: int
    stream_id: int
    sequence: int
    send_time_ns: int
    flags: int
    size_bytes: int

    @property
    def is_sentinel(self) -> bool:
        return bool(self.flags & FLAG_SENTINEL)


class DecodedValues(NamedTuple):
    """Columns of ``n`` decoded values. Where ``valid`` is false the other columns are zero."""

    valid: NDArray[np.bool_]
    run_id: NDArray[np.int64]
    stream_id: NDArray[np.int64]
    sequence: NDArray[np.int64]
    send_time_ns: NDArray[np.int64]
    flags: NDArray[np.uint8]

    @property
    def is_sentinel(self) -> NDArray[np.bool_]:
        marked: NDArray[np.bool_] = (self.flags & FLAG_SENTINEL) != 0
        return marked


class ValueEncoder:
    """Encodes the values of one stream; padding and its CRC are made once, or once for each size.

    ``size_bytes`` is the whole value, of the largest where they differ. Raises ``ValueError`` if it is below
    ``HEADER_BYTES`` or an id does not fit.
    """

    def __init__(self, run_id: int, stream_id: int, size_bytes: int = HEADER_BYTES, flags: int = 0) -> None:
        if size_bytes < HEADER_BYTES:
            raise ValueError(f"a sequenced value has at least {HEADER_BYTES} bytes, not {size_bytes}")
        if not 0 <= run_id <= MAX_FIELD:
            raise ValueError(f"run_id {run_id} is outside 0..2^63-1")
        if not 0 <= stream_id <= MAX_STREAM_ID:
            raise ValueError(f"stream_id {stream_id} is outside 0..2^32-1")
        if not 0 <= flags <= 0xFF:
            raise ValueError(f"flags {flags} do not fit one byte")
        self._run_id = run_id
        self._stream_id = stream_id
        self._flags = flags
        self._size_bytes = size_bytes
        self._padding = _padding(stream_id, size_bytes - HEADER_BYTES)
        self._crcs = {size_bytes: zlib.crc32(self._padding)}

    def encode(self, sequence: int, send_time_ns: int, size_bytes: int | None = None) -> bytes:
        """The bytes of one value, as large as the largest unless ``size_bytes`` says less.

        Raises ``ValueError`` if a field is outside 0..2^63-1, or the size outside what this encoder has.
        """
        if not (0 <= sequence <= MAX_FIELD and 0 <= send_time_ns <= MAX_FIELD):
            raise ValueError(f"sequence {sequence} or send time {send_time_ns} is outside 0..2^63-1")
        size = self._size_bytes if size_bytes is None else size_bytes
        padding = self._padding if size == self._size_bytes else self._padding[: size - HEADER_BYTES]
        crc = self._crcs.get(size)
        if crc is None:
            if not HEADER_BYTES <= size <= self._size_bytes:
                raise ValueError(f"a value of {size} bytes is outside {HEADER_BYTES}..{self._size_bytes}")
            crc = self._crcs[size] = zlib.crc32(padding)
        header = _HEADER.pack(
            MAGIC, VERSION, self._flags, 0, self._run_id, self._stream_id, 0, sequence, send_time_ns, crc
        )
        return header + _CRC.pack(zlib.crc32(header)) + padding

    def __repr__(self) -> str:
        return f"ValueEncoder(run={self._run_id}, stream={self._stream_id}, padding={len(self._padding)})"


def encode(
    run_id: int, stream_id: int, sequence: int, send_time_ns: int, *, size_bytes: int = HEADER_BYTES, flags: int = 0
) -> bytes:
    """One value alone; ``ValueEncoder`` is the fast way for many. Raises ``ValueError`` as it does."""
    return ValueEncoder(run_id, stream_id, size_bytes, flags).encode(sequence, send_time_ns)


def decode(value: bytes | bytearray | memoryview) -> SequencedValue | None:
    """A value's header, or None if these bytes are not an intact sequenced value."""
    if len(value) < HEADER_BYTES:
        return None
    magic, version, flags, reserved, run_id, stream_id, reserved2, sequence, send_time_ns, payload_crc = (
        _HEADER.unpack_from(value)
    )
    if magic != MAGIC or version != VERSION or reserved or reserved2:
        return None
    view = memoryview(value)
    if zlib.crc32(view[:_CRC_POSITION]) != _CRC.unpack_from(value, _CRC_POSITION)[0]:
        return None
    if max(run_id, sequence, send_time_ns) > MAX_FIELD or zlib.crc32(view[HEADER_BYTES:]) != payload_crc:
        return None
    return SequencedValue(run_id, stream_id, sequence, send_time_ns, flags, len(value))


def decode_array(values: NDArray[np.uint8]) -> DecodedValues:
    """Decode ``n`` values of one common size: ``values`` is ``uint8[n, size]``.

    Raises ``ValueError`` for another shape. Rows shorter than a header are not valid.
    """
    if values.ndim != 2 or values.dtype != np.uint8:
        raise ValueError(f"decode_array takes uint8[n, size], not {values.dtype}{list(values.shape)}")
    count, size = values.shape
    flat = np.ascontiguousarray(values).reshape(-1)
    return decode_at(flat, np.arange(count, dtype=np.int64) * size, np.full(count, size, dtype=np.int64))


def decode_at(buffer: NDArray[np.uint8], positions: NDArray[np.int64], sizes: NDArray[np.int64]) -> DecodedValues:
    """Decode the ``n`` values that lie at ``positions`` of a flat ``uint8`` buffer with the given ``sizes`` (bytes).

    Values may have any sizes and overlap nothing or anything: each is judged for itself. A value that reaches
    outside the buffer is not valid.
    """
    fits = (sizes >= HEADER_BYTES) & (positions >= 0) & (positions + sizes <= buffer.size)
    if buffer.size < HEADER_BYTES:
        return _pack(np.zeros(positions.size, dtype=np.bool_), np.zeros(positions.size, dtype=_HEADER_DTYPE))
    start = np.where(fits, positions, 0)
    raw = np.lib.stride_tricks.sliding_window_view(buffer, HEADER_BYTES)[start]
    header = raw.view(_HEADER_DTYPE).reshape(-1)
    limit = np.uint64(MAX_FIELD)
    valid = (
        fits
        & (header["magic"] == _MAGIC_NUMBER)
        & (header["version"] == VERSION)
        & (header["reserved"] == 0)
        & (header["reserved2"] == 0)
        & (header["run_id"] <= limit)
        & (header["sequence"] <= limit)
        & (header["send_time_ns"] <= limit)
        & (header["header_crc"] == header_crcs(raw))
    )
    check_padding(buffer, start + HEADER_BYTES, sizes - HEADER_BYTES, header["payload_crc"], valid)
    return _pack(valid, header)


def _pack(valid: NDArray[np.bool_], header: NDArray[np.void]) -> DecodedValues:
    def column(name: str) -> NDArray[np.int64]:
        # the limit was checked above, hence the cast loses nothing where it is valid
        return np.where(valid, header[name].astype(np.uint64), np.uint64(0)).astype(np.int64)

    flags = np.where(valid, header["flags"], np.uint8(0)).astype(np.uint8)
    return DecodedValues(
        valid, column("run_id"), column("stream_id"), column("sequence"), column("send_time_ns"), flags
    )


def _padding(stream_id: int, size_bytes: int) -> bytes:
    """Padding that differs from stream to stream, is not constant, and compresses like plain data (about 2:1)."""
    if not size_bytes:
        return b""
    word = zlib.crc32(stream_id.to_bytes(4, "big"))
    block = bytearray()
    while len(block) < min(size_bytes, 4096):
        word = zlib.crc32(word.to_bytes(4, "big"), word)
        block += b"%08x" % word
    return bytes(block * (size_bytes // len(block) + 1))[:size_bytes]
