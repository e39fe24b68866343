"""What ends: offsets that expired, that a request deletes or whose topic is gone, and groups without members.

Owns what may be removed, and its tombstones (docs/reference/kafka.md "Committed offsets"). Nothing is forgotten before
its tombstone is stored: what is told stays what a coordinator would read that takes over. Until then a group that is
removed is Dead, and one whose tombstone failed is Empty again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet

from cluster.coordinator.group.answers import DeleteOffsetsAnswer
from cluster.coordinator.group.checks import offset_append_error
from cluster.coordinator.group.decisions import GroupDecision
from cluster.coordinator.group.group import Group
from cluster.coordinator.group.member_effects import append
from cluster.coordinator.group.purposes import GroupRemoval, RemovalStored
from cluster.coordinator.group.records import NO_TIMESTAMP, Tombstones
from cluster.coordinator.group.requests import Waiter
from cluster.coordinator.group.states import GroupState
from cluster.coordinator.group.stored_group import revived
from cluster.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE
from cluster.protocol.errors import ErrorCode
from cluster.topic_partition import TopicPartition

#: (group, now, retention) -> the partitions whose offsets are to be forgotten.
ExpiredOffsets = Callable[[Group, int, int], list[TopicPartition]]

#: Bytes of a batch of tombstones, about; a single one may take more.
TOMBSTONES_BYTES = 65_536
#: What one takes besides its texts, and what a pending offset that goes with it counts for: to forget thousands takes
#: milliseconds.
_TOMBSTONE_BYTES = _PENDING_BYTES = 20


def expired_offsets(group: Group, now_ms: int, retention_ms: int) -> list[TopicPartition]:
    """Offsets whose time is over (KIP-211): since the group became Empty, or since the commit."""
    is_empty = group.state is GroupState.EMPTY
    is_read = group.protocol_type == CONSUMER_PROTOCOL_TYPE and group.state is GroupState.STABLE
    since_ms = NO_TIMESTAMP
    if group.protocol_type is not None and is_empty:
        since_ms = group.state_timestamp_ms
    elif group.protocol_type is not None and not is_read:
        return []
    expired = []
    for partition, placed in group.offsets.committed.items():
        committed = placed.committed
        if group.offsets.is_uncommitted(partition):
            continue
        if committed.expire_timestamp_ms != NO_TIMESTAMP:
            is_over = now_ms >= committed.expire_timestamp_ms
        else:
            begin_ms = committed.commit_timestamp_ms if since_ms == NO_TIMESTAMP else since_ms
            is_over = now_ms - begin_ms >= retention_ms
        if is_over:
            expired.append(partition)
    return _unwanted(group, expired) if is_read and expired else expired


def _unwanted(group: Group, partitions: list[TopicPartition]) -> list[TopicPartition]:
    """Those of topics that no member reads."""
    subscribed = group.subscribed_topics()
    return [] if subscribed is None else [each for each in partitions if each[0] not in subscribed]


def expire(decision: GroupDecision, group: Group, expired_offsets: ExpiredOffsets) -> bool:
    """Remove what has expired. True if the group is no more: nothing of it was ever stored."""
    if group.state is GroupState.DEAD:
        return False
    expired = expired_offsets(group, decision.now_ms, decision.settings.offsets_retention_ms)
    rests = len(expired) < len(group.offsets.committed) or group.offsets.has_uncommitted
    if group.state is GroupState.EMPTY and not group.pending_members and not rests:
        return remove_group(decision, group, None)
    if expired:
        _append_tombstones(decision, group, GroupRemoval(), expired)
    return False


def remove_group(decision: GroupDecision, group: Group, waiter: Waiter | None) -> bool:
    """Have an Empty group removed. True if there is nothing to store, and so it is gone already."""
    group.transition(GroupState.DEAD, group.state_timestamp_ms)
    decision.cancel_timers(group.timers)
    group.timers = {}
    group.pending_members = set()
    offsets = group.offsets
    partitions = [*offsets.committed, *sorted(offsets.uncommitted - offsets.committed.keys())]
    if not partitions and group.generation_id == 0:
        if waiter is not None:
            decision.answer(waiter, ErrorCode.NONE)
        return True
    _append_tombstones(
        decision, group, GroupRemoval(removes_group=True, waiter=waiter, success=ErrorCode.NONE), partitions
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
    subscribed = group.subscribed_topics() if has_members else frozenset()
    errors = {
        partition: (
            ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed is None or partition[0] in subscribed else ErrorCode.NONE
        )
        for partition in partitions
    }
    deleted = [partition for partition, error_code in errors.items() if error_code is ErrorCode.NONE]
    success = DeleteOffsetsAnswer(ErrorCode.NONE, errors)
    there = group.offsets.among(frozenset(deleted))
    if there:
        _append_tombstones(decision, group, GroupRemoval(waiter=waiter, success=success), there)
    else:
        decision.answer(waiter, success)


def forget_topics(decision: GroupDecision, group: Group, partitions: AbstractSet[TopicPartition]) -> None:
    """Partitions were deleted: their offsets say nothing of topics that get the same name. A group that is being
    removed may stay after all, if its own tombstones fail."""
    there = group.offsets.among(partitions)
    if there:
        _append_tombstones(decision, group, GroupRemoval(), there)


def _append_tombstones(
    decision: GroupDecision, group: Group, removal: GroupRemoval, partitions: Sequence[TopicPartition]
) -> None:
    """As many batches as it takes: none is large, so each fits into the log and takes little time to append."""
    group_bytes = _TOMBSTONE_BYTES + len(group.group_id)
    batches: list[list[TopicPartition]] = [[]]
    left_bytes = TOMBSTONES_BYTES
    for partition in partitions:
        pending = len(group.offsets.producers.get(partition, ()))
        left_bytes -= group_bytes + len(partition[0]) + _PENDING_BYTES * pending
        if left_bytes < 0 and batches[-1]:
            batches.append([])
            left_bytes = TOMBSTONES_BYTES
        batches[-1].append(partition)
    for some in batches:
        is_last = some is batches[-1]
        with_group = is_last and removal.removes_group and group.generation_id > 0
        records = Tombstones(group.group_id, some, with_group=with_group)
        append(decision, group, records, RemovalStored(removal, tuple(some), is_last))


def removal_stored(
    decision: GroupDecision, group: Group | None, purpose: RemovalStored, error_code: ErrorCode
) -> Group | None:
    """Forget what was removed, and answer. The group that is to be kept, which is None if it is gone."""
    removal = purpose.removal
    if group is not None and error_code is ErrorCode.NONE:
        group.offsets.removed(purpose.partitions)
    removal.error_code = removal.error_code or error_code
    if not purpose.is_last:
        return group
    if removal.waiter is not None:
        failed = offset_append_error(removal.error_code)
        answer = DeleteOffsetsAnswer(failed) if isinstance(removal.success, DeleteOffsetsAnswer) else failed
        decision.answer(removal.waiter, removal.success if removal.error_code is ErrorCode.NONE else answer)
    if group is None or not removal.removes_group:
        return group
    if removal.error_code is ErrorCode.NONE:
        return None
    return revived(group, is_stored=error_code is not ErrorCode.NONE)
