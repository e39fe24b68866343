"""A shell around one group coordinator for tests: a clock, timers, a log, and the answers that came.

It carries out each decision as a broker would, holds that no request is answered twice, and checks the invariants after
every event. Appends wait until a test settles them, in their order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from cluster.coordinator.group.coordinator import GroupCoordinator
from cluster.coordinator.group.decisions import GroupAppend, GroupDecision, GroupSettings, TimerName
from cluster.coordinator.group.group import Group
from cluster.coordinator.group.invariants import validate
from cluster.coordinator.group.loading import LoadedBatch
from cluster.coordinator.group.requests import (
    CommitRequest,
    JoinRequest,
    MemberIdentity,
    OffsetToCommit,
    Protocols,
    SyncRequest,
)
from cluster.coordinator.group.rules import CORRECT, GroupRules
from cluster.protocol.consumer_protocol import Subscription, encode_subscription
from cluster.protocol.errors import ErrorCode
from cluster.topic_partition import TopicPartition

GROUP = "g1"
HOME = 42
SESSION_MS = 10_000
REBALANCE_MS = 30_000
TOPIC = "t"
T0: TopicPartition = (TOPIC, 0)
WAITS = object()


def protocols(*names: str, topic: str = TOPIC) -> Protocols:
    return tuple((name, encode_subscription(Subscription((topic,)))) for name in names)


class World:
    """One broker's coordinator. ``answers`` holds what each request was told; one that still waits is not in it."""

    def __init__(self, settings: GroupSettings | None = None, rules: GroupRules = CORRECT) -> None:
        self.settings = settings or GroupSettings()
        self.now_ms = 1_000_000
        self.timers: dict[TimerName, int] = {}
        self.appends: deque[GroupAppend] = deque()
        self.log: list[LoadedBatch] = []
        self.answers: dict[int, Any] = {}
        self.requests = 0
        self._ids = 0
        self.leader_epoch = 0
        self.coordinator = GroupCoordinator(self.settings, self._new_member_id, rules)
        self.elect()

    def _new_member_id(self, prefix: str) -> str:
        self._ids += 1
        return f"{prefix}-{self._ids}"

    @property
    def group(self) -> Group:
        group = self.coordinator.group(GROUP)
        assert group is not None
        return group

    @property
    def groups(self) -> list[Group]:
        return self.coordinator.all_groups()

    # events

    def do(self, decision: GroupDecision) -> None:
        for answered in decision.answers:
            assert isinstance(answered.waiter, int)
            assert answered.waiter not in self.answers, "answered twice"
            self.answers[answered.waiter] = answered.answer
        for name, deadline_ms in decision.timers:
            if deadline_ms is None:
                self.timers.pop(name, None)
            else:
                self.timers[name] = deadline_ms
        self.appends.extend(decision.appends)
        validate(self.coordinator)
        known = [group.timers for groups in self.coordinator.groups.values() for group in groups.values()]
        assert self.timers == {name: deadline for timers in known for name, deadline in timers.items()}

    def waiter(self) -> int:
        self.requests += 1
        return self.requests

    def answer(self, waiter: int) -> Any:
        return self.answers.get(waiter, WAITS)

    @property
    def waiting(self) -> list[int]:
        return [each for each in range(1, self.requests + 1) if each not in self.answers]

    def elect(self) -> None:
        """Take over the partition and read its log."""
        self.leader_epoch += 1
        loader = self.coordinator.elected(HOME, self.leader_epoch)
        assert loader is not None
        for batch in self.log:
            loader.feed(batch)
        self.do(self.coordinator.loaded(loader, self.now_ms))

    def fail_over(self) -> None:
        """Resign and be elected again: what is left is what the log has. Appends in flight have failed."""
        self.do(self.coordinator.resigned(HOME, self.now_ms))
        self.timers.clear()
        self.settle(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.elect()

    def advance(self, ms: int) -> None:
        """Let time pass; timers fire when they are due."""
        end_ms = self.now_ms + ms
        while self.timers and min(self.timers.values()) <= end_ms:
            name = min(self.timers, key=lambda each: (self.timers[each], each.kind.value, each.member_id))
            self.now_ms = max(self.now_ms, self.timers.pop(name))
            self.do(self.coordinator.timer_fired(name, self.now_ms))
        self.now_ms = end_ms

    def settle(self, error_code: ErrorCode = ErrorCode.NONE) -> None:
        """All appends get their results."""
        while self.appends:
            self.settle_one(error_code)

    def settle_one(self, error_code: ErrorCode = ErrorCode.NONE) -> None:
        append = self.appends.popleft()
        position = -1
        if error_code is ErrorCode.NONE:
            position = len(self.log)
            is_transactional = append.producer_id >= 0
            self.log.append(LoadedBatch(position, tuple(append.records), append.producer_id, is_transactional))
        self.do(self.coordinator.appended(append, error_code, position, self.now_ms))

    def end_transaction(self, producer_id: int, *, is_committed: bool) -> None:
        self.settle()
        self.log.append(LoadedBatch(len(self.log), (), producer_id, True, is_committed))
        self.coordinator.transaction_ended(HOME, producer_id, is_committed=is_committed)
        validate(self.coordinator)

    # requests

    def join(self, member_id: str = "", instance: str | None = None, **fields: Any) -> int:
        waiter = self.waiter()
        request = JoinRequest(
            GROUP,
            member_id,
            fields.pop("protocol_type", "consumer"),
            fields.pop("protocols", protocols("range")),
            fields.pop("session_ms", SESSION_MS),
            fields.pop("rebalance_ms", REBALANCE_MS),
            instance,
            "c",
            "/127.0.0.1",
            fields.pop("version", 3),
        )
        assert not fields
        self.do(self.coordinator.join(waiter, request, self.now_ms))
        return waiter

    def sync(
        self, member_id: str, generation_id: int, assignments: Mapping[str, bytes] | None = None, **fields: Any
    ) -> int:
        waiter = self.waiter()
        member = MemberIdentity(member_id, fields.pop("instance", None), generation_id)
        request = SyncRequest(GROUP, member, assignments=assignments or {}, **fields)
        self.do(self.coordinator.sync(waiter, request, self.now_ms))
        return waiter

    def heartbeat(self, member_id: str, generation_id: int, instance: str | None = None) -> ErrorCode:
        waiter = self.waiter()
        identity = MemberIdentity(member_id, instance, generation_id)
        self.do(self.coordinator.heartbeat(waiter, GROUP, identity, self.now_ms))
        return self.answers[waiter]  # type: ignore[no-any-return]

    def leave(self, *members: MemberIdentity) -> Any:
        waiter = self.waiter()
        self.do(self.coordinator.leave(waiter, GROUP, members, self.now_ms))
        return self.answers[waiter]

    def commit(
        self,
        offset: int,
        member_id: str = "",
        generation_id: int = -1,
        *,
        instance: str | None = None,
        producer_id: int = -1,
        partition: TopicPartition = T0,
        metadata: str = "",
        retention_ms: int = -1,
    ) -> int:
        waiter = self.waiter()
        member = MemberIdentity(member_id, instance, generation_id)
        offsets = {partition: OffsetToCommit(offset, metadata, retention_ms=retention_ms)}
        request = CommitRequest(GROUP, member, offsets, producer_id, 0 if producer_id >= 0 else -1)
        self.do(self.coordinator.commit(waiter, request, self.now_ms))
        return waiter

    def fetch(self, partition: TopicPartition = T0, *, stable: bool = True) -> Any:
        error_code, found = self.coordinator.fetch_offsets(GROUP, [partition], require_stable=stable)
        assert error_code is ErrorCode.NONE
        return found[partition]

    # whole stories

    def form(self, *instances: str | None, topic: str = TOPIC) -> list[str]:
        """A Stable group of new members, the first one its leader; each is assigned its own id."""
        waiters = [self.join(instance=instance, protocols=protocols("range", topic=topic)) for instance in instances]
        self.advance(self.settings.group_initial_rebalance_delay_ms)
        if any(waiter not in self.answers for waiter in waiters):
            self.advance(self.settings.group_initial_rebalance_delay_ms)
        members = [self.answers[waiter].member_id for waiter in waiters]
        self.assign(members)
        return members

    def assign(self, members: list[str]) -> None:
        """All members sync, the leader last."""
        generation_id = self.group.generation_id
        for member_id in sorted(members, key=lambda each: each == self.group.leader):
            self.sync(member_id, generation_id, {each: each.encode() for each in members})
        self.settle()
