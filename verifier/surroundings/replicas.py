"""Reads the batches in each replica's files around some offsets: headers, bytes, and the values inside.

Owns how much is read. Uses the verifier's own readers (``verifier.segments``), and no code of the cluster.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from verifier.evidence.sequenced_value import HEADER_BYTES as VALUE_HEADER_BYTES
from verifier.segments import compression, records, walk
from verifier.segments.rows import SegmentFile
from verifier.segments.value_spans import VALUE_PROBLEMS, BatchChunk, find_spans
from verifier.surroundings.model import Spot, Stored, StoredBatch, StoredSpan

#: The most batches of one replica around one spot.
MOST_BATCHES = 40

#: The most bytes that are kept of each batch: enough to see where two copies begin to differ.
MOST_RAW_BYTES = 1 << 14

#: The largest segment in bytes that is read, because all headers from its start must be read.
LARGEST_SEGMENT = 1 << 30

#: The shift in bits after which a varint must end.
LONGEST_SHIFT = 56

#: The most bytes that are shown of a tail, which follows the last whole batch.
TAIL_BYTES = 64


class Replicas:
    """The segments of a run by replica. Reads the headers of each file only once."""

    def __init__(self, run_id: int, segments: Sequence[SegmentFile], root: Path) -> None:
        self._run_id = run_id
        self._root = root
        self._walks: dict[str, tuple[NDArray[np.uint8], walk.Walk]] = {}
        self._files: dict[tuple[str, int, int], list[SegmentFile]] = {}
        self._decoded: dict[bytes, tuple[tuple[StoredSpan, ...], str | None]] = {}
        for each in segments:
            self._files.setdefault((each.topic, each.partition, each.broker), []).append(each)

    def around(self, spot: Spot, broker: int, *, leader: bool) -> Stored:
        """The batches of this replica in the spot's windows. Never raises for files: ``Stored.note`` reports them."""
        files = sorted(self._files.get((*spot.name, broker), []), key=lambda each: each.base_offset)
        if not files:
            return Stored(broker, leader, (), note="no segment was left (its data may have been pruned)")
        low, high = spot.windows[0][0], spot.windows[-1][1]
        found: list[StoredBatch] = []
        notes: list[str] = []
        tail = ""
        for index, file in enumerate(files):
            following = files[index + 1].base_offset if index + 1 < len(files) else None
            named = _named(spot, file)
            if (file.base_offset > high or (following is not None and following <= low)) and named is None:
                continue
            path = Path(file.path)
            try:
                if path.stat().st_size > LARGEST_SEGMENT:
                    notes.append(f"{path.name} is too large to be examined")
                    continue
                batches, more = self._in(file, spot, named)
            except (OSError, ValueError) as error:
                notes.append(f"{path.name} cannot be read: {error}"[:200])
                continue
            found += batches
            tail = tail or more
        if len(found) > MOST_BATCHES:
            notes.append(f"{MOST_BATCHES} of {len(found)} batches")
        return Stored(broker, leader, tuple(found[:MOST_BATCHES]), "; ".join(notes), tail)

    def _in(self, file: SegmentFile, spot: Spot, named: int | None) -> tuple[list[StoredBatch], str]:
        """The batches of one file in the windows or at the position ``named``, and a text about its torn tail."""
        data, walked = self._walked(file.path)
        fields = walk.headers(data, walked.positions)
        first = fields["base_offset"].astype(np.int64)
        last = np.maximum(first, first + fields["last_offset_delta"])
        chosen = walked.positions == (-1 if named is None else named)
        for low, high in spot.windows:
            chosen |= (first <= high) & (last >= low)
        index = np.flatnonzero(chosen)[: MOST_BATCHES + 1]
        positions, sizes = walked.positions[index], walked.sizes[index]
        crc_ok = walk.check_crcs(data, positions, sizes, fields["crc"][index])
        chunk = BatchChunk(data, positions, sizes, fields[index], crc_ok, walk.problems(fields[index], crc_ok))
        tail = ""
        if walked.tail and (not last.size or int(last[-1]) + 1 <= spot.windows[-1][1]):
            some = data[walked.tail_position : walked.tail_position + TAIL_BYTES].tobytes()
            name = f"b{file.broker} {Path(file.path).name}"
            tail = f"{name} ends at byte {walked.tail_position} in {walked.tail} bytes: {some.hex(' ')}"
        return self._batches(file, spot, chunk), tail

    def _walked(self, path: str) -> tuple[NDArray[np.uint8], walk.Walk]:
        if path not in self._walks:
            data = walk.open_segment(path)
            self._walks[path] = data, walk.walk(data)
        return self._walks[path]

    def _batches(self, file: SegmentFile, spot: Spot, chunk: BatchChunk) -> list[StoredBatch]:
        name = str(Path(file.path).relative_to(self._root))
        found = []
        for index, (position, size) in enumerate(zip(chunk.positions.tolist(), chunk.sizes.tolist(), strict=True)):
            fields = {key: int(chunk.fields[key][index]) for key in chunk.fields.dtype.names or ()}
            values, problem = self._values(chunk, index)
            raw = chunk.data[position : position + min(size, MOST_RAW_BYTES)].tobytes()
            base = fields["base_offset"]
            place = next((at for at in spot.places if base <= at <= base + fields["last_offset_delta"]), None)
            header = b"" if place is None else _value_header(chunk, index, place - base)
            found.append(
                StoredBatch(
                    file.broker, name, position, size, fields, bool(chunk.crc_ok[index]), problem,
                    values, raw, header,
                )
            )  # fmt: skip
        return found

    def _values(self, chunk: BatchChunk, index: int) -> tuple[tuple[StoredSpan, ...], str | None]:
        """The values of one batch, and its problem or None. Copies with the same bytes are decoded only once."""
        position, size = int(chunk.positions[index]), int(chunk.sizes[index])
        digest = hashlib.blake2b(chunk.data.data[position : position + size]).digest()
        if digest not in self._decoded:
            only = slice(index, index + 1)
            one = BatchChunk(
                chunk.data, chunk.positions[only], chunk.sizes[only], chunk.fields[only], chunk.crc_ok[only],
                chunk.problems[only],
            )  # fmt: skip
            spans = find_spans(self._run_id, one)
            values = tuple(
                StoredSpan(
                    int(spans.first_offset[row]),
                    int(spans.last_offset[row]),
                    int(spans.stream[row]) if spans.stream[row] >= 0 else None,
                    int(spans.first_sequence[row]),
                    VALUE_PROBLEMS[int(spans.problem[row])],
                )
                for row in range(spans.stream.size)
            )
            self._decoded[digest] = values, one.problems[0]
        return self._decoded[digest]


