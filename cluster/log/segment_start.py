"""A segment at a start, taken over in one of three ways, each dearer and surer than the one before.

* ``restore``: after a clean stop, as it was noted then; of its batches only those after the last index entry are read.
* ``adopt``: after any other stop, if it was synced and rolled: by its indexes, once it is certain that they can be
  those of its batches.
* ``walk``: every batch is examined once, and indexes, epochs and producers are rebuilt from them. 100 MB of the
  smallest batches in use are 700,000 of them, and recovery has a second for those: nothing is made for a batch that is
  in order. ``scan_batches`` is for everyone else, and tells here what is wrong with a batch that is not in order.

Owns what is examined before a segment is believed. Does not own which way is taken nor what is done about damage
(``opening.py``, ``recovery.py``), or what epochs and producers become (``replay.py``).
"""

from __future__ import annotations

import struct
from itertools import pairwise

from crc32c import crc32c

from cluster.log.clean_state import SegmentRecord
from cluster.log.errors import CheckpointError
from cluster.log.replay import LogReplay
from cluster.log.roll import INT32_MAX
from cluster.log.scan import CRC_CHUNK_BYTES, LARGE_BATCH_BYTES, LOOKUP_CHUNK_BYTES, SCAN_CHUNK_BYTES, scan_batches
from cluster.log.segment import Segment
from cluster.log.transactions import marker_in
from cluster.protocol.batch import (
    CRC_FROM,
    HEADER_BYTES,
    LOG_OVERHEAD,
    MAGIC,
    MIN_BATCH_LENGTH,
    TRANSACTIONAL_BIT,
    BatchHeader,
    parse_header,
)
from cluster.protocol.errors import CorruptBatch

#: Base offset, length, leader epoch, magic, checksum, attributes, last offset delta, max timestamp, and of the producer
#: id, epoch and sequence.
_FIELDS = struct.Struct(">qiiBIhi8xqqhi")
#: A lookup reads the headers of all batches between two index entries, on the event loop. What was written with entries
#: farther apart, before they had a bound, gets new ones.
LONGEST_GAP_BYTES = 65_536


def restore(segment: Segment, record: SegmentRecord) -> None:
    """Take over what ``record`` said at a clean stop; of the batches only those after the last index entry are read.

    Raises ``CorruptBatch`` or ``CheckpointError`` if a file is not as it says, ``OSError``.
    """
    path = segment.file.path
    if segment.file.size_bytes != record.size_bytes:
        raise CheckpointError(f"{path} has {segment.file.size_bytes} bytes, not {record.size_bytes}")
    segment.reset()
    loads = (
        (".index", record.offset_index_crc, segment.offset_index.load),
        (".timeindex", record.time_index_crc, segment.time_index.load),
    )
    for kind, crc, load in loads if record.size_bytes else ():
        data = segment.read_index(kind)
        if crc32c(data) != crc:
            raise CheckpointError(f"the {kind} of {path} is not as it was at the clean stop")
        load(data)
    _check_gaps(segment)
    aborted = segment.aborted.read()
    if crc32c(aborted) != record.aborted_crc:
        raise CheckpointError(f"{segment.aborted.path} is not as it was at the clean stop")
    segment.aborted.load(aborted)
    position = segment.offset_index.last_position
    end_offset = segment.base_offset
    for _, header in scan_batches(segment.file, position, record.size_bytes, chunk_bytes=LOOKUP_CHUNK_BYTES):
        end_offset = header.next_offset
    if end_offset > record.next_offset:
        raise CheckpointError(f"{path} ends at {end_offset}, not {record.next_offset}")
    segment.extend(record.size_bytes, record.next_offset, record.max_timestamp, record.max_timestamp_offset, position)
    segment.first_timestamp = record.first_timestamp


