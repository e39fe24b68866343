"""Rules: the decision functions of a broker in one frozen value, taken at start-up.

Owns the bundle alone. A defect of ``cluster.defects`` wraps one of these by ``dataclasses.replace``; the correct code
has no other hook (docs/design.md "Pure decisions, six seams").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from cluster.broker.replicas.verified import VerificationError, verification_error
from cluster.controller.rules import ControlRules
from cluster.coordinator.group.rules import GroupRules
from cluster.coordinator.transaction.rules import TransactionRules
from cluster.log.appending import AppendInfo
from cluster.log.epochs import LeaderEpochCache
from cluster.log.local_log import ReadResult
from cluster.log.opening import OpenLog, open_log
from cluster.log.partition_log import PartitionLog
from cluster.log.sequence import CheckSequence, check_sequence
from cluster.protocol.batch import BatchHeader
from cluster.protocol.errors import ErrorCode
from cluster.replication.follower import FetchPosition, Reaction, initial_truncation, reaction
from cluster.replication.leader import LeaderState, acknowledgement, may_join

#: (log, batch, its header, leader epoch, wall clock in ms) -> AppendInfo; raises LogError.
LeaderAppend = Callable[[PartitionLog, memoryview, BatchHeader, int, int], AppendInfo]

#: (log, what the leader sent) -> AppendInfo, None if that was nothing whole; raises LogError.
FollowerAppend = Callable[[PartitionLog, memoryview], AppendInfo | None]
#: (log, from which offset, how many bytes, below which offset, whether at least one batch) -> what a consumer is given.
ReadLog = Callable[[PartitionLog, int, int, int, bool], ReadResult]

#: (log, high watermark, whether only what is committed is read) -> below which offset a consumer may read.
ReadableEnd = Callable[[PartitionLog, int, bool], int]
#: (log, from which offset, what was read, below which offset) -> (producer id, first offset) of each transaction.
AbortedTransactions = Callable[[PartitionLog, int, ReadResult, int], list[tuple[int, int]]]


def readable_end(log: PartitionLog, high_watermark: int, only_committed: bool) -> int:
    """What is replicated, and for readers of committed records what is decided."""
    return log.last_stable_offset(high_watermark) if only_committed else high_watermark


def last_position(log: PartitionLog, _high_watermark: int, _fetch_offset: int) -> int:
    """From where a consumer may ask at most: it may have been told more than a new leader knows to be replicated."""
    return log.log_end_offset


class React(Protocol):
    """What a follower makes of an answer, given what it asked and where it is now."""

    def __call__(
        self, sent: FetchPosition, here: FetchPosition, error_code: ErrorCode, *, diverges: bool
    ) -> Reaction: ...


def follow(log: PartitionLog, records: memoryview) -> AppendInfo | None:
    """Append what the leader sent."""
    return log.append_as_follower(records)


def read(
    log: PartitionLog, fetch_offset: int, max_bytes: int, upper_bound_offset: int, at_least_one: bool
) -> ReadResult:
    """What a consumer is given."""
    return log.read(fetch_offset, max_bytes, upper_bound_offset, at_least_one)


def truncate(log: PartitionLog, offset: int) -> int:
    """Let a follower's log end at ``offset``; returns the records removed."""
    return log.truncate_to(offset)


@dataclass(frozen=True, slots=True)
class Rules:
    """What a broker decides by. The defaults are the correct rules."""

    check_sequence: CheckSequence = check_sequence
    #: What is made of the files of a log at a start.
    open_log: OpenLog = open_log
    #: One valid batch of a client, as the leader.
    append: LeaderAppend = field(default_factory=lambda: PartitionLog.append_as_leader)
    #: The facts of one leadership, by their names -> its state.
    lead: Callable[..., LeaderState] = LeaderState
    #: (leadership, leader epoch of the append, offset that must be committed) -> the answer, None while it must wait
    acknowledgement: Callable[[LeaderState | None, int, int], ErrorCode | None] = acknowledgement
    #: (follower's end, high watermark, start of the leader epoch) -> may it join the ISR?
    may_join: Callable[[int, int, int], bool] = may_join
    #: (latest epoch, high watermark, log end) -> the log end offset to start to follow with
    initial_truncation: Callable[[int | None, int, int], int] = initial_truncation
    react: React = reaction
    #: What the leader sent, as a follower.
    follow: FollowerAppend = follow
    #: (log, the end it is to have) -> records removed; raises LogError
    truncate: Callable[[PartitionLog, int], int] = truncate
    #: (the leader's epochs, a follower's last epoch, the leader's log end) -> (epoch found, where it ends)
    end_offset_for: Callable[[LeaderEpochCache, int, int], tuple[int, int]] = LeaderEpochCache.end_offset_for
    #: How far a consumer's fetch reads, and what ListOffsets calls the end.
    fetch_end: ReadableEnd = readable_end
    listed_end: ReadableEnd = readable_end
    #: One partition's part of a consumer's fetch.
    read: ReadLog = read
    #: (log, high watermark, a consumer's position) -> the last one that is in range
    last_position: Callable[[PartitionLog, int, int], int] = last_position
    #: The transactions that a reader of committed records is told to leave out.
    aborted_transactions: AbortedTransactions = PartitionLog.aborted_transactions
    verification_error: VerificationError = verification_error
    control: ControlRules = field(default_factory=ControlRules)
    transactions: TransactionRules = field(default_factory=TransactionRules)
    groups: GroupRules = field(default_factory=GroupRules)
