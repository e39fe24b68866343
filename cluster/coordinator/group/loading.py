"""Taking over a partition of ``__consumer_offsets``, and giving it back.

Owns how groups and offsets come out of the records of a log, with transactions that are still open, and what their
members are told when the partition goes. Does not own reading the log: the shell feeds batches from its start to its
end. A record that cannot be read makes its group unavailable, and no other one: to pass over it and serve the group
would be to forget an offset.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from cluster.coordinator.group.answers import JoinAnswer, SyncAnswer
from cluster.coordinator.group.decisions import GroupDecision, Records
from cluster.coordinator.group.group import Group
from cluster.coordinator.group.group_offsets import GroupOffsets, PlacedOffset
from cluster.coordinator.group.group_values import GroupValue, parse_group_value
from cluster.coordinator.group.homes import OffsetsPartition
from cluster.coordinator.group.member_effects import answer_join, answer_sync, watch_session
from cluster.coordinator.group.rebalancing import prepare
from cluster.coordinator.group.records import (
    CorruptGroupRecord,
    GroupKey,
    OffsetKey,
    UnknownKey,
    parse_key,
    parse_offset_value,
)
from cluster.coordinator.group.requests import NO_PRODUCER_ID
from cluster.coordinator.group.states import GroupState
from cluster.coordinator.group.stored_group import group_of
from cluster.coordinator.unreadable import UnreadableRecords
from cluster.protocol.errors import ErrorCode


class LoadedBatch(NamedTuple):
    """A batch of the log. ``is_committed`` is what a marker says, None in a batch that is no marker."""

    position: int
    records: Records = ()
    producer_id: int = NO_PRODUCER_ID
    is_transactional: bool = False
    is_committed: bool | None = None


class GroupLoader:
    """Reads one partition. ``home`` is whose it is; a loader of an earlier term is not taken."""

    def __init__(self, home: OffsetsPartition) -> None:
        self.home = home
        self.unreadable = UnreadableRecords()
        self._values: dict[str, GroupValue] = {}
        self._offsets: defaultdict[str, GroupOffsets] = defaultdict(GroupOffsets)
        #: Producer id -> groups with offsets of its open transaction.
        self._open: defaultdict[int, set[str]] = defaultdict(set)
        #: Group id -> keys of which the last value cannot be read.
        self._unknown: defaultdict[str, set[GroupKey | OffsetKey]] = defaultdict(set)

    def __repr__(self) -> str:
        return f"<GroupLoader of {self.home}: {len(self._values)} groups, offsets of {len(self._offsets)}>"

    def feed(self, batch: LoadedBatch) -> None:
        """Batches come in the order of the log."""
        if batch.is_committed is not None:
            self._end_transaction(batch.producer_id, is_committed=batch.is_committed)
            return
        for key_bytes, value in batch.records:
            try:
                key = parse_key(key_bytes)
            except CorruptGroupRecord as error:
                self.unreadable.note(batch.position, str(error))
                continue
            if isinstance(key, UnknownKey):
                continue
            try:
                self._feed_record(batch, key, value)
            except CorruptGroupRecord as error:
                self.unreadable.note(batch.position, f"{key}: {error}")
                self._unknown[key.group_id].add(key)

    def _feed_record(self, batch: LoadedBatch, key: GroupKey | OffsetKey, value: bytes | None) -> None:
        """Raises ``CorruptGroupRecord``."""
        if isinstance(key, OffsetKey):
            self._feed_offset(batch, key, value)
        elif value is None:
            self._values.pop(key.group_id, None)
        else:
            self._values[key.group_id] = parse_group_value(value)
        if not batch.is_transactional:
            self._known(key)

    def _feed_offset(self, batch: LoadedBatch, key: OffsetKey, value: bytes | None) -> None:
        placed = None if value is None else PlacedOffset(parse_offset_value(value), batch.position)
        offsets = self._offsets[key.group_id]
        partition = key.topic_partition
        if batch.is_transactional:
            self._open[batch.producer_id].add(key.group_id)
            offsets.load(partition, placed, batch.producer_id)
        else:
            offsets.load(partition, placed)

    def _end_transaction(self, producer_id: int, *, is_committed: bool) -> None:
        for group_id in self._open.pop(producer_id, ()):
            offsets = self._offsets[group_id]
            if is_committed and group_id in self._unknown:
                for partition in offsets.transactions.get(producer_id, ()):
                    self._known(OffsetKey(group_id, *partition))
            offsets.ended(producer_id, is_committed=is_committed)

    def _known(self, key: GroupKey | OffsetKey) -> None:
        """What was unreadable under this key no longer counts."""
        unknown = self._unknown.get(key.group_id)
        if unknown is not None:
            unknown.discard(key)
            if not unknown:
                del self._unknown[key.group_id]

    @property
    def unavailable(self) -> frozenset[str]:
        """Groups of which something cannot be read."""
        return frozenset(self._unknown)

    def groups(self, now_ms: int) -> dict[str, Group]:
        """What was read, but for groups that are unavailable: nothing of them may be told, or expire. A group of simple
        consumers has no record, only offsets."""
        found = {
            group_id: group_of(group_id, self.home, value)
            for group_id, value in self._values.items()
            if group_id not in self._unknown
        }
        for group_id, offsets in self._offsets.items():
            if group_id in self._unknown:
                continue
            if group_id not in found and not offsets.is_empty:
                found[group_id] = Group(group_id, self.home, now_ms)
            if group_id in found:
                found[group_id].offsets = offsets
        return found


def begin(decision: GroupDecision, groups: Iterable[Group]) -> None:
    """Members have their whole session to find the new coordinator. A group that is too large shrinks by a rebalance,
    in which its members can commit."""
    for group in groups:
        for member in group.members.values():
            watch_session(decision, group, member)
        if len(group.members) > decision.settings.group_max_size:
            prepare(decision, group)


def end(decision: GroupDecision, groups: Iterable[Group]) -> None:
    """Another broker coordinates these groups: every waiter is told so, and no timer is left."""
    for group in groups:
        for member in group.members.values():
            answer_join(decision, group, member, JoinAnswer(ErrorCode.NOT_COORDINATOR, member.member_id))
            answer_sync(decision, member, SyncAnswer(ErrorCode.NOT_COORDINATOR))
        decision.cancel_timers(group.timers)
        group.timers = {}
        group.replacing = set()
        group.end_storing()
        group.transition(GroupState.DEAD, decision.now_ms)
