"""From the batches of a chunk to spans of values: which stream and sequences are at which offsets. No Arrow here.

Plain batches are read where they lie, even with a wrong CRC: what can still be told is evidence. Compressed ones are
decompressed one by one, unless their CRC is wrong.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from verifier.evidence import sequenced_value
from verifier.segments import compression, records, walk

#: What can be wrong with a value, by its code in ``ValueSpans.problem``; the words are explained in ``rows``.
VALUE_PROBLEMS = (None, "payload", "foreign", "run")
_FINE, _PAYLOAD, _FOREIGN, _OTHER_RUN = range(4)


class BatchChunk(NamedTuple):
    """Some neighboring batches of a segment: where they lie, their header fields, and what is wrong with each."""

    data: NDArray[np.uint8]
    positions: NDArray[np.int64]
    sizes: NDArray[np.int64]
    fields: NDArray[np.void]
    crc_ok: NDArray[np.bool_]
    problems: list[str | None]


class ValueSpans(NamedTuple):
    """Spans of values; ``stream`` -1 where it cannot be told. ``sent_ns``: when the first was sent, by its header."""

    batch: NDArray[np.int64]
    first_offset: NDArray[np.int64]
    last_offset: NDArray[np.int64]
    stream: NDArray[np.int64]
    first_sequence: NDArray[np.int64]
    last_sequence: NDArray[np.int64]
    sentinel: NDArray[np.bool_]
    problem: NDArray[np.int8]
    sent_ns: NDArray[np.int64]


#: So much is decompressed at a time, however well the batches of a chunk were compressed.
UNPACKED_BYTES = 64 << 20

_NONE = np.zeros(0, dtype=np.int64)
#: Of a chunk whose records are not examined.
NO_SPANS = ValueSpans(_NONE, _NONE, _NONE, _NONE, _NONE, _NONE, _NONE.astype(np.bool_), _NONE.astype(np.int8), _NONE)


def find_spans(run_id: int, chunk: BatchChunk) -> ValueSpans:
    """The spans of all batches of a chunk, in order. Batches whose records are damaged get a problem and no span."""
    attributes = chunk.fields["attributes"].astype(np.int64)
    is_data = ((attributes & walk.CONTROL) == 0) & (chunk.fields["magic"] == 2)
    codec = attributes & walk.CODEC_MASK
    plain = np.flatnonzero(is_data & (codec == 0))
    packed = np.flatnonzero(is_data & (codec != 0) & chunk.crc_ok)
    starts, ends = chunk.positions + walk.HEADER_BYTES, chunk.positions + chunk.sizes
    parts = [_spans(run_id, chunk, plain, chunk.data, starts[plain], ends[plain])]
    for some, unpacked in _decompress(chunk, packed, codec):
        parts.append(_spans(run_id, chunk, some, *_in_one_buffer(unpacked)))
    joined = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
    order = np.lexsort((joined[1], joined[0]))
    return ValueSpans(*(column[order] for column in joined))


def _decompress(
    chunk: BatchChunk, chosen: NDArray[np.int64], codec: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], list[bytes]]]:
    """The chosen batches in groups of about ``UNPACKED_BYTES``, at least one each, with the plain records of each."""
    plain: list[bytes] = []
    first = unpacked_bytes = 0
    for number, index in enumerate(chosen.tolist()):
        if unpacked_bytes > UNPACKED_BYTES:
            yield chosen[first:number], plain
            plain, first, unpacked_bytes = [], number, 0
        start, end = int(chunk.positions[index]) + walk.HEADER_BYTES, int(chunk.positions[index] + chunk.sizes[index])
        try:
            plain.append(compression.decompress(int(codec[index]), bytes(chunk.data.data[start:end])))
        except compression.DecompressionError as error:
            chunk.problems[index] = f"its records do not decompress: {error}"
            plain.append(b"")
        unpacked_bytes += len(plain[-1])
    yield chosen[first:], plain


def _in_one_buffer(plain: list[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """All of them, with the start and end of each."""
    lengths = np.array([len(blob) for blob in plain], dtype=np.int64)
    ends = np.cumsum(lengths)
    return np.frombuffer(b"".join(plain), dtype=np.uint8), ends - lengths, ends


def _spans(
    run_id: int,
    chunk: BatchChunk,
    chosen: NDArray[np.int64],
    buffer: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> ValueSpans:
    """The spans of the chosen batches, whose plain records are ``buffer[starts:ends]``."""
    found = records.find_values(buffer, starts, ends, chunk.fields["record_count"][chosen].astype(np.int64))
    for index in chosen[found.damaged].tolist():
        chunk.problems[index] = chunk.problems[index] or "its bytes are not the records it announces"
    decoded = sequenced_value.decode_at(buffer, found.position, found.size)
    stream = np.where(decoded.valid, decoded.stream_id, np.int64(-1))
    sequence, sentinel = decoded.sequence.copy(), decoded.is_sentinel.copy()
    problem = np.where(decoded.valid, np.int8(_FINE), np.int8(_FOREIGN))
    problem[decoded.valid & (decoded.run_id != run_id)] = _OTHER_RUN
    for row in np.flatnonzero(~decoded.valid).tolist():
        value = buffer[found.position[row] : found.position[row] + max(int(found.size[row]), 0)].tobytes()
        problem[row], stream[row], sequence[row], sentinel[row] = _damaged_value(value)
    owner = chosen[found.batch]
    offset = chunk.fields["base_offset"][owner].astype(np.int64) + found.offset_delta
    return _encode_spans(owner, offset, stream, sequence, sentinel, problem, decoded.send_time_ns)


def _damaged_value(value: bytes) -> tuple[int, int, int, bool]:
    """Problem, stream, sequence and sentinel flag of a value that did not decode; the header may still be intact."""
    if not value.startswith(sequenced_value.MAGIC):
        return _FOREIGN, -1, 0, False
    header = sequenced_value.HEADER_BYTES
    if len(value) < header or zlib.crc32(value[: header - 4]) != int.from_bytes(value[header - 4 : header], "big"):
        return _PAYLOAD, -1, 0, False
    stream, sequence = int.from_bytes(value[16:20], "big"), int.from_bytes(value[24:32], "big")
    return _PAYLOAD, stream, min(sequence, sequenced_value.MAX_FIELD), bool(value[5] & sequenced_value.FLAG_SENTINEL)


def _encode_spans(
    owner: NDArray[np.int64],
    offset: NDArray[np.int64],
    stream: NDArray[np.int64],
    sequence: NDArray[np.int64],
    sentinel: NDArray[np.bool_],
    problem: NDArray[np.int8],
    sent_ns: NDArray[np.int64],
) -> ValueSpans:
    """Run-length coding: a span ends where the batch, stream, state or the step of offset or sequence changes."""
    if not owner.size:
        return ValueSpans(owner, offset, offset, stream, sequence, sequence, sentinel, problem, sent_ns)
    same = (np.diff(owner) == 0) & (np.diff(offset) == 1) & (np.diff(stream) == 0) & (sentinel[1:] == sentinel[:-1])
    same &= (np.diff(problem) == 0) & ((np.diff(sequence) == 1) | (stream[1:] < 0))
    starts = np.flatnonzero(np.concatenate([[True], ~same]))
    ends = np.append(starts[1:], owner.size) - 1
    return ValueSpans(
        owner[starts], offset[starts], offset[ends], stream[starts], sequence[starts], sequence[ends],
        sentinel[starts], problem[starts], sent_ns[starts],
    )  # fmt: skip
