"""Invariants of one log: its bounds, segments, indexes and leader epochs.

They hold whenever no method of the log is running, unless its disk has failed. ``validate`` checks the end of the log,
at the same cost for every log:

* ``log-bounds``: base offset of the first segment <= log start (unless the log is compacted: its first segments may be
  gone) <= log end, 0 <= recovery point <= log end, compacted up to <= log end, and the log ends where its active
  segment ends. (The log start may be above the recovery point: DeleteRecords can move it past unsynced records.)
* ``segment-file``: a file has at least the bytes that count. Bytes after them, left by a failed write, do not count.
* ``index-within``: index entries are within their segment: below its end offset, before its last byte.
* ``epochs-within``: the newest leader epoch begins at or below the log end, and is the one that appends compare with.

``validate_whole`` also reads every batch header, and checks all segments:

* ``segments-contiguous``: base offsets ascend, each segment ends where the next begins (or below that, if compaction
  may have left holes), and the last one is active.
* ``epochs-ascend``: leader epochs ascend in number and in start offset; none begins below the log start.
* ``batches-contiguous``: the batches of a segment cover its offsets from base to end without a gap or an overlap; after
  a compaction, they ascend within that range.
* ``batches-epochs``: each batch has the leader epoch that the epoch cache has for its offset.
* ``index-batches``: an offset index entry points at a batch and has its last offset; a time index entry has the last
  offset of a batch with that timestamp, and no batch up to that one is newer. Unless it is full, the time index has an
  entry up to the batch of each offset index entry that is as new as all up to that batch.
* ``newest-timestamp``: a segment's newest timestamp is that of its batches.
* ``aborted-markers``: the entries of the ``.txnindex`` ascend, each names a marker, and memory has what the file has.
* ``remembered-batches``: the positions that a segment caches, for lookups without a read, are those of its batches.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate, pairwise

from cluster.invariants import InvariantBroken
from cluster.log.epochs import LeaderEpochCache
from cluster.log.partition_log import PartitionLog
from cluster.log.segment import Segment
from cluster.protocol.batch import BatchHeader
from cluster.protocol.errors import CorruptBatch

#: (position, header) of each batch of a segment.
Batches = list[tuple[int, BatchHeader]]


def validate(log: PartitionLog) -> None:
    """The bounds of the log and its active segment. Raises ``InvariantBroken``."""
    local = log._local
    active = local.segments.active
    start, end = log.log_start_offset, local.log_end_offset
    first = local.segments.first.base_offset
    begins = first <= start or log.config.is_compacted
    is_within = begins and start <= end == active.next_offset and active.base_offset <= end
    if not (is_within and 0 <= local.recovery_point <= end and local.cleaned_to <= end):
        values = (
            f"first segment {first}, log start {start}, recovery point {local.recovery_point}, compacted to "
            f"{local.cleaned_to}, log end {end}, end of the active segment {active.next_offset}"
        )
        raise InvariantBroken(log, "log-bounds", values)
    validate_bounds(active)
    epochs = log.epochs
    newest = epochs.entries[-1] if epochs.latest is not None else (-1, -1)
    if newest[1] > end or newest[0] != epochs.latest_number:
        values = f"epoch {newest[0]} at {newest[1]}, appends compare with {epochs.latest_number}, log end {end}"
        raise InvariantBroken(log, "epochs-within", values)


def validate_bounds(segment: Segment) -> None:
    """The end of a segment's file and of its indexes. Raises ``InvariantBroken``."""
    size, end = segment.size_bytes, segment.next_offset
    if segment.file.size_bytes < size:
        raise InvariantBroken(segment, "segment-file", f"{segment.file.size_bytes} bytes, {size} of them count")
    index = segment.offset_index
    last = index.last_offset
    if last is not None and not (segment.base_offset <= last < end and 0 <= index.last_position < size):
        values = f"offset {last} at byte {index.last_position} of [{segment.base_offset}, {end}), {size} bytes"
        raise InvariantBroken(segment, "index-within", values)
    newest = segment.time_index.last
    if newest is not None and not (newest[0] <= segment.max_timestamp and segment.base_offset <= newest[1] < end):
        values = f"time {newest[0]} up to offset {newest[1]} of [{segment.base_offset}, {end})"
        raise InvariantBroken(segment, "index-within", f"{values}, newest time {segment.max_timestamp}")


def validate_whole(log: PartitionLog) -> dict[int, BatchHeader]:
    """Everything, batch by batch; returns the headers by base offset. Raises ``InvariantBroken``, and ``OSError`` if
    the file cannot be read."""
    validate(log)
    _validate_epochs(log)
    segments = list(log._local.segments)
    if segments[-1] is not log._local.segments.active:
        raise InvariantBroken(log, "segments-contiguous", f"the last one is {segments[-1]}, the active one is not")
    if [segment.base_offset for segment in segments] != log.segment_base_offsets:
        raise InvariantBroken(log, "segments-contiguous", f"{segments} are found by {log.segment_base_offsets}")
    for one, after in pairwise(segments):
        is_next = one.next_offset <= after.base_offset if log.holes_allowed else one.next_offset == after.base_offset
        if not (is_next and one.base_offset < after.base_offset):
            raise InvariantBroken(log, "segments-contiguous", f"{one} before {after}")
    headers: dict[int, BatchHeader] = {}
    for segment in segments:
        batches = validate_segment(segment, log.epochs, log.log_start_offset, holes_allowed=log.holes_allowed)
        headers.update((header.base_offset, header) for _, header in batches)
        if segment is not segments[-1]:
            _validate_rolled(segment)
    return headers


