"""The group coordinator of one broker: which partitions of ``__consumer_offsets`` it leads, and the groups in them.

Owns the way of every event to its group: requests, timers, results of appends, markers, and partitions that come and
go. What an event means is in the modules of each request. Whatever changes a group returns a ``GroupDecision``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet

from cluster.coordinator.group import (
    committing,
    describing,
    heartbeats,
    joining,
    loading,
    rebalancing,
    removing,
    syncing,
)
from cluster.coordinator.group.answers import (
    DeleteOffsetsAnswer,
    FetchedOffset,
    GroupDescription,
    GroupListing,
    JoinAnswer,
    LeaveAnswer,
    MemberLeft,
    SyncAnswer,
)
from cluster.coordinator.group.decisions import GroupAppend, GroupDecision, GroupSettings, TimerKind, TimerName
from cluster.coordinator.group.group import Group, OffsetsPartition
from cluster.coordinator.group.group_table import GroupTable
from cluster.coordinator.group.purposes import AssignmentStored, OffsetsStored, RemovalStored, StaticMemberStored
from cluster.coordinator.group.requests import (
    UNKNOWN_MEMBER_ID,
    CommitRequest,
    JoinRequest,
    MemberIdentity,
    SyncRequest,
    Waiter,
)
from cluster.coordinator.group.rules import CORRECT, GroupRules
from cluster.coordinator.group.sizes import join_growth, sync_growth
from cluster.protocol.errors import ErrorCode
from cluster.topic_partition import TopicPartition


class GroupCoordinator(GroupTable):
    """NOT thread-safe."""

    def __init__(
        self, settings: GroupSettings, new_member_id: joining.NewMemberId, rules: GroupRules = CORRECT
    ) -> None:
        super().__init__(settings)
        self._rules = rules
        self._new_member_id = new_member_id

    def __repr__(self) -> str:
        return f"<GroupCoordinator of {sorted(self.homes)}, {sum(map(len, self.groups.values()))} groups>"

    # partitions

    def elected(self, partition: int, leader_epoch: int) -> loading.GroupLoader | None:
        """This broker leads a partition. What is to be fed with its log; None if its groups are here already."""
        home = self.homes.get(partition)
        if home is not None:
            home.leader_epoch = max(home.leader_epoch, leader_epoch)
            return None
        self.homes[partition] = OffsetsPartition(partition, leader_epoch, leader_epoch)
        return loading.GroupLoader(self.homes[partition])

    def loaded(self, loader: loading.GroupLoader, now_ms: int) -> GroupDecision:
        """The log was read to its end. Nothing happens if the partition has gone meanwhile."""
        decision, home = self._decision(now_ms), loader.home
        if self.homes.get(home.index) is home and home.is_loading:
            home.is_loading, home.unavailable = False, loader.unavailable
            self._take(home.index, loader.groups(now_ms))
            loading.begin(decision, self.groups[home.index].values())
            deleted, home.deleted = home.deleted, set()
            self._forget_topics(decision, self.groups[home.index].values(), deleted)
        return decision

    def resigned(self, partition: int, now_ms: int) -> GroupDecision:
        """Another broker leads the partition."""
        decision = self._decision(now_ms)
        loading.end(decision, self._give_up(partition))
        return decision

    # members

    def join(self, waiter: Waiter, request: JoinRequest, now_ms: int) -> GroupDecision:
        """JoinGroup. Answered by a ``JoinAnswer``."""
        decision, settings = self._decision(now_ms), self.settings
        error_code = self.status(request.group_id)
        least_ms, most_ms = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
        group = self.group(request.group_id)
        if error_code is ErrorCode.NONE and not least_ms <= request.session_timeout_ms <= most_ms:
            error_code = ErrorCode.INVALID_SESSION_TIMEOUT
        if error_code is ErrorCode.NONE and group is None:
            if request.member_id == UNKNOWN_MEMBER_ID:
                group = self._new_group(request.group_id, now_ms, request.client_host)
            else:
                error_code = ErrorCode.UNKNOWN_MEMBER_ID
        if group is not None and not self._has_room(group, join_growth(group, request), request.client_host):
            error_code = error_code or ErrorCode.GROUP_MAX_SIZE_REACHED
        if error_code is not ErrorCode.NONE or group is None:
            decision.answer(waiter, JoinAnswer(error_code, request.member_id))
        else:
            joining.join(decision, group, request, waiter, self._new_member_id)
            self._keep(group)
        return decision

    def sync(self, waiter: Waiter, request: SyncRequest, now_ms: int) -> GroupDecision:
        """SyncGroup. Answered by a ``SyncAnswer``."""
        decision, error_code = self._decision(now_ms), self.status(request.group_id)
        group = self.group(request.group_id)
        if error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # The rebalance is lost, and older clients do not expect that error here.
            decision.answer(waiter, SyncAnswer(ErrorCode.REBALANCE_IN_PROGRESS))
        elif error_code is not ErrorCode.NONE or group is None:
            decision.answer(waiter, SyncAnswer(error_code or ErrorCode.UNKNOWN_MEMBER_ID))
        elif request.assignments and not self.room.has(group, sync_growth(group, request.assignments)):
            decision.answer(waiter, SyncAnswer(ErrorCode.GROUP_MAX_SIZE_REACHED))
        else:
            syncing.sync(decision, group, request, waiter)
        self._changed(group)
        return decision

    def heartbeat(self, waiter: Waiter, group_id: str, member: MemberIdentity, now_ms: int) -> GroupDecision:
        """Heartbeat. Answered by an error code."""
        decision, error_code = self._decision(now_ms), self.status(group_id)
        group = self.group(group_id)
        if error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            error_code = ErrorCode.NONE
        elif error_code is ErrorCode.NONE:
            error_code = ErrorCode.UNKNOWN_MEMBER_ID if group is None else heartbeats.heartbeat(decision, group, member)
        decision.answer(waiter, error_code)
        return decision

    def leave(self, waiter: Waiter, group_id: str, members: Collection[MemberIdentity], now_ms: int) -> GroupDecision:
        """LeaveGroup. Answered by a ``LeaveAnswer``."""
        decision, error_code = self._decision(now_ms), self.status(group_id)
        group = self.group(group_id)
        if error_code is not ErrorCode.NONE:
            answer = LeaveAnswer(error_code)
        elif group is None:
            unknown = (
                MemberLeft(each.member_id, each.group_instance_id, ErrorCode.UNKNOWN_MEMBER_ID) for each in members
            )
            answer = LeaveAnswer(ErrorCode.NONE, tuple(unknown))
        else:
            answer = heartbeats.leave(decision, group, members)
            self._changed(group)
        decision.answer(waiter, answer)
        return decision

    # offsets

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
        decision, error_code = self._decision(now_ms), self.status(group_id)
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

    # groups

    def delete_group(self, waiter: Waiter, group_id: str, now_ms: int) -> GroupDecision:
        """DeleteGroups, one group of it. Answered by an error code."""
        decision, error_code = self._decision(now_ms), self.status(group_id, empty_id_is_valid=True)
        group = self.group(group_id)
        if error_code is not ErrorCode.NONE or group is None:
            decision.answer(waiter, error_code or ErrorCode.GROUP_ID_NOT_FOUND)
        else:
            self._put(group, None if removing.delete_group(decision, group, waiter) else group)
        return decision

    def describe(self, group_id: str) -> GroupDescription:
        """DescribeGroups, one group of it."""
        error_code = self.status(group_id, empty_id_is_valid=True)
        return describing.describe(error_code, group_id, self.group(group_id))

    def listing(self, states: Collection[str] = ()) -> tuple[ErrorCode, Iterator[GroupListing | None]]:
        """ListGroups, of what is loaded now, each as it is when it is asked for."""
        is_loading = any(home.is_loading for home in self.homes.values())
        error_code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if is_loading else ErrorCode.NONE
        return error_code, describing.listing(self.all_groups(), states)

    # what the shell tells

    def timer_fired(self, name: TimerName, now_ms: int) -> GroupDecision:
        """A timer is due. One that was cancelled or set to later while it was on its way does nothing."""
        decision, group = self._decision(now_ms), self.group(name.group_id)
        if group is None or group.timers.get(name, now_ms + 1) > now_ms:
            return decision
        del group.timers[name]
        if name.kind is TimerKind.JOIN:
            rebalancing.join_timer_fired(decision, group)
        elif name.kind is TimerKind.SYNC:
            rebalancing.sync_timer_fired(decision, group)
        elif name.kind is TimerKind.SESSION:
            heartbeats.session_timer_fired(decision, group, name.member_id)
        else:
            heartbeats.pending_timer_fired(decision, group, name.member_id)
        self._changed(group)
        return decision

    def appended(self, append: GroupAppend, error_code: ErrorCode, position: int, now_ms: int) -> GroupDecision:
        """An append is replicated, at ``position``, or has failed. Results of a partition come in the log's order."""
        decision, home = self._decision(now_ms), self.homes.get(append.partition)
        is_ours = home is not None and not home.is_loading and append.leader_epoch >= home.leading_since
        group, purpose = self.group(append.group_id) if is_ours else None, append.purpose
        if isinstance(purpose, OffsetsStored):
            committing.offsets_stored(decision, group, purpose, error_code, position)
        elif isinstance(purpose, RemovalStored):
            kept = removing.removal_stored(decision, group, purpose, error_code)
            if group is not None:
                self._put(group, kept)
        elif isinstance(purpose, AssignmentStored) and group is not None:
            syncing.assignment_stored(decision, group, purpose, error_code)
        elif isinstance(purpose, StaticMemberStored) and group is not None:
            joining.static_member_stored(decision, group, purpose, error_code)
        self._changed(group)
        return decision

    def _decision(self, now_ms: int) -> GroupDecision:
        return GroupDecision(self.settings, now_ms)
