"""Walks the batch headers of one segment and checks every CRC. Owns positions and header fields, no record.

Record batch v2 (the layout is Kafka's ``DefaultRecordBatch``; docs/reference/kafka.md "Record batch")::

    0 baseOffset i64 | 8 batchLength i32 | 12 partitionLeaderEpoch i32 | 16 magic i8 | 17 crc u32 (of 21..end)
    21 attributes i16 | 23 lastOffsetDelta i32 | 27 baseTimestamp i64 | 35 maxTimestamp i64 | 43 producerId i64
    51 producerEpoch i16 | 53 baseSequence i32 | 57 recordCount i32 | 61 records

The CRC is taken with google-crc32c: the cluster uses the ``crc32c`` package, which is other code by other people,
so that a fault in one of the two cannot agree with itself.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from verifier.evidence.bounded import NotRead, size_of

HEADER_BYTES = 61
#: baseOffset and batchLength, which batchLength does not count.
LOG_OVERHEAD = 12
MINIMUM_LENGTH = HEADER_BYTES - LOG_OVERHEAD
CRC_START = 21

_CRC_BYTES = 16 << 20

CODEC_MASK = 0x07
CONTROL = 0x20

_START = struct.Struct(">qi")
_HEADER_DTYPE = np.dtype(
    [
        ("base_offset", ">i8"),
        ("batch_length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("record_count", ">i4"),
    ]
)


class Walk(NamedTuple):
    """Where the batches of a segment lie.

    ``tail`` says what follows the last whole batch: ``""`` nothing, ``"torn"`` the beginning of a batch whose rest is
    missing, ``"garbage"`` bytes that cannot begin a batch. The tail is ``[tail_position, file size)``.
    """

    positions: NDArray[np.int64]
    sizes: NDArray[np.int64]
    tail_position: int
    tail: str


def open_segment(path: str | Path) -> NDArray[np.uint8]:
    """The bytes of a file, mapped and read-only; an empty file gives an empty array.

    Raises ``OSError``, also for what is not a regular file: it would look empty.
    """
    try:
        size = size_of(Path(path))
    except NotRead as error:
        raise NotRead(f"{path}: {error}") from None
    if not size:
        return np.zeros(0, dtype=np.uint8)
    # Only the mapping is wanted: a memmap passes every slice and gather through Python.
    return np.memmap(path, dtype=np.uint8, mode="r").view(np.ndarray)


def walk(data: NDArray[np.uint8]) -> Walk:
    """Step from header to header. Stops at the first bytes that cannot be a batch, and never raises for them."""
    view = data.data
    size = len(view)
    positions: list[int] = []
    position = 0
    tail = ""
    while position < size:
        if size - position < LOG_OVERHEAD:
            tail = "torn"
            break
        base_offset, length = _START.unpack_from(view, position)
        if length < MINIMUM_LENGTH or base_offset < 0:
            tail = "garbage"
            break
        if position + LOG_OVERHEAD + length > size:
            tail = "torn"
            break
        positions.append(position)
        position += LOG_OVERHEAD + length
    starts = np.array(positions, dtype=np.int64)
    sizes = np.diff(starts, append=np.int64(position))
    return Walk(starts, sizes, position, tail)


def headers(data: NDArray[np.uint8], positions: NDArray[np.int64]) -> NDArray[np.void]:
    """The header fields of all batches, gathered at once; a structured array with the names of the table above."""
    raw = data[positions[:, None] + np.arange(HEADER_BYTES)]
    return np.ascontiguousarray(raw).view(_HEADER_DTYPE).reshape(-1)


def check_crcs(
    data: NDArray[np.uint8], positions: NDArray[np.int64], sizes: NDArray[np.int64], expected: NDArray[np.uint32]
) -> NDArray[np.bool_]:
    """Whether each batch has the CRC-32C that its header states."""
    view = data.data
    found = np.fromiter(
        (
            _crc(view[position + CRC_START : position + size])
            for position, size in zip(positions.tolist(), sizes.tolist(), strict=True)
        ),
        dtype=np.uint32,
        count=positions.size,
    )
    matches: NDArray[np.bool_] = found == expected.astype(np.uint32)
    return matches


def _crc(data: memoryview) -> int:
    """In pieces: a batch may say that it has two gigabytes, and a hole of the file gives them."""
    if len(data) <= _CRC_BYTES:
        return int(google_crc32c.value(bytes(data)))
    crc = 0
    for start in range(0, len(data), _CRC_BYTES):
        crc = google_crc32c.extend(crc, bytes(data[start : start + _CRC_BYTES]))
    return crc


def problems(fields: NDArray[np.void], crc_ok: NDArray[np.bool_]) -> list[str | None]:
    """What is wrong with each batch by its header alone, or None. The first that applies is named.

    A batch with fewer records than offsets is legal only in a compacted topic, and no workload writes one.
    """
    codec = fields["attributes"] & CODEC_MASK
    delta = fields["last_offset_delta"].astype(np.int64)
    count = fields["record_count"].astype(np.int64)
    found: list[str | None] = [None] * fields.size
    suspects = (fields["magic"] != 2) | ~crc_ok | (delta < 0) | (count != delta + 1) | (codec > 4)
    for index in np.flatnonzero(suspects).tolist():
        if fields["magic"][index] != 2:
            found[index] = f"magic {fields['magic'][index]}, not 2"
        elif not crc_ok[index]:
            found[index] = "the CRC does not match the bytes"
        elif codec[index] > 4:
            found[index] = f"unknown compression codec {codec[index]}"
        else:
            found[index] = f"{count[index]} records and last offset delta {delta[index]} contradict each other"
    return found
