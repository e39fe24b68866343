"""Members of one group against the real decisions of a coordinator: a schedule of messages, losses and slow programs.

The members are everything but the sockets of our consumer: the membership, its offsets, and what a rebalance does in
the program's thread. The coordinator is the brokers' own, so that both sides of the protocol are held at once.

The rules: no two members of a generation own one partition; what a cooperative member keeps is neither revoked nor
moved; the listener is told of each partition that comes and goes, once; no one continues beyond what was consumed; and
in the end the group is stable, with each partition at one member.
"""

from __future__ import annotations

from collections import deque
from contextlib import nullcontext
from random import Random

from cluster.client.backoff import ExponentialBackoff
from cluster.client.cluster_view import BrokerAddress, ClusterView, PartitionView, TopicView
from cluster.client.committed_offset import OffsetAndMetadata
from cluster.client.consumer.assignment import AssignedPartition
from cluster.client.consumer.fetch_plans import READ_UNCOMMITTED, FetchSettings
from cluster.client.consumer.group.commits import Commits
from cluster.client.consumer.group.group_core import GroupCore
from cluster.client.consumer.group.group_requests import (
    CommitOffsets,
    DropConnection,
    FetchOffsets,
    FindGroupCoordinator,
    GroupAnswer,
    GroupRequest,
    JoinGroup,
    LeaveGroup,
    MemberHeartbeat,
    MemberToAssign,
    SyncGroup,
)
from cluster.client.consumer.group.membership_values import MembershipSettings, MembershipState
from cluster.client.consumer.group.participation import Participation
from cluster.client.consumer.group.rebalance_listener import RebalanceListener
from cluster.client.consumer.group.resumption import Resumption
from cluster.client.consumer.group.strategies import Strategies
from cluster.client.consumer.positions import Positions
from cluster.client.consumer.results import ConsumerError
from cluster.client.offset_listing import EARLIEST_TIMESTAMP
from cluster.client.one_thread import OneThread
from cluster.coordinator.group.answers import JoinAnswer
from cluster.coordinator.group.decisions import GroupSettings
from cluster.coordinator.group.requests import CommitRequest, JoinRequest, MemberIdentity, OffsetToCommit, SyncRequest
from cluster.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE
from cluster.protocol.errors import ErrorCode
from cluster.seams.clock import ManualClock
from cluster.topic_partition import TopicPartition
from tests.cluster.coordinator.group.world import GROUP, World

SESSION_MS, HEARTBEAT_MS, MAX_POLL_MS = 6_000, 1_000, 9_000
TOPICS = ("t", "u")
NODE = BrokerAddress(1, "b", 9092)


class Violation(AssertionError):
    """What must not happen has happened."""


class DirectIo:
    """In the place of ``GroupIo``: the core without a thread."""

    def __init__(self, core: GroupCore) -> None:
        self.core = core
        self.lock = nullcontext()

    def wakeup(self) -> None:
        pass


class ModelMetadata:
    """What a member knows of topics: how many partitions each has now."""

    def __init__(self, counts: dict[str, int]) -> None:
        self._counts = counts

    def use(self, topic: str, now_ms: float) -> None:
        pass

    @property
    def view(self) -> ClusterView:
        topics = {
            name: TopicView(
                name,
                None,
                ErrorCode.NONE,
                False,
                {each: PartitionView(each, ErrorCode.NONE, 1, 0, (1,), (1,), ()) for each in range(count)},
            )
            for name, count in self._counts.items()
        }
        return ClusterView("c", 1, {1: NODE}, topics)


class Told(RebalanceListener):
    """What the listener of one member was told, held against what the member reads."""

    def __init__(self, member: Member) -> None:
        self.owned: set[TopicPartition] = set()
        self.revoked: set[TopicPartition] = set()
        self._member = member

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        if self.owned & set(partitions):
            raise Violation(f"{partitions} are assigned again")
        self.owned |= set(partitions)
        if self.owned != set(self._member.positions.assignment.assigned):
            raise Violation(f"told of {self.owned}, reads {self._member.positions.assignment.assigned}")
        if self.revoked & self.owned and self._member.is_cooperative:
            raise Violation(f"{self.revoked & self.owned} stayed, and were revoked")

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        if not set(partitions) <= self.owned:
            raise Violation(f"{partitions} are revoked, of {self.owned}")
        self.owned -= set(partitions)
        self.revoked |= set(partitions)


