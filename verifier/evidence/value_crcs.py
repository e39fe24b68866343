"""The two CRCs of many sequenced values at once: of their headers and of their padding.

Both are checked for every value, exactly as ``zlib.crc32`` would; what values have in common is calculated once. Owns
no layout but the length of what the header's CRC covers; ``verifier.evidence.sequenced_value`` has it.
"""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray

#: Bytes of a header that its CRC covers.
COVERED_BYTES = 44
#: Most kinds of padding (size and CRC) among values that are decoded together; with more, each CRC is computed.
MOST_KINDS = 64
#: Bytes of padding that are compared at a time.
COMPARED_BYTES = 1 << 21


def check_padding(
    buffer: NDArray[np.uint8],
    positions: NDArray[np.int64],
    sizes: NDArray[np.int64],
    expected: NDArray[np.uint32],
    valid: NDArray[np.bool_],
) -> None:
    """Clear ``valid`` where the padding does not have its CRC.

    Values of one stream have the same padding: most are compared with one whose CRC was taken, byte by byte, and have
    it too if they are equal. The CRC of each other is taken.
    """
    valid &= (sizes > 0) | (expected == 0)
    rows = np.flatnonzero(valid & (sizes > 0))
    kinds = (sizes[rows].astype(np.uint64) << np.uint64(32)) | expected[rows].astype(np.uint64)
    if not rows.size or int(sizes[rows].max()) >= 1 << 31:
        _check_each(buffer, positions, sizes, expected, valid, rows)
        return
    # neighbors are mostly alike, so the kinds are those of the rows where it changes
    found = np.unique(kinds[np.concatenate([[True], kinds[1:] != kinds[:-1]])])
    if found.size > MOST_KINDS:
        _check_each(buffer, positions, sizes, expected, valid, rows)
        return
    for kind in found:
        own = rows if found.size == 1 else rows[kinds == kind]
        _check_each(buffer, positions, sizes, expected, valid, own[:1])
        first, size = int(own[0]), int(sizes[own[0]])
        unlike = own[1:]
        if valid[first]:
            start = int(positions[first])
            windows = np.lib.stride_tricks.sliding_window_view(buffer, size)
            equal = _equal_rows(windows, positions[own[1:]], buffer[start : start + size])
            unlike = own[1:][~equal]
        _check_each(buffer, positions, sizes, expected, valid, unlike)


def _equal_rows(
    windows: NDArray[np.uint8], positions: NDArray[np.int64], wanted: NDArray[np.uint8]
) -> NDArray[np.bool_]:
    """Which of the windows at ``positions`` are equal to ``wanted``; a few at a time, so that it takes little room."""
    equal = np.empty(positions.size, dtype=np.bool_)
    step = max(1, COMPARED_BYTES // wanted.size)
    for begin in range(0, positions.size, step):
        some = windows[positions[begin : begin + step]]
        # all together first: that is quick, and nearly always they are equal
        same = some == wanted
        equal[begin : begin + step] = True if same.all() else same.all(axis=1)
    return equal


def _check_each(
    buffer: NDArray[np.uint8],
    positions: NDArray[np.int64],
    sizes: NDArray[np.int64],
    expected: NDArray[np.uint32],
    valid: NDArray[np.bool_],
    rows: NDArray[np.int64],
) -> None:
    """Clear ``valid`` in those of ``rows`` whose padding does not have its CRC."""
    view = np.ascontiguousarray(buffer).data
    starts, ends = positions[rows], positions[rows] + sizes[rows]
    for row, start, end, crc in zip(
        rows.tolist(), starts.tolist(), ends.tolist(), expected[rows].tolist(), strict=True
    ):
        if zlib.crc32(view[start:end]) != crc:
            valid[row] = False


def _crc_tables() -> tuple[NDArray[np.uint32], np.uint32]:
    """CRC-32 is affine in its input: the CRC of 44 bytes is that of 44 zeros, xored with one entry per byte."""
    zeros = bytearray(COVERED_BYTES)
    base = zlib.crc32(zeros)
    tables = np.zeros((COVERED_BYTES, 256), dtype=np.uint32)
    for position in range(COVERED_BYTES):
        for byte in range(256):
            zeros[position] = byte
            tables[position, byte] = zlib.crc32(zeros) ^ base
        zeros[position] = 0
    return tables, np.uint32(base)


_TABLES, _BASE = _crc_tables()


def header_crcs(raw: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """zlib.crc32 of the first 44 bytes of each row of ``uint8[n, 48]``.

    Most bytes are the same in all rows (the run, the stream, what is 0): only the others are looked up row by row.
    """
    count = raw.shape[0]
    if not count:
        return np.zeros(0, dtype=np.uint32)
    common = raw[0]
    # whole words first: bytes are compared where their word varies
    words = np.ascontiguousarray(raw).view(np.uint64).reshape(count, -1)
    varying = np.flatnonzero(np.repeat((words != words[0]).any(axis=0), 8)[:COVERED_BYTES])
    base = int(_BASE)
    for position in set(range(COVERED_BYTES)).difference(varying.tolist()):
        base ^= int(_TABLES[position, common[position]])
    crc = np.full(count, base, dtype=np.uint32)
    for position in varying.tolist():
        column = raw[:, position]
        if (column == common[position]).all():
            crc ^= _TABLES[position, common[position]]
        else:
            crc ^= _TABLES[position].take(column)
    return crc
