"""OffsetRequests: how what concerns committed offsets finds its group.

Owns the way of OffsetCommit, TxnOffsetCommit, OffsetFetch and OffsetDelete, of markers, of topics that are deleted and
of offsets that expire. What each means to a group is in ``committing``, ``removing`` and the broker's rules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet

from cluster.coordinator.group import committing, removing
from cluster.coordinator.group.answers import DeleteOffsetsAnswer, FetchedOffset
from cluster.coordinator.group.decisions import GroupDecision, GroupSettings
from cluster.coordinator.group.group import Group
from cluster.coordinator.group.group_table import GroupTable
from cluster.coordinator.group.requests import CommitRequest, Waiter
from cluster.coordinator.group.rules import GroupRules
from cluster.protocol.errors import ErrorCode
from cluster.topic_partition import TopicPartition


class OffsetRequests(GroupTable):
    """What a ``GroupCoordinator`` is to those who commit and read offsets."""

    def __init__(self, settings: GroupSettings, rules: GroupRules) -> None:
        super().__init__(settings)
        self._rules = rules

    def commit(self, waiter: Waiter, request: CommitRequest, now_ms: int) -> GroupDecision:
        """OffsetCommit and TxnOffsetCommit. Answered by an error code for each partition."""
        decision = self._decision(now_ms)
        error_code = self.status(request.group_id, empty_id_is_valid=not request.is_transactional)
        group = self.group(request.group_id)
        if error_code is ErrorCode.NONE and group is None:
            if request.member.generation_id < 0 or request.is_transactional:
                group = self._new_group(request.group_id, now_ms, request.client_host)
            else:
                error_code = ErrorCode.ILLEGAL_GENERATION
        if group is not None and not self._has_room(group, committing.growth(group, request), request.client_host):
            error_code = error_code or ErrorCode.INVALID_COMMIT_OFFSET_SIZE
        if error_code is not ErrorCode.NONE or group is None:
            decision.answer(waiter, dict.fromkeys(request.offsets, error_code))
        else:
            self._rules.commit(decision, group, request, waiter)
            self._keep(group)
        return decision

    def fetch_offsets(
        self, group_id: str, partitions: Collection[TopicPartition] | None, *, require_stable: bool
    ) -> tuple[ErrorCode, dict[TopicPartition, FetchedOffset]]:
        """OffsetFetch, which changes nothing."""
        error_code = self.status(group_id, empty_id_is_valid=True)
        if error_code is not ErrorCode.NONE:
            return error_code, {}
        return error_code, self._rules.fetch(self.group(group_id), partitions, require_stable=require_stable)

    def transaction_ended(self, partition: int, producer_id: int, *, is_committed: bool) -> None:
        """A marker is in the log, and the results of all appends before it were told. While loading, feed it."""
        for group in list(self.groups.get(partition, {}).values()):
            if group.offsets.has_of(producer_id):
                group.offsets.ended(producer_id, is_committed=is_committed)
                self._changed(group)

    def delete_offsets(
        self, waiter: Waiter, group_id: str, partitions: Collection[TopicPartition], now_ms: int
    ) -> GroupDecision:
        """OffsetDelete. Answered by a ``DeleteOffsetsAnswer``."""
        decision = self._decision(now_ms)
        error_code = self.status(group_id)
        group = self.group(group_id)
        if error_code is not ErrorCode.NONE or group is None:
            decision.answer(waiter, DeleteOffsetsAnswer(error_code or ErrorCode.GROUP_ID_NOT_FOUND))
        else:
            removing.delete_offsets(decision, group, partitions, waiter)
        return decision

    def topics_deleted(self, partitions: AbstractSet[TopicPartition]) -> None:
        """Partitions of topics were deleted. ``forget_topics`` is to follow for all groups that are here; the log that
        is being read may have offsets of them, too."""
        for home in self.homes.values():
            if home.is_loading:
                home.deleted |= partitions

    def forget_topics(
        self, groups: Iterable[Group], partitions: AbstractSet[TopicPartition], now_ms: int
    ) -> GroupDecision:
        """Partitions of topics were deleted, which concerns all groups; these are some of them."""
        decision = self._decision(now_ms)
        # One whose removal failed meanwhile has another in its place, with its offsets.
        now_here = (self.groups.get(each.home.index, {}).get(each.group_id) for each in groups)
        self._forget_topics(decision, filter(None, now_here), partitions)
        return decision

    def _forget_topics(
        self, decision: GroupDecision, groups: Iterable[Group], partitions: AbstractSet[TopicPartition]
    ) -> None:
        if partitions:
            for group in groups:
                removing.forget_topics(decision, group, partitions)

    def expire(self, groups: Iterable[Group], now_ms: int) -> GroupDecision:
        """Remove what has expired of some groups; due for all every ``offsets.retention.check.interval.ms``."""
        decision = self._decision(now_ms)
        for group in filter(self._is_here, groups):
            self._put(group, None if removing.expire(decision, group, self._rules.expired_offsets) else group)
        return decision

    def _decision(self, now_ms: int) -> GroupDecision:
        return GroupDecision(self.settings, now_ms)
