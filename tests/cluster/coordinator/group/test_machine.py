"""Members that join, leave, die, restart and commit, timers, failed appends and failovers, in any order.

Each member is a client that follows the protocol, or is slow, or repeats itself with what it knew before. Held after
every step: a generation has one assignment, and no partition of it two owners; an old generation or an unknown member
commits nothing; the invariants. At the end nothing waits forever, and a group that is left alone is Empty.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cluster.coordinator.group.answers import JoinAnswer, SyncAnswer
from cluster.coordinator.group.requests import MemberIdentity
from cluster.coordinator.group.states import GroupState
from cluster.protocol.errors import ErrorCode
from tests.cluster.coordinator.group.world import SESSION_MS, T0, WAITS, World, protocols
from tests.support.examples import examples

PARTITIONS = 6
RESULTS = st.sampled_from(
    [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ]
)
CLIENTS = st.integers(0, 4)
RARELY = st.sampled_from([False, False, True])


class Client:
    """What one consumer knows. ``history`` are identities that it had, to be repeated by a former life of it."""

    def __init__(self, instance: str | None) -> None:
        self.instance = instance
        self.member_id = ""
        self.generation_id = -1
        self.joining: int | None = None
        self.syncing: int | None = None
        self.has_synced = False
        self.rejoins = False
        self.to_assign: tuple[str, ...] = ()
        self.history: list[tuple[str, int]] = []

    def forget(self) -> None:
        if self.generation_id >= 0:
            self.history.append((self.member_id, self.generation_id))
        self.member_id, self.generation_id, self.joining, self.syncing, self.to_assign = "", -1, None, None, ()
        self.rejoins = False


class Members(RuleBasedStateMachine):
    """The clients of one group."""

    @initialize()
    def begin(self) -> None:
        self.world = World()
        self.clients = [Client("i"), Client("j"), Client(None), Client(None), Client(None)]
        #: (term, generation) -> what each member was told.
        self.told: dict[tuple[int, int], dict[str, bytes]] = {}
        self.term = 0
        self.offset = 0
        #: The largest offset whose commit was confirmed, and those that may be: waiter -> offset.
        self.stored = -1
        self.commits: dict[int, int] = {}

    # clients

    @rule(numbers=st.permutations(range(5)), most=st.integers(2, 5), ms=st.sampled_from([0, 10, 3_000]))
    def proceed(self, numbers: list[int], most: int, ms: int) -> None:
        """Some clients do what comes next for them, time passes, and appends succeed."""
        for number in numbers[:most]:
            client = self.clients[number]
            if client.joining is None and client.syncing is None:
                if client.generation_id < 0 or client.rejoins:
                    self.join(number, "t", 4)
                elif not client.has_synced:
                    self.sync(number)
                else:
                    self.heartbeat(number)
            self.clients_hear()
        self.world.advance(ms)
        self.world.settle()
        self.clients_hear()

    def join(self, number: int, topic: str, version: int) -> None:
        client = self.clients[number]
        client.rejoins = False
        client.joining = self.world.join(
            client.member_id, client.instance, protocols=protocols("range", topic=topic), version=version
        )

    @rule(number=CLIENTS, topic=st.sampled_from(["t", "u"]), version=st.sampled_from([3, 9]))
    def join_anyway(self, number: int, topic: str, version: int) -> None:
        """Out of its turn, and perhaps with another subscription."""
        self.join(number, topic, version)

    def sync(self, number: int) -> None:
        client = self.clients[number]
        assignments = {
            member_id: bytes(range(place, PARTITIONS, len(client.to_assign)))
            for place, member_id in enumerate(client.to_assign)
        }
        client.has_synced = True
        client.syncing = self.world.sync(client.member_id, client.generation_id, assignments, instance=client.instance)

    @rule(number=CLIENTS)
    def sync_anyway(self, number: int) -> None:
        if self.clients[number].generation_id >= 0:
            self.sync(number)

    def heartbeat(self, number: int) -> None:
        client = self.clients[number]
        told = self.world.heartbeat(client.member_id, client.generation_id, client.instance)
        if told in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            client.forget()
        elif told is not ErrorCode.NONE:
            client.rejoins = True

    @rule(number=CLIENTS, is_meant=RARELY)
    def leave(self, number: int, is_meant: bool) -> None:
        client = self.clients[number]
        if client.member_id and is_meant:
            self.world.leave(MemberIdentity(client.member_id, client.instance))
            client.forget()

    @rule(number=CLIENTS, is_meant=RARELY)
    def die(self, number: int, is_meant: bool) -> None:
        """Nothing more comes of this life of it."""
        if is_meant:
            self.clients[number].forget()

    @rule(number=CLIENTS, repeats=st.booleans(), producer_id=st.sampled_from([-1, -1, 7]))
    def commit(self, number: int, repeats: bool, producer_id: int) -> None:
        """By a member as it is, or with what it knew in a former life."""
        client = self.clients[number]
        member_id, generation_id = client.member_id, client.generation_id
        if repeats and client.history:
            member_id, generation_id = client.history[-1]
        if generation_id < 0:
            return
        group = self.world.coordinator.group("g1")
        is_current = (
            group is not None
            and group.generation_id == generation_id
            and member_id in group.members
            and (client.instance is None or group.static_members.get(client.instance) == member_id)
            and (producer_id >= 0 or group.state is not GroupState.COMPLETING_REBALANCE)
        )
        self.offset += 1
        appends = len(self.world.appends)
        waiter = self.world.commit(
            self.offset, member_id, generation_id, instance=client.instance, producer_id=producer_id
        )
        assert (len(self.world.appends) > appends) == is_current
        if not is_current:
            assert self.world.answers[waiter][T0] is not ErrorCode.NONE
        elif producer_id < 0:
            self.commits[waiter] = self.offset

    # the shell

    @rule(ms=st.sampled_from([1, 500, 3_000, 3_000, SESSION_MS, 30_000]))
    def wait(self, ms: int) -> None:
        self.world.advance(ms)

    @rule(error_code=RESULTS)
    @precondition(lambda self: self.world.appends)
    def settle(self, error_code: ErrorCode) -> None:
        self.world.settle_one(error_code)

    @rule(is_committed=st.booleans())
    def end_transaction(self, is_committed: bool) -> None:
        self.world.end_transaction(7, is_committed=is_committed)

    @rule(is_meant=RARELY)
    def fail_over(self, is_meant: bool) -> None:
        if not is_meant:
            return
        before = self.committed()
        in_flight = bool(self.world.appends)
        self.world.fail_over()
        self.term += 1
        assert self.world.waiting == []
        assert self.committed() == before or in_flight

    def committed(self) -> Any:
        return self.world.fetch(stable=False).offset

    # what clients hear, and what must hold

    @invariant()
    def clients_hear(self) -> None:
        for client in self.clients:
            if client.joining is not None and (answer := self.world.answer(client.joining)) is not WAITS:
                client.joining = None
                self.joined(client, answer)
            if client.syncing is not None and (answer := self.world.answer(client.syncing)) is not WAITS:
                client.syncing = None
                self.synced(client, answer)

    def joined(self, client: Client, answer: JoinAnswer) -> None:
        if answer.error_code is ErrorCode.MEMBER_ID_REQUIRED:
            client.member_id = answer.member_id
        elif answer.error_code is ErrorCode.NONE:
            if client.generation_id >= 0:
                client.history.append((client.member_id, client.generation_id))
            client.member_id, client.generation_id = answer.member_id, answer.generation_id
            client.has_synced = False
            client.to_assign = tuple(each.member_id for each in answer.members)
            assert answer.leader != answer.member_id or answer.member_id in client.to_assign
            assert len(set(client.to_assign)) == len(client.to_assign)
        elif answer.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            client.forget()
        else:
            client.rejoins = True

    def synced(self, client: Client, answer: SyncAnswer) -> None:
        if answer.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            client.forget()
        elif answer.error_code is not ErrorCode.NONE:
            client.rejoins = True
        if answer.error_code is not ErrorCode.NONE or client.generation_id < 0:
            return
        told = self.told.setdefault((self.term, client.generation_id), {})
        # An instance is one owner, whatever its id is.
        owner = client.instance or client.member_id
        assert told.setdefault(owner, answer.assignment) == answer.assignment
        owned = [partition for assignment in told.values() for partition in assignment]
        assert len(set(owned)) == len(owned)

    @invariant()
    def commits_count_in_order(self) -> None:
        """A commit that was confirmed is what is read, until a later one: offsets grow in the order of the log."""
        for waiter, offset in list(self.commits.items()):
            answer = self.world.answer(waiter)
            if answer is not WAITS:
                del self.commits[waiter]
                if answer[T0] is ErrorCode.NONE:
                    self.stored = max(self.stored, offset)
        assert self.committed() >= self.stored

    def teardown(self) -> None:
        """Left alone, a group answers all that waits and ends without members."""
        if not hasattr(self, "world"):
            return
        for _ in range(40):
            self.world.settle()
            self.world.advance(60_000)
        assert self.world.waiting == []
        group = self.world.coordinator.group("g1")
        assert group is None or (group.state is GroupState.EMPTY and not group.timers and not group.pending_members)


TestMembers = Members.TestCase
TestMembers.settings = examples(50, stateful_step_count=60)
