"""What ends: offsets that expired, that a request deletes or whose topic is gone, and groups without members.

Owns what may be removed, and its tombstones (docs/reference/kafka.md "Committed offsets"). Nothing is forgotten before
its tombstone is stored: what is told stays what a coordinator would read that takes over. Until then a group that is
removed is Dead, and one whose tombstone failed is Empty again.
"""

from __future__ import annotations

from collections.abc import Iterable

from cluster.coordinator.group.answers import DeleteOffsetsAnswer
from cluster.coordinator.group.checks import offset_append_error
from cluster.coordinator.group.decisions import GroupDecision
from cluster.coordinator.group.group import Group
from cluster.coordinator.group.purposes import RemovalStored
from cluster.coordinator.group.records import NO_TIMESTAMP, TopicPartition, group_key, offset_key
from cluster.coordinator.group.requests import Waiter
from cluster.coordinator.group.states import GroupState
from cluster.coordinator.group.waiting import append
from cluster.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE
from cluster.protocol.errors import ErrorCode


def expired_offsets(group: Group, now_ms: int, retention_ms: int) -> list[TopicPartition]:
    """Offsets whose time is over (KIP-211): since the group became Empty, or since the commit."""
    is_empty = group.state is GroupState.EMPTY
    subscribed: frozenset[str] = frozenset()
    since_ms = NO_TIMESTAMP
    if group.protocol_type is not None and is_empty:
        since_ms = group.state_timestamp_ms
    elif (
        group.protocol_type == CONSUMER_PROTOCOL_TYPE
        and group.state is GroupState.STABLE
        and group.subscribed is not None
    ):
        subscribed = group.subscribed
    elif group.protocol_type is not None:
        return []
    expired, unstable = [], group.offsets.uncommitted
    for partition, placed in group.offsets.committed.items():
        committed = placed.committed
        if partition[0] in subscribed or partition in unstable:
            continue
        if committed.expire_timestamp_ms != NO_TIMESTAMP:
            is_over = now_ms >= committed.expire_timestamp_ms
        else:
            begin_ms = committed.commit_timestamp_ms if since_ms == NO_TIMESTAMP else since_ms
            is_over = now_ms - begin_ms >= retention_ms
        if is_over:
            expired.append(partition)
    return expired


def expire(decision: GroupDecision, group: Group) -> bool:
    """Remove what has expired. True if the group is no more: nothing of it was ever stored."""
    if group.state is GroupState.DEAD:
        return False
    expired = expired_offsets(group, decision.now_ms, decision.settings.offsets_retention_ms)
    rests = len(expired) < len(group.offsets.committed) or group.offsets.uncommitted
    if group.state is GroupState.EMPTY and not group.pending_members and not rests:
        return remove_group(decision, group, None)
    if expired:
        _append_tombstones(decision, group, RemovalStored(tuple(expired)))
    return False


def remove_group(decision: GroupDecision, group: Group, waiter: Waiter | None) -> bool:
    """Have an Empty group removed. True if there is nothing to store, and so it is gone already."""
    group.transition(GroupState.DEAD, group.state_timestamp_ms)
    decision.cancel_timers(group.timers)
    group.timers, group.pending_members = {}, set()
    offsets = group.offsets
    partitions = (*offsets.committed, *sorted(offsets.uncommitted - offsets.committed.keys()))
    if not partitions and group.generation_id == 0:
        if waiter is not None:
            decision.answer(waiter, ErrorCode.NONE)
        return True
    _append_tombstones(
        decision, group, RemovalStored(partitions, removes_group=True, waiter=waiter, success=ErrorCode.NONE)
    )
    return False


def delete_group(decision: GroupDecision, group: Group, waiter: Waiter) -> bool:
    """DeleteGroups, of one group. True if it is gone already."""
    if group.state is GroupState.EMPTY:
        return remove_group(decision, group, waiter)
    is_dead = group.state is GroupState.DEAD
    decision.answer(waiter, ErrorCode.COORDINATOR_NOT_AVAILABLE if is_dead else ErrorCode.NON_EMPTY_GROUP)
    return False


def delete_offsets(decision: GroupDecision, group: Group, partitions: Iterable[TopicPartition], waiter: Waiter) -> None:
    """OffsetDelete: not what members of the group read (KIP-496)."""
    if group.state is GroupState.DEAD:
        decision.answer(waiter, DeleteOffsetsAnswer(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        return
    has_members = group.state is not GroupState.EMPTY
    if has_members and group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        decision.answer(waiter, DeleteOffsetsAnswer(ErrorCode.NON_EMPTY_GROUP))
        return
    errors = {
        partition: (
            ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            if has_members and (group.subscribed is None or partition[0] in group.subscribed)
            else ErrorCode.NONE
        )
        for partition in partitions
    }
    deleted = [partition for partition, error_code in errors.items() if error_code is ErrorCode.NONE]
    success = DeleteOffsetsAnswer(ErrorCode.NONE, errors)
    if not _remove(decision, group, deleted, waiter, success):
        decision.answer(waiter, success)


def forget_topics(decision: GroupDecision, group: Group, partitions: Iterable[TopicPartition]) -> None:
    """Partitions were deleted: their offsets say nothing of topics that get the same name."""
    if group.state is not GroupState.DEAD:
        _remove(decision, group, partitions, None, None)


def _remove(
    decision: GroupDecision, group: Group, partitions: Iterable[TopicPartition], waiter: Waiter | None, success: object
) -> bool:
    """Whether any of ``partitions`` had an offset, or may get one of what is in flight."""
    offsets = group.offsets
    there = tuple(each for each in partitions if each in offsets.committed or each in offsets.uncommitted)
    if there:
        _append_tombstones(decision, group, RemovalStored(there, waiter=waiter, success=success))
    return bool(there)


def _append_tombstones(decision: GroupDecision, group: Group, purpose: RemovalStored) -> None:
    records: list[tuple[bytes, bytes | None]] = [
        (offset_key(group.group_id, *partition), None) for partition in purpose.partitions
    ]
    if purpose.removes_group and group.generation_id > 0:
        records.append((group_key(group.group_id), None))
    append(decision, group, tuple(records), purpose)


def removal_stored(
    decision: GroupDecision, group: Group | None, purpose: RemovalStored, error_code: ErrorCode
) -> Group | None:
    """Forget what was removed, and answer. The group that is to be kept, which is None if it is gone."""
    if purpose.waiter is not None:
        failed = offset_append_error(error_code)
        answer = DeleteOffsetsAnswer(failed) if isinstance(purpose.success, DeleteOffsetsAnswer) else failed
        decision.answer(purpose.waiter, purpose.success if error_code is ErrorCode.NONE else answer)
    if group is None:
        return None
    if error_code is ErrorCode.NONE:
        group.offsets.removed(purpose.partitions)
        return None if purpose.removes_group else group
    return group.revived() if purpose.removes_group else group
