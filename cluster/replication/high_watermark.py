"""The arithmetic of the high watermark: the first offset that is not known to be on every replica that counts.

Owns the formulas of Kafka's Partition and AbstractFetcherThread. Does not own state: ``leader`` and ``follower`` keep
it.
"""

from __future__ import annotations

from collections.abc import Iterable


def leader_high_watermark(current: int, log_end_offset: int, counted_end_offsets: Iterable[int]) -> int:
    """The leader's high watermark: the least log end offset among itself and the replicas that count, never back.

    A replica that counts and has not fetched in this leader epoch has -1 and holds everything where it is.
    """
    candidate = log_end_offset
    for end_offset in counted_end_offsets:
        if end_offset < candidate:
            candidate = end_offset
    return max(current, candidate)


def follower_high_watermark(current: int, leader_high_watermark: int, log_end_offset: int) -> int:
    """A follower's high watermark after an append: what the leader says, as far as our own log reaches.

    It does not follow a new leader back whose high watermark lags: what was committed once stays committed.
    """
    return max(current, min(leader_high_watermark, log_end_offset))


def restored_high_watermark(checkpoint: int, log_start_offset: int, log_end_offset: int) -> int:
    """After a start: the checkpoint, within the bounds of the log that was found."""
    return max(log_start_offset, min(checkpoint, log_end_offset))
