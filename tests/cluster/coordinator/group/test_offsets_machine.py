"""Commits, transactions, deletions, expiry and failovers in any order, against the log.

Whenever nothing is being appended, what the coordinator answers is what one that takes over would read from the log:
offsets and those of open transactions alike. What was confirmed is read until it is committed again or removed.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cluster.coordinator.group.coordinator import GroupCoordinator
from cluster.coordinator.group.decisions import GroupSettings
from cluster.coordinator.group.group_offsets import GroupOffsets
from cluster.coordinator.group.requests import MemberIdentity
from cluster.coordinator.group.states import GroupState
from cluster.protocol.errors import ErrorCode
from tests.cluster.coordinator.group.world import GROUP, HOME, World
from tests.support.examples import examples

RETENTION_MS = 60_000
PARTITIONS = st.sampled_from([("t", 0), ("t", 1), ("u", 0)])
PRODUCERS = st.sampled_from([7, 8])
RESULTS = st.sampled_from([ErrorCode.NONE, ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT])


class Offsets(RuleBasedStateMachine):
    """One group, now and then with a member."""

    @initialize()
    def begin(self) -> None:
        self.world = World(GroupSettings(offsets_retention_ms=RETENTION_MS))
        self.offset = 0

    def commit_for(self, partition: tuple[str, int], producer_id: int = -1, retention_ms: int = -1) -> None:
        self.offset += 1
        group = self.world.coordinator.group(GROUP)
        member_id, generation_id = "", -1
        if producer_id < 0 and group is not None and group.state is GroupState.STABLE:
            member_id, generation_id = next(iter(group.members)), group.generation_id
        self.world.commit(
            self.offset,
            member_id,
            generation_id,
            partition=partition,
            producer_id=producer_id,
            retention_ms=retention_ms,
        )

    @rule(partition=PARTITIONS, retention_ms=st.sampled_from([-1, -1, 5_000]))
    def commit(self, partition: tuple[str, int], retention_ms: int) -> None:
        self.commit_for(partition, retention_ms=retention_ms)

    @rule(partition=PARTITIONS, producer_id=PRODUCERS)
    def commit_in_transaction(self, partition: tuple[str, int], producer_id: int) -> None:
        self.commit_for(partition, producer_id)

    @rule(producer_id=PRODUCERS, is_committed=st.booleans())
    def end_transaction(self, producer_id: int, is_committed: bool) -> None:
        self.world.end_transaction(producer_id, is_committed=is_committed)

    @rule(partition=PARTITIONS)
    def delete_offset(self, partition: tuple[str, int]) -> None:
        self.world.do(self.world.coordinator.delete_offsets(self.world.waiter(), GROUP, [partition], self.world.now_ms))

    @rule()
    def delete_topic(self) -> None:
        self.world.do(self.world.coordinator.forget_topics(self.world.groups, {("t", 0), ("t", 1)}, self.world.now_ms))

    @rule()
    def delete_group(self) -> None:
        self.world.do(self.world.coordinator.delete_group(self.world.waiter(), GROUP, self.world.now_ms))

    @rule()
    def expire(self) -> None:
        self.world.do(self.world.coordinator.expire(self.world.groups, self.world.now_ms))

    @rule(ms=st.sampled_from([1, 5_000, RETENTION_MS]))
    def wait(self, ms: int) -> None:
        self.world.advance(ms)

    @rule()
    def a_member_comes(self) -> None:
        """It subscribes to one of the topics. If there was one already, both are late and go."""
        group = self.world.coordinator.group(GROUP)
        if group is None or group.state is GroupState.EMPTY:
            self.world.form(None)

    @rule()
    def the_member_leaves(self) -> None:
        group = self.world.coordinator.group(GROUP)
        if group is not None and group.members:
            self.world.leave(*(MemberIdentity(member_id) for member_id in group.members))

    @rule(error_code=RESULTS)
    @precondition(lambda self: self.world.appends)
    def settle(self, error_code: ErrorCode) -> None:
        self.world.settle_one(error_code)

    @rule()
    def settle_all(self) -> None:
        self.world.settle()

    @rule()
    def fail_over(self) -> None:
        self.world.fail_over()

    @invariant()
    def what_is_told_is_what_is_stored(self) -> None:
        if not self.world.appends:
            other = GroupCoordinator(self.world.settings, str)
            loader = other.elected(HOME, 1)
            assert loader is not None
            for batch in self.world.log:
                loader.feed(batch)
            other.loaded(loader, self.world.now_ms)
            assert held(self.world.coordinator) == held(other)

    def teardown(self) -> None:
        """Without anyone, everything expires."""
        if not hasattr(self, "world"):
            return
        self.world.advance(RETENTION_MS)
        self.world.settle()
        for producer_id in (7, 8):
            self.world.end_transaction(producer_id, is_committed=False)
        for _ in range(3):
            self.world.advance(RETENTION_MS)
            self.world.do(self.world.coordinator.expire(self.world.groups, self.world.now_ms))
            self.world.settle()
        assert self.world.coordinator.groups == {HOME: {}}
        assert self.world.waiting == []


def held(coordinator: GroupCoordinator) -> tuple[object, object]:
    group = coordinator.group(GROUP)
    offsets = GroupOffsets() if group is None else group.offsets
    return offsets.committed, offsets.transactions


TestOffsets = Offsets.TestCase
TestOffsets.settings = examples(50, stateful_step_count=50)
