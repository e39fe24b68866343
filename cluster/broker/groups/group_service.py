"""GroupService: the group coordinator as the rest of a broker sees it.

Owns the way from a request to its answer: a decision is asked for, its answers are sent, its timers set and its batches
appended; and which partitions of ``__consumer_offsets`` are taken over and given back. Does not own any decision
(``GroupCoordinator``), nor layouts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from cluster.broker.checkpoints import Blocking
from cluster.broker.coordinator_counters import GROUP
from cluster.broker.coordinator_loading import TakeBatch, read_partition, tell_loaded, tell_unreadable
from cluster.broker.groups.group_answers import GroupAnswers
from cluster.broker.groups.group_loading import feeding
from cluster.broker.groups.group_timers import GroupTimers
from cluster.broker.internal_topics import OFFSETS_TOPIC
from cluster.broker.pauses import Pauses, Shares
from cluster.broker.portions import Beside, chunks
from cluster.broker.replicas.ordered_appends import MayWrite, OrderedAppends, OwnAppend
from cluster.broker.replicas.own_writes import NO_OFFSET, WriteTold
from cluster.broker.replicas.replica import Replica
from cluster.broker.replicas.replica_manager import ReplicaManager
from cluster.broker.timers import Timers
from cluster.config.broker import BrokerConfig
from cluster.coordinator.group.answers import DeleteOffsetsAnswer, JoinAnswer, LeaveAnswer, SyncAnswer
from cluster.coordinator.group.coordinator import GroupCoordinator
from cluster.coordinator.group.decisions import GroupAppend, GroupDecision, GroupSettings, TimerName
from cluster.coordinator.group.group import Group
from cluster.coordinator.group.loading import GroupLoader
from cluster.coordinator.group.purposes import OffsetsStored
from cluster.coordinator.group.requests import CommitRequest, JoinRequest, MemberIdentity, SyncRequest
from cluster.coordinator.partitioning import partition_for
from cluster.protocol.errors import ErrorCode
from cluster.protocol.records import NewRecord, build_batch
from cluster.seams.clock import Clock
from cluster.seams.randomness import Random, derive
from cluster.topic_partition import TopicPartition

#: Characters of a client id, or of an instance's, that a member id begins with: it must fit into a record.
MOST_PREFIX = 255

#: Groups of which one decision is made, of those that concern all groups.
GROUPS_AT_ONCE = 10

_Answer = TypeVar("_Answer")

#: What makes a decision for one who waits, at a time.
GroupEvent = Callable[["asyncio.Future[_Answer]", int], GroupDecision]


class GroupService:
    """Of one broker. Each request is answered by a future, which may be done at once."""

    def __init__(
        self,
        settings: GroupSettings,
        config: BrokerConfig,
        replicas: ReplicaManager,
        clock: Clock,
        random: Random,
        blocking: Blocking,
        shares: Shares,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._config = config
        self._replicas = replicas
        self._counters = replicas.counters.coordinators
        self._clock = clock
        self._random = random
        self._beside = Beside(blocking)
        self._shares = shares
        self.coordinator = GroupCoordinator(settings, self._new_member_id, replicas.rules.groups)
        self._timers = GroupTimers(self._loop, shares, self._timer_due)
        self._answers = GroupAnswers(self._loop)
        self._appends = OrderedAppends(replicas.own_writes, clock, config["offsets.commit.timeout.ms"], shares)
        #: Commits of transactions that are being decided -> whether they may be written.
        self._guards: dict[object, MayWrite] = {}
        self._waiting: set[asyncio.Future[Any]] = set()
        self._loading: dict[int, asyncio.Task[None]] = {}
        self._periodic = Timers(replicas.storage_failed)

    def __repr__(self) -> str:
        return f"<GroupService {self.coordinator!r}>"

    def start(self) -> None:
        """Begin to look for what has expired."""
        self._periodic.start([(self._config["offsets.retention.check.interval.ms"], self.expire)])

    async def stop(self) -> None:
        """Coordinate nothing: those that wait look for another broker."""
        await self._periodic.stop()
        for partition in list(self.coordinator.homes):
            self._resign(partition)
        self._timers.close()
        self._answers.close()
        for waiter in list(self._waiting):
            # Its batch may be stored nevertheless; the result does not come anymore.
            if not waiter.done():
                waiter.set_exception(ConnectionAbortedError("the broker stops"))

    def partition_of(self, group_id: str) -> int:
        """The partition of ``__consumer_offsets`` whose leader coordinates a group."""
        return partition_for(group_id, self.coordinator.settings.offsets_topic_num_partitions)

    # requests

    async def join(self, request: JoinRequest) -> JoinAnswer:
        await self._in_turn()
        answer: JoinAnswer = await self._ask(lambda waiter, now_ms: self.coordinator.join(waiter, request, now_ms))
        return answer

    async def sync(self, request: SyncRequest) -> SyncAnswer:
        await self._in_turn()
        answer: SyncAnswer = await self._ask(lambda waiter, now_ms: self.coordinator.sync(waiter, request, now_ms))
        return answer

    def heartbeat(self, group_id: str, member: MemberIdentity) -> ErrorCode:
        heard: asyncio.Future[ErrorCode] = self._ask(
            lambda waiter, now_ms: self.coordinator.heartbeat(waiter, group_id, member, now_ms)
        )
        return heard.result()

    def leave(self, group_id: str, members: Collection[MemberIdentity]) -> LeaveAnswer:
        left: asyncio.Future[LeaveAnswer] = self._ask(
            lambda waiter, now_ms: self.coordinator.leave(waiter, group_id, members, now_ms)
        )
        return left.result()

    async def commit(
        self, request: CommitRequest, may_write: MayWrite | None = None
    ) -> dict[TopicPartition, ErrorCode]:
        """Of partitions that exist: what is deleted afterwards is removed with its offset (``forget_topics``).
        ``may_write`` is asked right before offsets are written: whether their transaction is still open."""
        await self._in_turn()
        request, gone = request.known(self._replicas.partition_exists)
        if not request.offsets:
            return gone
        waiter: asyncio.Future[dict[TopicPartition, ErrorCode]] = self._loop.create_future()
        if may_write is not None:
            self._guards[waiter] = may_write
        try:
            self._carry_out(self.coordinator.commit(waiter, request, self._clock.wall_ms()), waiter)
            answer = await self._kept(waiter)
        finally:
            self._guards.pop(waiter, None)
        return {**answer, **gone} if gone else answer

    async def delete_offsets(self, group_id: str, partitions: Collection[TopicPartition]) -> DeleteOffsetsAnswer:
        await self._in_turn()
        answer: DeleteOffsetsAnswer = await self._ask(
            lambda waiter, now_ms: self.coordinator.delete_offsets(waiter, group_id, partitions, now_ms)
        )
        return answer

    def delete_group(self, group_id: str) -> asyncio.Future[ErrorCode]:
        return self._ask(lambda waiter, now_ms: self.coordinator.delete_group(waiter, group_id, now_ms))

    async def _in_turn(self) -> None:
        """Wait for a share if others have used up this turn of the loop: a large group takes long."""
        await self._shares.fresh()

    def _ask(self, event: GroupEvent[_Answer]) -> asyncio.Future[_Answer]:
        waiter: asyncio.Future[_Answer] = self._loop.create_future()
        self._carry_out(event(waiter, self._clock.wall_ms()), waiter)
        return self._kept(waiter)

    def _kept(self, waiter: asyncio.Future[_Answer]) -> asyncio.Future[_Answer]:
        """It is answered in the end, whatever happens."""
        if not waiter.done():
            self._waiting.add(waiter)
            waiter.add_done_callback(self._waiting.discard)
        return waiter

    # what happens besides

    def role_taken(self, replica: Replica) -> None:
        """A replica of this broker leads, follows or stops: of ``__consumer_offsets`` that moves groups."""
        if replica.topic != OFFSETS_TOPIC:
            return
        if replica.leader is None:
            self._resign(replica.partition)
            return
        loader = self.coordinator.elected(replica.partition, replica.leader_epoch)
        if loader is not None:
            # The end of the log is that of now: this broker appends nothing before it is read.
            self._loading[replica.partition] = self._loop.create_task(self._load(replica, loader))

    async def forget_topics(self, partitions: Collection[TopicPartition]) -> None:
        """Partitions of topics were deleted: offsets of them say nothing of topics of the same name to come. Until this
        returns, no such topic may be known here."""
        deleted = frozenset(partitions)
        if deleted:
            self.coordinator.topics_deleted(deleted)
            await self._each(lambda groups, now_ms: self.coordinator.forget_topics(groups, deleted, now_ms))

    async def expire(self) -> None:
        """Remove what has expired."""
        await self._each(self.coordinator.expire)

    async def _each(self, decide: Callable[[list[Group], int], GroupDecision]) -> None:
        """Decide on all groups, a few at a time."""
        # The controller may wait for it: it is not to queue behind clients.
        pause = Pauses(Shares(self._clock.monotonic_ns))
        for groups in chunks(self.coordinator.all_groups(), GROUPS_AT_ONCE):
            self._carry_out(decide(groups, self._clock.wall_ms()))
            await pause()

    def end_transaction(
        self, partition: int, leader_epoch: int, marker: bytes, producer_id: int, told: WriteTold, *, is_committed: bool
    ) -> None:
        """Append a marker to a partition of ``__consumer_offsets``: in the order of its commits, so that the offsets of
        the transaction count, or are dropped, as soon as it is stored. Refused while the partition is read."""
        home = self.coordinator.homes.get(partition)
        if home is None or home.is_loading:
            told(ErrorCode.NOT_COORDINATOR if home is None else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, NO_OFFSET)
            return

        def settled(error_code: ErrorCode, position: int) -> None:
            if error_code is ErrorCode.NONE and self.coordinator.homes.get(partition) is home:
                self.coordinator.transaction_ended(partition, producer_id, is_committed=is_committed)
            told(error_code, position)

        self._appends.add([OwnAppend(OFFSETS_TOPIC, partition, leader_epoch, lambda _wall_ms: marker, settled)])

    def _resign(self, partition: int) -> None:
        loading = self._loading.pop(partition, None)
        if loading is not None:
            loading.cancel()
        self._carry_out(self.coordinator.resigned(partition, self._clock.wall_ms()))

    async def _load(self, replica: Replica, loader: GroupLoader) -> None:
        partition, chunk_bytes = replica.partition, self._config["offsets.load.buffer.size"]
        began_ns = self._clock.monotonic_ns()

        def is_wanted() -> bool:
            return self.coordinator.homes.get(partition) is loader.home

        def begin() -> TakeBatch:
            nonlocal loader
            loader = GroupLoader(loader.home)
            return feeding(loader)

        failed = self._replicas.storage_failed
        if not await read_partition(replica.log, begin, self._beside, chunk_bytes, is_wanted, failed):
            return
        tell_unreadable(replica.log, loader.unreadable, self._replicas.counters)
        self._loading.pop(partition, None)
        self._carry_out(self.coordinator.loaded(loader, self._clock.wall_ms()))
        took_ns = self._clock.monotonic_ns() - began_ns
        tell_loaded(replica.log, GROUP, len(self.coordinator.groups[partition]), took_ns, self._replicas.counters)

    def _timer_due(self, name: TimerName, deadline_ms: int) -> None:
        # The wall clock may have been set back since.
        self._carry_out(self.coordinator.timer_fired(name, max(self._clock.wall_ms(), deadline_ms)))

    def _append_settled(self, append: GroupAppend, error_code: ErrorCode, position: int) -> None:
        if error_code is ErrorCode.NONE:
            self._counters.group_stored(append.purpose)
        self._carry_out(self.coordinator.appended(append, error_code, position, self._clock.wall_ms()))

    def _carry_out(self, decision: GroupDecision, asking: object = None) -> None:
        self._answers.add(decision.answers, asking)
        for change in decision.timers:
            self._timers.change(change, decision.now_ms)
        if decision.appends:
            self._appends.add(map(self._own_append, decision.appends))

    def _own_append(self, append: GroupAppend) -> OwnAppend:
        def build(wall_ms: int) -> bytes:
            return build_batch(
                [NewRecord(wall_ms, key, value) for key, value in append.records],
                producer_id=append.producer_id,
                producer_epoch=append.producer_epoch,
                transactional=append.producer_id >= 0,
            )

        told = partial(self._append_settled, append)
        purpose = append.purpose
        may_write = self._guards.get(purpose.waiter) if isinstance(purpose, OffsetsStored) else None
        return OwnAppend(OFFSETS_TOPIC, append.partition, append.leader_epoch, build, told, may_write=may_write)

    def _new_member_id(self, prefix: str) -> str:
        return member_id(prefix, self._random, self._clock.wall_ms())


def member_id(prefix: str, random: Random, wall_ms: int) -> str:
    """Of a new member. The time makes it another one than those that a broker with the same seed drew in a former life,
    which are in the log and may be in use."""
    drawn = derive(random.getrandbits(64), "member id", wall_ms)
    return f"{prefix[:MOST_PREFIX]}-{UUID(bytes=drawn.randbytes(16), version=4)}"