def adopt(segment: Segment, replay: LogReplay) -> None:
    """Take over a segment that was synced and rolled, with its indexes, and tell ``replay`` of its epochs.

    Of its producers ``replay`` is told something, but not all: their states there are not to be used.

    Indexes are not synced, so a power loss may have taken their ends: the batches after the last entries are walked.
    Where epochs begin is found by halves, for they only grow. Raises ``CorruptBatch`` or ``CheckpointError`` if the
    indexes cannot be those of the batches, ``OSError``.
    """
    segment.reset()
    if segment.file.size_bytes == 0:
        return
    _load_indexes(segment)
    _check_gaps(segment)
    offset_index, time_index = segment.offset_index, segment.time_index
    newest = time_index.last
    entries = len(offset_index)
    if newest is None or newest[1] < (offset_index.last_offset or 0):
        # No newer time is noted after this one: either no newer time exists, or its entries are lost.
        offset_index.truncate(0 if newest is None else offset_index.position_before_offset(newest[1]) + 1)
    is_whole = entries == len(offset_index)
    first, last = _header(segment, 0), _header(segment, offset_index.last_position)
    if len(offset_index) and last.last_offset != offset_index.last_offset:
        raise CheckpointError(f"the index of {segment.file.path} does not fit its batches")
    _note_epochs(segment, replay, first, last)
    timestamp, offset = newest or (-1, segment.base_offset)
    segment.first_timestamp = first.max_timestamp
    segment.extend(offset_index.last_position, last.base_offset, timestamp, offset, offset_index.last_position)
    indexed = len(offset_index)
    problem = walk(segment, replay, check_crc=False)
    if problem is not None:
        raise CheckpointError(problem)
    if len(offset_index) > indexed:
        _note_times(segment, indexed)
    # What the roll noted may be lost as well, and is all that a segment of few batches has.
    time_index.maybe_append(segment.max_timestamp, segment.max_timestamp_offset)
    if not is_whole or offset_index.pending or time_index.pending:
        segment.seal()


def _note_times(segment: Segment, indexed: int) -> None:
    """Give the entries of the offset index from number ``indexed`` on their times.

    They are new: the interval was larger when the segment was written. The time index may have its last entry already,
    that of the roll, and a search for an earlier time would begin right before the batch that it names.
    """
    time_index, known = segment.time_index, list(segment.offset_index)
    time_index.truncate(known[indexed - 1][0] + 1 if indexed else segment.base_offset)
    new = {position for _, position in known[indexed:]}
    timestamp, offset = time_index.last or (-1, segment.base_offset)
    for position, header in segment.headers(known[indexed - 1][1] if indexed else 0):
        if header.max_timestamp > timestamp:
            timestamp, offset = header.max_timestamp, header.last_offset
        if position in new:
            time_index.maybe_append(timestamp, offset)


def _load_indexes(segment: Segment) -> None:
    path = segment.file.path
    for kind, index in ((".index", segment.offset_index), (".timeindex", segment.time_index)):
        try:
            index.load(segment.read_index(kind))
        except (FileNotFoundError, ValueError) as error:
            raise CheckpointError(f"the {kind} of {path} cannot be read: {error}") from error
        if not index.ascends:
            raise CheckpointError(f"the entries of the {kind} of {path} do not ascend")
    if len(segment.offset_index) and segment.offset_index.last_position + HEADER_BYTES > segment.file.size_bytes:
        raise CheckpointError(f"the .index of {path} goes beyond its {segment.file.size_bytes} bytes")


def _check_gaps(segment: Segment) -> None:
    """Raises ``CheckpointError`` if the entries of its index are much too far apart, ``CorruptBatch``, ``OSError``."""
    index, size = segment.offset_index, segment.file.size_bytes
    most = max(LONGEST_GAP_BYTES, segment.index_interval_bytes)
    if size <= (len(index) + 1) * most:
        return
    for here, there in pairwise((0, *(position for _, position in index), size)):
        # One batch may be larger than that; a second one has an entry.
        for position, _ in scan_batches(segment.file, here, there, chunk_bytes=LOOKUP_CHUNK_BYTES):
            if position - here > most:
                raise CheckpointError(f"the .index of {segment.file.path} has too few entries, and is rebuilt")


