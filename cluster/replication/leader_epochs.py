"""Which requests are too old, too new or on another branch of history.

Owns the checks of leader epochs that a replica makes on what comes in (KIP-320). Does not own the epochs (they come as
arguments), nor the fence of whole requests (``controller.control_fence``).
"""

from __future__ import annotations

from cluster.protocol.errors import ErrorCode

#: A client that knows no epoch sends this (librdkafka sends 0, which is an epoch like any other).
NO_EPOCH = -1
#: StopReplica's leader epoch while a topic is being deleted.
EPOCH_DURING_DELETE = -2


def check_leader_epoch(requested: int, current: int) -> ErrorCode:
    """``current_leader_epoch`` of Fetch, ListOffsets and OffsetForLeaderEpoch against ours."""
    if requested in (NO_EPOCH, current):
        return ErrorCode.NONE
    return ErrorCode.FENCED_LEADER_EPOCH if requested < current else ErrorCode.UNKNOWN_LEADER_EPOCH


def diverging_epoch(fetch_epoch: int, fetch_offset: int, found: tuple[int, int]) -> tuple[int, int] | None:
    """Where a fetcher's history parts from ours, or None if it is a prefix of ours.

    ``found`` is our (epoch, end offset) for the epoch of the last batch the fetcher has. Raises ``LookupError`` if we
    know nothing of that epoch (the answer is then OFFSET_OUT_OF_RANGE).
    """
    epoch, end_offset = found
    if epoch < 0 or end_offset < 0:
        raise LookupError(f"nothing is known of leader epoch {fetch_epoch}")
    if epoch < fetch_epoch or end_offset < fetch_offset:
        return epoch, end_offset
    return None


def check_stop_replica(requested: int, current: int) -> ErrorCode:
    """``leader_epoch`` of one partition in StopReplica against ours."""
    if requested in (NO_EPOCH, EPOCH_DURING_DELETE) or requested >= current:
        return ErrorCode.NONE
    return ErrorCode.FENCED_LEADER_EPOCH
