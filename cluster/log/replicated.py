"""What a follower demands of the batches its leader sent, before any of them is written. Pure.

Owns the checks, and where the leader left offsets out. Does not own the append (``replicated_appends.py``) or what a
follower does about a refusal.
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


class Hole(NamedTuple):
    """Offsets that the leader left out, from ``start`` to before ``end``: compaction removed what stood there."""

    start: int
    end: int


class ReplicatedBatches(NamedTuple):
    """The whole batches of what was received, and the first hole before or between them."""

    batches: list[PlacedBatch]
    hole: Hole | None


def verify_replicated(records: memoryview, log_end_offset: int, latest_epoch: int) -> ReplicatedBatches:
    """The whole batches of ``records``; a partial one at the end is ignored.

    Each must have a good checksum, begin where the one before it ends or later, and have no older leader epoch;
    ``latest_epoch`` is that of the newest batch in the log, or -1. As in Kafka's ``UnifiedLog.append``, a hole is legal
    under any policy: what compaction removed stays missing after the policy has changed. Raises ``LogError`` with
    CORRUPT_MESSAGE, or ``UnexpectedOffset``.
    """
    expected = log_end_offset
    epoch = latest_epoch
    batches: list[PlacedBatch] = []
    hole: Hole | None = None
    try:
        for position, header in iter_batches(records):
            base_offset = header.base_offset
            if not crc_ok(records, position, header.size_bytes) or header.last_offset_delta < 0:
                raise CorruptBatch(f"the batch at offset {base_offset} is damaged")
            if base_offset < expected:
                raise UnexpectedOffset(f"the leader sent offset {base_offset} where {expected} is due")
            if header.leader_epoch < epoch:
                raise UnexpectedOffset(
                    f"the leader sent offset {base_offset} of epoch {header.leader_epoch} after epoch {epoch}"
                )
            if base_offset > expected and hole is None:
                hole = Hole(expected, base_offset)
            epoch = header.leader_epoch
            expected = header.next_offset
            batches.append(PlacedBatch(position, header))
    except CorruptBatch as error:
        raise LogError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    return ReplicatedBatches(batches, hole)
