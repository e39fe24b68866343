"""OffsetCommit, TxnOffsetCommit and OffsetFetch: who may commit, and what is read back.

Owns the checks (docs/reference/kafka.md "Committed offsets"). Does not own which of several commits counts
(``group_offsets``), nor whether topics exist: the handler has left those out that do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cluster.coordinator.group.answers import FetchedOffset
from cluster.coordinator.group.checks import check_generation, offset_append_error
from cluster.coordinator.group.decisions import GroupDecision
from cluster.coordinator.group.group import Group
from cluster.coordinator.group.group_offsets import offset_bytes, pending_bytes
from cluster.coordinator.group.member_effects import append, watch_session
from cluster.coordinator.group.purposes import OffsetsStored
from cluster.coordinator.group.records import (
    LEAST_OFFSET_BYTES,
    NO_TIMESTAMP,
    CommittedOffset,
    offset_key,
    offset_value,
)
from cluster.coordinator.group.requests import UNKNOWN_MEMBER_ID, CommitRequest, OffsetToCommit, Waiter
from cluster.coordinator.group.states import GroupState
from cluster.coordinator.partitioning import utf16_units
from cluster.protocol.errors import ErrorCode
from cluster.topic_partition import TopicPartition

#: The last time that a record can tell, in milliseconds.
MAX_TIMESTAMP = 2**63 - 1


def commit(decision: GroupDecision, group: Group, request: CommitRequest, waiter: Waiter) -> None:
    """Have offsets appended, or refuse them. The answer is the error of each partition."""
    error_code = check_commit(group, request)
    if error_code is not ErrorCode.NONE:
        decision.answer(waiter, dict.fromkeys(request.offsets, error_code))
        return
    member = group.members.get(request.member.member_id)
    if member is not None and not request.is_transactional:
        watch_session(decision, group, member)
    most = decision.settings.offset_metadata_max_bytes
    offsets = {
        partition: _committed(asked, decision.now_ms)
        for partition, asked in request.offsets.items()
        if len(utf16_units(asked.metadata)) <= most
    }
    refused = dict.fromkeys(request.offsets.keys() - offsets.keys(), ErrorCode.OFFSET_METADATA_TOO_LARGE)
    if not offsets:
        decision.answer(waiter, refused)
        return
    if _least_batch_bytes(group, offsets) > decision.settings.message_max_bytes:
        decision.answer(waiter, {**dict.fromkeys(offsets, ErrorCode.INVALID_COMMIT_OFFSET_SIZE), **refused})
        return
    records = tuple(
        (offset_key(group.group_id, *partition), offset_value(committed)) for partition, committed in offsets.items()
    )
    purpose = OffsetsStored(waiter, offsets, refused, request.producer_id)
    # Only now: of offsets that cannot be written, none is in flight.
    group.offsets.begin(offsets, request.producer_id)
    append(decision, group, records, purpose, request.producer_id, request.producer_epoch)


def growth(group: Group, request: CommitRequest) -> int:
    """By how much a commit makes its group larger, at most. What a transaction commits is kept apart until it
    ends."""
    if request.is_transactional:
        return sum(map(pending_bytes, request.offsets.values()))
    committed = group.offsets.committed
    grown = sum(map(offset_bytes, request.offsets.values()))
    return grown - sum(offset_bytes(committed[each].committed) for each in request.offsets if each in committed)


def _least_batch_bytes(group: Group, offsets: Mapping[TopicPartition, CommittedOffset]) -> int:
    """No more than the batch of a commit takes."""
    texts = sum(len(topic) + len(committed.metadata) for (topic, _), committed in offsets.items())
    return texts + len(offsets) * (LEAST_OFFSET_BYTES + len(group.group_id))


def check_commit(group: Group, request: CommitRequest) -> ErrorCode:
    """Whether the caller may commit for this group."""
    member = request.member
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if member.generation_id < 0 and group.state is GroupState.EMPTY:
        return ErrorCode.NONE
    names_member = (
        member.generation_id >= 0 or member.member_id != UNKNOWN_MEMBER_ID or member.group_instance_id is not None
    )
    if names_member:
        error_code = check_generation(group, member)
    elif request.is_transactional or group.state is GroupState.EMPTY:
        # Producers before KIP-447 do not say for which member they commit.
        error_code = ErrorCode.NONE
    else:
        error_code = ErrorCode.UNKNOWN_MEMBER_ID
    is_completing = group.state is GroupState.COMPLETING_REBALANCE
    if error_code is ErrorCode.NONE and is_completing and not request.is_transactional:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return error_code


def _committed(asked: OffsetToCommit, now_ms: int) -> CommittedOffset:
    """A retention that ends later than a record can tell ends with the last time that it can."""
    expire_ms = NO_TIMESTAMP if asked.retention_ms < 0 else min(now_ms + asked.retention_ms, MAX_TIMESTAMP)
    return CommittedOffset(asked.offset, asked.metadata, now_ms, asked.leader_epoch, expire_ms)


def offsets_stored(
    decision: GroupDecision, group: Group | None, purpose: OffsetsStored, error_code: ErrorCode, position: int
) -> None:
    """Take over what is in the log, and answer. ``group`` is None if it is coordinated elsewhere by now."""
    if group is not None and error_code is ErrorCode.NONE:
        group.offsets.appended(purpose.offsets, position, purpose.producer_id)
    elif group is not None:
        group.offsets.failed(purpose.offsets, purpose.producer_id)
    told = ErrorCode.NONE if error_code is ErrorCode.NONE else offset_append_error(error_code)
    decision.answer(purpose.waiter, {**dict.fromkeys(purpose.offsets, told), **purpose.refused})


def fetch(
    group: Group | None, partitions: Iterable[TopicPartition] | None, *, require_stable: bool
) -> dict[TopicPartition, FetchedOffset]:
    """What is committed for ``partitions``, or for all that have an offset if that is None. Anyone may ask."""
    if group is None:
        return dict.fromkeys(partitions or (), FetchedOffset())
    fetched = {}
    for partition in group.offsets.committed if partitions is None else partitions:
        placed = group.offsets.committed.get(partition)
        if require_stable and group.offsets.is_uncommitted(partition):
            fetched[partition] = FetchedOffset(ErrorCode.UNSTABLE_OFFSET_COMMIT)
        elif placed is None:
            fetched[partition] = FetchedOffset()
        else:
            committed = placed.committed
            fetched[partition] = FetchedOffset(
                ErrorCode.NONE, committed.offset, committed.leader_epoch, committed.metadata
            )
    return fetched
