"""What a follower does next: where to start, what to make of an answer, where to cut its log.

Owns the follower's side of Kafka's AbstractFetcherThread (epoch-based truncation by KIP-101, KIP-279 and KIP-595's
diverging epoch; docs/reference/kafka.md "Follower"). Does not own the log, the connection or the timers: the fetcher
carries out what is decided here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from cluster.protocol.errors import ErrorCode


class Reaction(Enum):
    """What to do with one partition's part of a fetch response."""

    APPEND = "append"
    TRUNCATE = "truncate"
    #: The request is of another time: the leader, its epoch or our log end offset changed meanwhile (KAFKA-18723).
    IGNORE = "ignore"
    BACK_OFF = "back off"
    #: We are fenced: only a new LeaderAndIsr can help.
    PARK = "park"
    #: Ask the leader where its log begins and ends.
    OUT_OF_RANGE = "out of range"


class FetchPosition(NamedTuple):
    """From where a follower fetched: kept beside the request, compared when the answer comes."""

    leader_epoch: int
    fetch_offset: int
    #: The epoch of the last record before it, -1 if none is known. A log that was cut and has grown to the same end
    #: again is another one: an answer about the former one would cut what is committed.
    last_fetched_epoch: int


def reaction(sent: FetchPosition, here: FetchPosition, error_code: ErrorCode, *, diverges: bool) -> Reaction:
    """What an answer means, given what was asked and where the follower is now."""
    if sent != here:
        return Reaction.IGNORE
    if error_code is ErrorCode.NONE:
        return Reaction.TRUNCATE if diverges else Reaction.APPEND
    if error_code is ErrorCode.OFFSET_OUT_OF_RANGE:
        return Reaction.OUT_OF_RANGE
    return Reaction.PARK if error_code is ErrorCode.FENCED_LEADER_EPOCH else Reaction.BACK_OFF


def initial_truncation(latest_epoch: int | None, high_watermark: int, log_end_offset: int) -> int:
    """The log end offset to start to follow with.

    With a known epoch nothing is cut: the leader tells where we diverge. Cutting to the high watermark, as Kafka did
    before KIP-101, loses committed records; it is done only where no epoch is known at all.
    """
    return log_end_offset if latest_epoch is not None else min(high_watermark, log_end_offset)


def truncation_offset(
    leader_epoch: int, leader_end_offset: int, local: tuple[int, int], log_end_offset: int, fallback_offset: int
) -> int:
    """Where to cut after the leader answered with (epoch, end offset) for our last epoch.

    ``local`` is our own (epoch, end offset) for the leader's epoch, (-1, -1) if we know none. If our largest epoch
    not above it is another one, we cut to its end and the next fetch asks again (KIP-279), until both agree.
    """
    if leader_end_offset < 0:
        return min(fallback_offset, log_end_offset)
    local_epoch, local_end_offset = local
    if leader_epoch < 0 or local_epoch < 0:
        return min(leader_end_offset, log_end_offset)
    if local_epoch != leader_epoch:
        return min(local_end_offset, log_end_offset)
    return min(local_end_offset, leader_end_offset, log_end_offset)


@dataclass(frozen=True, slots=True)
class Restart:
    """Wipe the log and start again at ``offset``: the leader's log begins elsewhere than ours can continue."""

    offset: int


def out_of_range_position(leader_start_offset: int, leader_end_offset: int, log_end_offset: int) -> int | Restart:
    """Where to continue after OFFSET_OUT_OF_RANGE: the log end offset to have, or a fresh start."""
    if leader_end_offset < log_end_offset:
        return leader_end_offset
    if leader_start_offset > log_end_offset:
        return Restart(leader_start_offset)
    return log_end_offset


def restart_within(log_start_offset: int, log_end_offset: int, first_offset: int, last_offset: int) -> Restart | None:
    """What to do about a fetch that brought a first batch of these offsets, which does not continue our log.

    A fetch gives whole batches, so from a leader whose log start lies within a batch (DeleteRecords) an empty log is
    given that batch, and takes it whole: it starts again where the batch begins. None: the batch is to be refused.
    As Kafka's ``Partition.appendRecordsToFollowerOrFutureReplica``.
    """
    is_empty = log_start_offset == log_end_offset
    return Restart(first_offset) if is_empty and first_offset < log_end_offset <= last_offset else None
