"""What a follower demands of the batches its leader sent, before any of them is written. Pure.

Owns the checks. Does not own the append (``partition_log.py``) or what a follower does about a refusal.
"""

from __future__ import annotations

from typing import NamedTuple

from cluster.log.errors import LogError, UnexpectedOffset
from cluster.protocol.batch import BatchHeader, crc_ok, iter_batches
from cluster.protocol.errors import CorruptBatch, ErrorCode


class PlacedBatch(NamedTuple):
    """A batch and where it begins in the bytes that were received."""

    position: int
    header: BatchHeader

    @property
    def end(self) -> int:
        return self.position + self.header.size_bytes


def verify_replicated(
    records: memoryview, log_end_offset: int, latest_epoch: int, *, holes_allowed: bool
) -> list[PlacedBatch]:
    """The whole batches of ``records``; a partial one at the end is ignored.

    Each must have a good checksum, begin where the one before it ends (``holes_allowed``: or later, as a compacted
    log has holes), and have no older leader epoch; ``latest_epoch`` is that of the newest batch in the log, or -1.
    Raises ``LogError`` with CORRUPT_MESSAGE, or ``UnexpectedOffset``.
    """
    expected = log_end_offset
    epoch = latest_epoch
    batches: list[PlacedBatch] = []
    try:
        for position, header in iter_batches(records):
            if not crc_ok(records, position, header.size_bytes) or header.last_offset_delta < 0:
                raise CorruptBatch(f"the batch at offset {header.base_offset} is damaged")
            if header.base_offset != expected and not (holes_allowed and header.base_offset > expected):
                raise UnexpectedOffset(f"the leader sent offset {header.base_offset} where {expected} is due")
            if header.leader_epoch < epoch:
                raise UnexpectedOffset(
                    f"the leader sent offset {header.base_offset} of epoch {header.leader_epoch} after epoch {epoch}"
                )
            epoch = header.leader_epoch
            expected = header.next_offset
            batches.append(PlacedBatch(position, header))
    except CorruptBatch as error:
        raise LogError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    return batches