class Member:
    """One consumer, with a connection that carries requests in their order."""

    def __init__(self, group: ModelGroup, number: int, strategies: list[str], instance: str | None) -> None:
        self.name = f"m{number}"
        self.group = group
        self.instance = instance
        random, clock = group.random, group.clock
        backoff = ExponentialBackoff(10, 200, random)
        settings = MembershipSettings(GROUP, instance, SESSION_MS, HEARTBEAT_MS, MAX_POLL_MS, 3_000)
        self.core = GroupCore(settings, backoff.delay_ms)
        self.positions = Positions(FetchSettings(1, 1, 1, 1, READ_UNCOMMITTED, True, EARLIEST_TIMESTAMP), backoff)
        io, thread = DirectIo(self.core), OneThread("model")
        self.commits = Commits(
            io,
            self.positions,
            clock,
            thread,
            timeout_ms=2_000,
            interval_ms=1_500,
            retry_ms=50,  # type: ignore[arg-type]
        )
        strategy = Strategies(strategies)
        self.is_cooperative = strategy.is_cooperative
        self.participation = Participation(
            io,
            self.positions,
            ModelMetadata(group.counts),
            self.commits,
            strategy,
            clock,
            thread,
            MAX_POLL_MS,  # type: ignore[arg-type]
        )
        self.resumption = Resumption(self.commits, self.positions)
        self.told = Told(self)
        self.is_asleep = False
        # What the coordinator has not worked on, and what it has not answered.
        self.queue: deque[GroupRequest] = deque()
        self.waits: dict[int, GroupRequest] = {}
        self.participation.subscribe(group.draw_topics(), self.told)

    def __repr__(self) -> str:
        return f"{self.name}({self.core.membership!r}, reads {sorted(self.positions.assignment.assigned)})"

    def tick(self) -> None:
        """What the thread of the connection does."""
        for action in self.core.tick(self.group.now_ms):
            if isinstance(action, DropConnection):
                self.lose()
            else:
                self.queue.append(action.request)

    def lose(self) -> None:
        """The connection is lost, with all that is on it."""
        lost = [*self.waits.values(), *self.queue]
        self.waits.clear()
        self.queue.clear()
        for request in lost:
            self.core.answered(request, GroupAnswer(ErrorCode.NETWORK_EXCEPTION), self.group.now_ms)

    def poll(self) -> None:
        """What the program does: as ``Consumer.poll``, and records are consumed."""
        kept = {each.key: each for each in self.positions.assignment}
        before = {key: each.position for key, each in kept.items()}
        self.told.revoked = set()
        self.commits.tell_ended()
        try:
            may_take = self.participation.step(self.group.now_ms)
        except ConsumerError as error:
            if error.error_code is not ErrorCode.FENCED_INSTANCE_ID:
                raise Violation(f"{self.name}: {error!r}") from error
            self.group.members.remove(self)
            return
        self._check_kept(kept, before)
        self.commits.commit_if_due(self.group.now_ms)
        self.resumption.step()
        self._find_positions()
        if may_take and self.group.random.random() < 0.7:
            self._consume()

    def _check_kept(
        self, kept: dict[TopicPartition, AssignedPartition], before: dict[TopicPartition, int | None]
    ) -> None:
        for partition in self.positions.assignment:
            was = kept.get(partition.key)
            is_gone = partition.key in self.told.revoked
            if was is None or is_gone or not self.is_cooperative:
                continue
            if was is not partition or partition.position != before[partition.key]:
                raise Violation(f"{self.name}: {partition.key} was not kept")

    def _find_positions(self) -> None:
        """In the place of ListOffsets: every log begins at 0; and what was committed has been consumed."""
        for partition in self.positions.assignment:
            if partition.key in self.positions.resets:
                self.positions.seek(partition.key, 0)
            most = self.group.consumed.get(partition.key, 0)
            if partition.position is not None and partition.position > most:
                raise Violation(f"{partition.key} continues at {partition.position}, only {most} were consumed")

    def _consume(self) -> None:
        for partition in self.positions.assignment:
            if partition.position is not None:
                partition.position += self.group.random.randint(0, 3)
                key = partition.key
                self.group.consumed[key] = max(self.group.consumed.get(key, 0), partition.position)


