"""Walking a segment's file at a start: every batch is looked at once, at the price of a few operations.

Owns the loop that verifies batches and makes a segment's end and indexes from them. 100 MB of the smallest batches in
use are 700,000 of them, and recovery has a second for those: nothing is made for a batch that is in order. Does not own
what is done about damage (``recovery.py``), or what epochs and producers become (``replay.py``).

``scan_batches`` is for everybody else, and tells here what is wrong with a batch that is not in order.
"""

from __future__ import annotations

import struct

from crc32c import crc32c

from cluster.log.replay import Replay
from cluster.log.roll import INT32_MAX
from cluster.log.scan import CRC_CHUNK_BYTES, LARGE_BATCH_BYTES, SCAN_CHUNK_BYTES, scan_batches
from cluster.log.segment import Segment
from cluster.protocol.batch import CRC_FROM, HEADER_BYTES, LOG_OVERHEAD, MAGIC, MIN_BATCH_LENGTH, parse_header
from cluster.protocol.errors import CorruptBatch

#: Base offset, length, leader epoch, magic, checksum, last offset delta, max timestamp, producer's id, epoch, sequence.
_FIELDS = struct.Struct(">qiiBI2xi8xqqhi")


def walk(segment: Segment, replay: Replay, *, check_crc: bool) -> str | None:
    """Take every good batch of the file from where ``segment`` ends; returns what is wrong with the first that is not.

    ``check_crc``: verify checksums; else only headers are read of large batches. Raises ``OSError``.
    """
    file, size, interval = segment.file, segment.file.size_bytes, segment.index_interval_bytes
    position, expected, highest = segment.size_bytes, segment.next_offset, segment.base_offset + INT32_MAX
    max_timestamp, max_timestamp_offset = segment.max_timestamp, segment.max_timestamp_offset
    last_indexed = segment.offset_index.last_position
    add_offset, add_time, unpack = segment.offset_index.append, segment.time_index.maybe_append, _FIELDS.unpack_from
    holes_allowed, runs, latest_epoch = replay.holes_allowed, replay.runs, replay.epochs.latest_number
    want = chunk = CRC_CHUNK_BYTES if check_crc else SCAN_CHUNK_BYTES
    good = True
    while good and position < size:
        buffer = file.pread(min(want, size - position), position)
        view, held = memoryview(buffer), len(buffer)
        good = HEADER_BYTES <= held == min(want, size - position)
        want, at, index_above = chunk, 0, last_indexed + interval - position
        while good and at + HEADER_BYTES <= held:
            base_offset, length, epoch, magic, crc, delta, timestamp, producer_id, producer_epoch, sequence = unpack(
                buffer, at
            )
            end, last_offset = at + LOG_OVERHEAD + length, base_offset + delta
            if check_crc and held < end <= size - position:  # the rest of it is to be read
                want = max(end - at, chunk)
                break
            if (
                (base_offset != expected and not (holes_allowed and base_offset > expected))
                or not base_offset <= last_offset <= highest
                or magic != MAGIC
                or length < MIN_BATCH_LENGTH
                or end > size - position
                or (check_crc and crc32c(view[at + CRC_FROM : end]) != crc)
            ):
                good = False
                break
            if timestamp > max_timestamp:
                max_timestamp, max_timestamp_offset = timestamp, last_offset
            if at > index_above:
                add_offset(last_offset, position + at)
                add_time(max_timestamp, max_timestamp_offset)
                last_indexed, index_above = position + at, at + interval
            if epoch != latest_epoch:
                replay.note_epoch(epoch, base_offset)
                latest_epoch = replay.epochs.latest_number
            if producer_id >= 0:
                run = runs.get(producer_id)
                if run is not None and sequence == run.next_sequence and producer_epoch == run.producer_epoch:
                    run.next_sequence = sequence + delta + 1
                    run.newest.append((sequence, delta, base_offset, timestamp))
                else:
                    replay.note_producer(parse_header(buffer, at))
            expected, at = last_offset + 1, end
            if length >= LARGE_BATCH_BYTES and not check_crc:
                want = HEADER_BYTES
        position += at
    if segment.size_bytes == 0 < position:
        segment.first_timestamp = parse_header(file.pread(HEADER_BYTES, 0)).max_timestamp
    segment.extend(position, expected, max_timestamp, max_timestamp_offset, last_indexed)
    return None if good else _problem(segment, check_crc=check_crc)


def _problem(segment: Segment, *, check_crc: bool) -> str:
    """What is wrong with the batch at the end of ``segment``."""
    expected, file = segment.next_offset, segment.file
    try:
        _, header = next(scan_batches(file, segment.size_bytes, file.size_bytes, check_crc=check_crc))
    except CorruptBatch as error:
        return str(error)
    if header.base_offset != expected:
        return f"a batch of offset {header.base_offset} where {expected} is due"
    return f"a batch of offset {header.base_offset} with last offset delta {header.last_offset_delta}"
