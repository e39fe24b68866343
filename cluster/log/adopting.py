"""Taking over a segment as it was stored, without reading all its batches.

Owns what is looked at before a segment is believed: after a clean stop that it is as was noted then, after any other
that it was synced, and that its indexes can be those of its batches. Does not own what happens to one that is not
believed: its batches are walked (``opening.py``, ``recovery.py``).
"""

from __future__ import annotations

from crc32c import crc32c

from cluster.log.clean_state import SegmentRecord
from cluster.log.errors import CheckpointError
from cluster.log.replay import Replay
from cluster.log.scan import LOOKUP_CHUNK_BYTES, scan_batches
from cluster.log.segment import Segment
from cluster.log.walk import walk
from cluster.protocol.batch import HEADER_BYTES, BatchHeader, parse_header


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
    position = segment.offset_index.last_position
    end_offset = segment.base_offset
    for _, header in scan_batches(segment.file, position, record.size_bytes, chunk_bytes=LOOKUP_CHUNK_BYTES):
        end_offset = header.next_offset
    if end_offset > record.next_offset:
        raise CheckpointError(f"{path} ends at {end_offset}, not {record.next_offset}")
    segment.extend(record.size_bytes, record.next_offset, record.max_timestamp, record.max_timestamp_offset, position)
    segment.first_timestamp = record.first_timestamp


def adopt(segment: Segment, replay: Replay) -> None:
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
    offset_index, time_index = segment.offset_index, segment.time_index
    newest = time_index.last
    entries = len(offset_index)
    if newest is None or newest[1] < (offset_index.last_offset or 0):
        # No newer time is noted after this one: either there is none, or the entries that told it are lost.
        offset_index.truncate(0 if newest is None else offset_index.position_before_offset(newest[1]) + 1)
    is_whole = entries == len(offset_index)
    first, last = _header(segment, 0), _header(segment, offset_index.last_position)
    if len(offset_index) and last.last_offset != offset_index.last_offset:
        raise CheckpointError(f"the index of {segment.file.path} does not fit its batches")
    _note_epochs(segment, replay, first, last)
    timestamp, offset = newest or (-1, segment.base_offset)
    segment.first_timestamp = first.max_timestamp
    segment.extend(offset_index.last_position, last.base_offset, timestamp, offset, offset_index.last_position)
    problem = walk(segment, replay, check_crc=False)
    if problem is not None:
        raise CheckpointError(problem)
    if not is_whole or offset_index.pending or time_index.pending:
        segment.seal()


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


def _header(segment: Segment, position: int) -> BatchHeader:
    return parse_header(segment.file.pread(HEADER_BYTES, position))


def _note_epochs(segment: Segment, replay: Replay, first: BatchHeader, last: BatchHeader) -> None:
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
