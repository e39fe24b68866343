"""Taking over a segment as it was stored, without reading all its batches.

Owns what is looked at before a segment is believed. Does not own what happens to one that is not believed: its batches
are walked (``opening.py``, ``recovery.py``).
"""

from __future__ import annotations

from crc32c import crc32c

from cluster.log.clean_state import SegmentRecord
from cluster.log.errors import CheckpointError
from cluster.log.scan import LOOKUP_CHUNK_BYTES, scan_batches
from cluster.log.segment import Segment


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