def _named(spot: Spot, file: SegmentFile) -> int | None:
    """The byte position in this file that the anomaly's ``detail`` has; None if it has none."""
    detail = spot.found.detail
    here = (detail.get("broker"), detail.get("segment")) == (file.broker, file.base_offset)
    position = detail.get("position")
    return position if here and isinstance(position, int) else None


def _value_header(chunk: BatchChunk, index: int, delta: int) -> bytes:
    """The first bytes of the value with this offset delta in a batch; empty if it cannot be found."""
    position, size = int(chunk.positions[index]), int(chunk.sizes[index])
    codec = int(chunk.fields["attributes"][index]) & walk.CODEC_MASK
    plain = chunk.data[position + walk.HEADER_BYTES : position + size].tobytes()
    if codec:
        if not chunk.crc_ok[index]:
            return b""
        try:
            plain = compression.decompress(codec, plain)
        except compression.DecompressionError:
            return b""
    try:
        return _value_at(plain, delta)
    except IndexError:
        return b""


def _value_at(plain: bytes, delta: int) -> bytes:
    """The first bytes of the value with this offset delta; empty if it is not there.

    Skips from record to record by their lengths, which for a single value is faster than decoding all of them. Raises
    ``IndexError`` if the records are damaged.
    """
    at = 0
    while at < len(plain):
        length, body = _varint(plain, at)
        if length < records.MINIMUM_RECORD_BYTES - 1:
            return b""
        _, cursor = _varint(plain, body + 1)
        found, cursor = _varint(plain, cursor)
        if found == delta:
            key_size, cursor = _varint(plain, cursor)
            value_size, cursor = _varint(plain, cursor + max(key_size, 0))
            return plain[cursor : cursor + min(max(value_size, 0), VALUE_HEADER_BYTES)]
        at = body + length
    return b""


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The zig-zag varint at ``at``, and the position after it. Raises ``IndexError`` at the end of the bytes."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80 or shift > LONGEST_SHIFT:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