def _validate_rolled(segment: Segment) -> None:
    """A roll notes the newest time, at the least."""
    times = segment.time_index
    if segment.max_timestamp >= 0 and not times.is_full and (times.last or (-1,))[0] != segment.max_timestamp:
        values = f"it ends with {times.last}, the newest time is {segment.max_timestamp}"
        raise InvariantBroken(segment, "index-batches", values)


def _validate_epochs(log: PartitionLog) -> None:
    entries = log.epochs.entries
    for one, after in pairwise(entries):
        if not (one.epoch < after.epoch and one.start_offset < after.start_offset):
            raise InvariantBroken(log, "epochs-ascend", f"{tuple(one)} before {tuple(after)}")
    if entries and entries[0].start_offset < log.log_start_offset:
        values = f"{tuple(entries[0])} begins below the log start {log.log_start_offset}"
        raise InvariantBroken(log, "epochs-ascend", values)


def validate_segment(
    segment: Segment, epochs: LeaderEpochCache, log_start_offset: int, *, holes_allowed: bool
) -> Batches:
    """One segment against the headers of its batches, which are returned. Raises ``InvariantBroken``."""
    validate_bounds(segment)
    try:
        batches = list(segment.headers())
    except CorruptBatch as error:
        raise InvariantBroken(segment, "batches-contiguous", str(error)) from error
    expected = segment.base_offset
    for position, header in batches:
        base = header.base_offset
        if base < expected or (base > expected and not holes_allowed):
            raise InvariantBroken(segment, "batches-contiguous", f"{expected} is followed by {base} at byte {position}")
        expected = header.next_offset
        epoch = epochs.epoch_for_offset(base)
        if base >= log_start_offset and epoch is not None and 0 <= header.leader_epoch != epoch:
            values = f"the batch at {base} is of epoch {header.leader_epoch}, the cache has {epoch}"
            raise InvariantBroken(segment, "batches-epochs", values)
    if expected > segment.next_offset or (expected < segment.next_offset and not holes_allowed):
        values = f"the batches end at {expected}, the segment at {segment.next_offset}"
        raise InvariantBroken(segment, "batches-contiguous", values)
    _validate_indexes(segment, batches)
    _validate_remembered(segment, batches)
    _validate_aborted(segment, batches)
    return batches


def _validate_indexes(segment: Segment, batches: Batches) -> None:
    ends = {position: header.last_offset for position, header in batches}
    if not (segment.offset_index.ascends and segment.time_index.ascends):
        raise InvariantBroken(segment, "index-batches", "the entries do not ascend")
    for offset, position in segment.offset_index:
        if ends.get(position) != offset:
            values = f"offset {offset} at byte {position}, where a batch ends with {ends.get(position)}"
            raise InvariantBroken(segment, "index-batches", values)
    newest = list(accumulate((header.max_timestamp for _, header in batches), max))
    last_offsets = list(ends.values())
    for timestamp, offset in segment.time_index:
        at = bisect_left(last_offsets, offset)
        if last_offsets[at : at + 1] != [offset] or not batches[at][1].max_timestamp == timestamp == newest[at]:
            raise InvariantBroken(segment, "index-batches", f"time {timestamp} up to offset {offset}")
    known = [(offset, timestamp) for timestamp, offset in segment.time_index]
    for offset, _position in segment.offset_index if not segment.time_index.is_full else ():
        newest_there = newest[bisect_left(last_offsets, offset)]
        at = bisect_right(known, (offset, newest_there))
        if newest_there >= 0 and (at == 0 or known[at - 1][1] != newest_there):
            raise InvariantBroken(segment, "index-batches", f"time {newest_there}, up to {offset}, has no entry")
    newest_timestamp = max(newest[-1], -1) if newest else -1
    if segment.max_timestamp != newest_timestamp:
        values = f"{segment.max_timestamp}, the batches have {newest_timestamp}"
        raise InvariantBroken(segment, "newest-timestamp", values)


def _validate_aborted(segment: Segment, batches: Batches) -> None:
    aborted = segment.aborted
    markers = {header.base_offset for _, header in batches if header.is_control}
    offsets = [entry.last_offset for entry in aborted]
    if offsets != sorted(set(offsets)) or not markers.issuperset(offsets):
        raise InvariantBroken(segment, "aborted-markers", f"{[*aborted]}, markers at {sorted(markers)}")
    if aborted.read() != aborted.to_bytes():
        raise InvariantBroken(segment, "aborted-markers", f"the file of {aborted} says something else")


def _validate_remembered(segment: Segment, batches: Batches) -> None:
    places = dict(batches)
    for last_offset, position in zip(segment._recent_last, segment._recent_positions, strict=True):
        header = places.get(position)
        if header is None or header.last_offset != last_offset:
            values = f"a batch that ends with {last_offset} at byte {position}, where {header} is"
            raise InvariantBroken(segment, "remembered-batches", values)
    for offset, position in segment._resume.items():
        header = places.get(position)
        before = max((header.last_offset for at, header in batches if at < position), default=-1)
        if header is None or not before < offset <= header.last_offset:
            values = f"a reader continues from {offset} at byte {position}, where {header} is"
            raise InvariantBroken(segment, "remembered-batches", values)
