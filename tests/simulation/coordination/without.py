"""Wrong logic of coordinators and of logs with transactions: what stands in the place of a rule that is taken away.

Owns the functions that ``removals`` puts there; docs/reference/anomalies-and-bugs.md tells the bugs they are after.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from cluster.broker.replicas.fetch_checks import FetchFinding, fetch_error
from cluster.broker.replicas.offset_lookup import LATEST, FoundOffset, WantedOffset, look_up
from cluster.broker.replicas.replica import Replica
from cluster.coordinator.group.coordinator import GroupCoordinator
from cluster.coordinator.group.decisions import GroupDecision
from cluster.coordinator.group.group import Group
from cluster.coordinator.group.records import TopicPartition
from cluster.coordinator.group.requests import CommitRequest, Waiter
from cluster.coordinator.transaction.coordinator import TransactionCoordinator
from cluster.coordinator.transaction.decisions import AppendRecord, TxnDecision
from cluster.coordinator.transaction.requests import end_txn
from cluster.coordinator.transaction.state import (
    TransactionMetadata,
    TransactionState,
    complete_transition,
)
from cluster.coordinator.transaction.transitions import prepare_abort_or_commit
from cluster.log.sequence import ACCEPTED, ProducerEntry, SequenceVerdict, check_sequence
from cluster.protocol.batch import BatchHeader
from cluster.protocol.errors import ErrorCode

# Transactions


def end_whichever_is_open(
    metadata: TransactionMetadata | None, _producer_id: int, _producer_epoch: int, now_ms: int, *, commit: bool
) -> TransactionMetadata | ErrorCode:
    """EndTxn ends what the transactional id has open, whoever asks."""
    if metadata is None:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    return end_txn(metadata, metadata.producer_id, metadata.producer_epoch, now_ms, commit=commit)


def take_any_epoch(
    entry: ProducerEntry | None, header: BatchHeader, log_start_offset: int, unknown_producer: str
) -> SequenceVerdict:
    """A log does not look at the epoch of a producer that has a later one."""
    if entry is not None and header.producer_epoch < entry.producer_epoch:
        return ACCEPTED
    return check_sequence(entry, header, log_start_offset, unknown_producer)


def time_out_in_the_same_epoch(metadata: TransactionMetadata, now_ms: int) -> TransactionMetadata | None:
    """A transaction that is open too long is aborted, and its producer goes on under the epoch it has."""
    is_open = metadata.state is TransactionState.ONGOING and metadata.pending is None
    if not is_open or metadata.start_timestamp_ms + metadata.timeout_ms >= now_ms:
        return None
    return prepare_abort_or_commit(metadata, commit=False, now_ms=now_ms)


_add_partitions = TransactionCoordinator.add_partitions
_loaded = TransactionCoordinator.loaded


def add_in_memory(coordinator: TransactionCoordinator, transactional_id: str, *arguments: Any) -> TxnDecision:
    """Which partitions a transaction has is known to its coordinator alone until it ends."""
    decision = _add_partitions(coordinator, transactional_id, *arguments)
    for append in decision.effects:
        served = coordinator.owned.find_of(transactional_id)
        assert isinstance(append, AppendRecord) and not isinstance(served, ErrorCode)
        served.put(complete_transition(served.transactions[transactional_id], append.transit))
        return TxnDecision(append.answer)
    return decision


def do_not_resume(coordinator: TransactionCoordinator, *arguments: Any) -> TxnDecision:
    """A new coordinator does not send the markers of what was decided before it."""
    _loaded(coordinator, *arguments)
    return TxnDecision()


def stable_is_committed(_log: object, high_watermark: int) -> int:
    """Readers of committed records are given what is replicated, whether it is decided or not."""
    return high_watermark


def name_no_aborted(*_arguments: object) -> list[tuple[int, int]]:
    """Fetch does not tell which transactions were aborted."""
    return []


def no_questions(*_arguments: object) -> list[object]:
    """Nobody asks a coordinator whether a partition is in a transaction."""
    return []


# Groups

_fetch_offsets = GroupCoordinator.fetch_offsets
_commit = GroupCoordinator.commit


def fetch_unstable(
    coordinator: GroupCoordinator,
    group_id: str,
    partitions: Collection[TopicPartition] | None,
    *,
    require_stable: bool,
) -> tuple[ErrorCode, Mapping[TopicPartition, object]]:
    """OffsetFetch tells what is committed although a transaction with a later offset is undecided."""
    return _fetch_offsets(coordinator, group_id, partitions, require_stable=False)


def answer_from_memory(
    coordinator: GroupCoordinator, waiter: Waiter, request: CommitRequest, now_ms: int
) -> GroupDecision:
    """OffsetCommit is answered before anybody else has it."""
    decision = _commit(coordinator, waiter, request, now_ms)
    if decision.appends:
        decision.answer(waiter, dict.fromkeys(request.offsets, ErrorCode.NONE))
    return decision


#: By far less than anything lives.
_SHORT_MS = 300


def expire_by_commit_time(group: Group, now_ms: int, _retention_ms: int) -> Iterable[TopicPartition]:
    """Offsets expire by the time of their commit, also those that members read on from."""
    return [
        partition
        for partition, placed in group.offsets.committed.items()
        if not group.offsets.is_uncommitted(partition) and now_ms - placed.committed.commit_timestamp_ms >= _SHORT_MS
    ]


# Reading

_read = Replica.read


def refuse_above_the_watermark(replica: Replica, wanted: Any, reader: Any, *arguments: Any) -> FetchFinding:
    """A position above a new leader's high watermark, which lags behind, is told to be out of range."""
    leader = replica.leader
    if leader is not None and not reader.is_follower and wanted.fetch_offset > leader.high_watermark:
        return FetchFinding(fetch_error(wanted.topic, wanted.partition, ErrorCode.OFFSET_OUT_OF_RANGE), 0, True)
    return _read(replica, wanted, reader, *arguments)


def end_at_the_watermark(
    find: Callable[[str, int], Replica], wanted: WantedOffset, replica_id: int, _isolation_level: int, **options: bool
) -> Any:
    """ListOffsets tells readers of committed records the end of what is replicated."""
    return look_up(find, wanted, replica_id, 0, **options)


def end_one_later(
    find: Callable[[str, int], Replica], wanted: WantedOffset, replica_id: int, isolation_level: int, **options: bool
) -> Any:
    """ListOffsets tells an end that is one too far."""
    found: FoundOffset = yield from look_up(find, wanted, replica_id, isolation_level, **options)
    return found._replace(offset=found.offset + 1) if wanted.timestamp == LATEST else found