class ModelGroup:
    """The schedule of one seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.world = World(GroupSettings(group_initial_rebalance_delay_ms=self.random.choice((0, 500))))
        self.clock = ManualClock()
        self.counts = {topic: self.random.randint(1, 4) for topic in TOPICS}
        self.consumed: dict[TopicPartition, int] = {}
        self.strategies = self.random.choice(
            (["range"], ["roundrobin"], ["sticky"], ["cooperative-sticky"], ["cooperative-sticky"],
             ["range", "cooperative-sticky"])
        )  # fmt: skip
        self.members: list[Member] = []
        self.joined = 0
        self.add()

    @property
    def now_ms(self) -> int:
        return self.clock.monotonic_ms()

    def run(self, steps: int = 250) -> None:
        acts = [self.tick] * 2 + [self.deliver] * 3 + [self.poll] * 3 + [self.settle] * 3 + [self.wait, self.rare]
        for _ in range(steps):
            self.random.choice(acts)()
            self.check()
        self.come_to_rest()

    # What happens

    def draw_topics(self) -> list[str]:
        return self.random.choice((["t"], ["u"], ["t", "u"], ["t", "u"]))

    def add(self, instance: str | None = None) -> None:
        if len(self.members) < 4:
            self.joined += 1
            name = instance or (f"i{self.joined}" if self.random.random() < 0.2 else None)
            self.members.append(Member(self, self.joined, self.strategies, name))

    def tick(self) -> None:
        for member in self.members:
            if self.random.random() < 0.8:
                member.tick()

    def poll(self) -> None:
        for member in list(self.members):
            if not member.is_asleep and self.random.random() < 0.8:
                member.poll()

    def wait(self) -> None:
        self.pass_time(self.random.choice((1, 20, 100, 400)))

    def pass_time(self, ms: int) -> None:
        self.clock.advance_ms(ms)
        self.world.advance(ms)
        self.answer()

    def settle(self) -> None:
        """The log of the coordinator takes what was appended."""
        while self.world.appends:
            self.world.settle_one()
        self.answer()

    def rare(self) -> None:
        if self.random.random() < 0.25:
            comes, goes = [self.add, self.add, self.restart], [self.kill, self.close, self.sleep, self.sleep]
            fails = [self.lose, self.lose, self.fail_over, self.refuse]
            self.random.choice([*comes, *goes, *fails, self.grow, self.change])()

    def kill(self) -> None:
        if len(self.members) > 1:
            self.members.remove(self.random.choice(self.members))

    def close(self) -> None:
        """As ``Consumer.close``: it leaves, and its last requests arrive."""
        if len(self.members) > 1:
            member = self.random.choice(self.members)
            member.participation.unsubscribe("closed")
            member.tick()
            while member.queue and not member.waits:
                self.deliver_of(member)
            self.members.remove(member)

    def restart(self) -> None:
        static = [each for each in self.members if each.instance is not None]
        if static:
            former = self.random.choice(static)
            self.members.remove(former)
            self.add(former.instance)
            # With another subscription it would have to wait for the next rebalance, as in Kafka.
            self.members[-1].participation.subscribe(former.participation.topics, self.members[-1].told)

    def lose(self) -> None:
        self.random.choice(self.members).lose()

    def fail_over(self) -> None:
        self.world.fail_over()
        self.answer()

    def refuse(self) -> None:
        while self.world.appends:
            self.world.settle_one(ErrorCode.NOT_ENOUGH_REPLICAS)
        self.answer()

    def grow(self) -> None:
        # A static leader that is restarted is not told what was divided (KIP-814): it could not know what is new.
        if all(member.instance is None for member in self.members):
            topic = self.random.choice(TOPICS)
            self.counts[topic] = min(6, self.counts[topic] + 1)

    def change(self) -> None:
        member = self.random.choice(self.members)
        if member.instance is None:
            member.participation.subscribe(self.draw_topics(), member.told)

    def sleep(self) -> None:
        member = self.random.choice(self.members)
        member.is_asleep = not member.is_asleep

    # The coordinator

    def deliver(self) -> None:
        member = self.random.choice(self.members)
        self.deliver_of(member)

    def deliver_of(self, member: Member) -> None:
        """The next request arrives, unless the one before it is still being worked on."""
        if member.queue and not member.waits:
            request = member.queue.popleft()
            if isinstance(request, FindGroupCoordinator):
                member.core.answered(request, GroupAnswer(coordinator=NODE), self.now_ms)
                return
            if isinstance(request, FetchOffsets):
                member.core.answered(request, self.fetched(request), self.now_ms)
                return
            waiter = self.world.waiter()
            member.waits[waiter] = request
            self.ask(waiter, member, request)
            self.answer()

    def ask(self, waiter: int, member: Member, request: GroupRequest) -> None:
        world, coordinator = self.world, self.world.coordinator
        if isinstance(request, JoinGroup):
            asked = JoinRequest(
                GROUP,
                request.member_id,
                CONSUMER_PROTOCOL_TYPE,
                request.protocols,
                request.session_timeout_ms,
                request.rebalance_timeout_ms,
                request.group_instance_id,
                member.name,
                "/h",
            )
            world.do(coordinator.join(waiter, asked, world.now_ms))
        elif isinstance(request, SyncGroup):
            name = request.generation.protocol_name
            sync = SyncRequest(GROUP, identity(request), CONSUMER_PROTOCOL_TYPE, name, request.assignments)
            world.do(coordinator.sync(waiter, sync, world.now_ms))
        elif isinstance(request, MemberHeartbeat):
            world.do(coordinator.heartbeat(waiter, GROUP, identity(request), world.now_ms))
        elif isinstance(request, LeaveGroup):
            world.do(coordinator.leave(waiter, GROUP, [MemberIdentity(request.member_id)], world.now_ms))
        elif isinstance(request, CommitOffsets):
            offsets = {key: OffsetToCommit(each.offset, each.metadata) for key, each in request.offsets.items()}
            world.do(coordinator.commit(waiter, CommitRequest(GROUP, identity(request), offsets), world.now_ms))

    def fetched(self, request: FetchOffsets) -> GroupAnswer:
        code, found = self.world.coordinator.fetch_offsets(GROUP, list(request.partitions), require_stable=True)
        if code is not ErrorCode.NONE:
            return GroupAnswer(code)
        return GroupAnswer(
            partitions={key: each.error_code for key, each in found.items()},
            offsets={key: OffsetAndMetadata(each.offset) if each.offset >= 0 else None for key, each in found.items()},
        )

    def answer(self) -> None:
        """What the coordinator has answered arrives."""
        for member in self.members:
            for waiter, request in list(member.waits.items()):
                if waiter in self.world.answers:
                    del member.waits[waiter]
                    member.core.answered(request, answer_of(request, self.world.answers[waiter]), self.now_ms)

    # What must hold

    def check(self) -> None:
        group = self.world.coordinator.group(GROUP)
        if group is None:
            return
        current = [
            each
            for each in self.members
            if each.core.membership.generation.generation_id == group.generation_id
            and each.core.membership.generation.member_id in group.members
        ]
        owners: dict[TopicPartition, str] = {}
        for member in current:
            for key in member.positions.assignment.assigned:
                if key in owners:
                    raise Violation(f"{owners[key]} and {member.name} both read {key} in {group.generation_id}")
                owners[key] = member.name

    def come_to_rest(self) -> None:
        """Nothing fails anymore: the group is stable, and each partition that is wanted has one reader."""
        for member in self.members:
            member.is_asleep = False
        for _ in range(400):
            for member in list(self.members):
                member.poll()
                member.tick()
                for _ in range(3):
                    self.deliver_of(member)
            self.settle()
            self.pass_time(100)
            self.check()
            if self.is_at_rest():
                return
        raise Violation(f"the group does not come to rest: {self.members}, {self.world.coordinator.group(GROUP)}")

    def is_at_rest(self) -> bool:
        wanted = {
            (topic, number)
            for member in self.members
            for topic in member.participation.topics
            for number in range(self.counts[topic])
        }
        read = [key for member in self.members for key in member.positions.assignment.assigned]
        is_stable = all(
            each.core.membership.state is MembershipState.STABLE and each.core.membership.next_step is None
            for each in self.members
        )
        return is_stable and len(read) == len(wanted) and set(read) == wanted


def identity(request: SyncGroup | MemberHeartbeat | CommitOffsets) -> MemberIdentity:
    generation = request.generation
    return MemberIdentity(generation.member_id, request.group_instance_id, generation.generation_id)


def answer_of(request: GroupRequest, answer: object) -> GroupAnswer:
    """What the coordinator says, as the wire would bring it."""
    if isinstance(answer, ErrorCode):
        return GroupAnswer(answer)
    if isinstance(request, CommitOffsets):
        return GroupAnswer(partitions=answer)  # type: ignore[arg-type]
    if isinstance(answer, JoinAnswer):
        return GroupAnswer(
            answer.error_code,
            member_id=answer.member_id,
            generation_id=answer.generation_id,
            protocol_type=answer.protocol_type,
            protocol_name=answer.protocol_name,
            leader=answer.leader,
            skip_assignment=answer.skip_assignment,
            members=tuple(
                MemberToAssign(each.member_id, each.group_instance_id, each.metadata) for each in answer.members
            ),
        )
    if isinstance(request, SyncGroup):
        return GroupAnswer(answer.error_code, assignment=answer.assignment)  # type: ignore[attr-defined]
    return GroupAnswer(answer.error_code)  # type: ignore[attr-defined]