def _header(segment: Segment, position: int) -> BatchHeader:
    return parse_header(segment.file.pread(HEADER_BYTES, position))


def _note_epochs(segment: Segment, replay: LogReplay, first: BatchHeader, last: BatchHeader) -> None:
    """Tell ``replay`` where epochs begin from the batch ``first`` to ``last``, which are indexed or the first."""
    replay.note_epoch(first.leader_epoch, first.base_offset)
    places = [0, *(position for _, position in segment.offset_index)]
    spans = [(0, first.leader_epoch, len(places) - 1, last.leader_epoch)]
    while spans:
        low, low_epoch, high, high_epoch = spans.pop()
        if low_epoch == high_epoch:
            continue
        if high - low > 1:
            middle = (low + high) // 2
            epoch = _header(segment, places[middle]).leader_epoch
            spans += [(middle, epoch, high, high_epoch), (low, low_epoch, middle, epoch)]
            continue
        end = places[high] + HEADER_BYTES
        for position, header in scan_batches(segment.file, places[low], segment.file.size_bytes):
            replay.note_epoch(header.leader_epoch, header.base_offset)
            if position + header.size_bytes >= end:
                break


def walk(segment: Segment, replay: LogReplay, *, check_crc: bool) -> str | None:
    """Take every good batch of the file from where ``segment`` ends; returns what is wrong with the first that is not.

    ``check_crc``: verify checksums; else only headers are read of large batches. Raises ``OSError``.
    """
    file, size, interval = segment.file, segment.file.size_bytes, segment.index_interval_bytes
    position, expected, highest = segment.size_bytes, segment.next_offset, segment.base_offset + INT32_MAX
    max_timestamp, max_timestamp_offset = segment.max_timestamp, segment.max_timestamp_offset
    last_indexed = segment.offset_index.last_position
    add_offset, add_time, unpack = segment.offset_index.append, segment.time_index.maybe_append, _FIELDS.unpack_from
    holes_allowed, spans, latest_epoch = replay.holes_allowed, replay.spans, replay.epochs.latest_number
    want = chunk = CRC_CHUNK_BYTES if check_crc else SCAN_CHUNK_BYTES
    good = True
    while good and position < size:
        buffer = file.pread(min(want, size - position), position)
        view, held = memoryview(buffer), len(buffer)
        good = HEADER_BYTES <= held == min(want, size - position)
        want, at, index_above = chunk, 0, last_indexed + interval - position
        while good and at + HEADER_BYTES <= held:
            base_offset, length, epoch, magic, crc, bits, delta, timestamp, producer_id, producer_epoch, sequence = (
                unpack(buffer, at)
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
                span = spans.get(producer_id)
                if (
                    span is not None
                    and sequence == span.next_sequence
                    and producer_epoch == span.producer_epoch
                    and bits & TRANSACTIONAL_BIT == span.transactional
                ):
                    span.next_sequence = sequence + delta + 1
                    span.newest.append((sequence, delta, base_offset, timestamp))
                else:
                    _note_producer(segment, replay, parse_header(buffer, at), position + at)
            expected, at = last_offset + 1, end
            if length >= LARGE_BATCH_BYTES and not check_crc:
                want = HEADER_BYTES
        position += at
    if segment.size_bytes == 0 < position:
        segment.first_timestamp = parse_header(file.pread(HEADER_BYTES, 0)).max_timestamp
    segment.extend(position, expected, max_timestamp, max_timestamp_offset, last_indexed)
    return None if good else _problem(segment, check_crc=check_crc)


def _note_producer(segment: Segment, replay: LogReplay, header: BatchHeader, position: int) -> None:
    """A batch that does not continue its producer's sequence."""
    marker = marker_in(segment.file.pread(header.size_bytes, position)) if header.is_control else None
    aborted = replay.note_producer(header, marker)
    if aborted is not None and replay.knows_producers:
        segment.aborted.add(aborted)


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
