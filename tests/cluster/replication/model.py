"""A cluster of replicas in memory that runs the pure replication rules: for golden scenarios and random walks.

Owns the obvious parts (logs as lists, a controller without failures of its own, messages delivered when the test says
so). Every decision is the real one, taken from ``Rules``, so that a test can take one away and see what breaks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from cluster.isr import UNKNOWN_BROKER_EPOCH, IsrAnswer, IsrProposal
from cluster.log.epochs import LeaderEpochCache
from cluster.protocol.errors import ErrorCode
from cluster.replication import follower, high_watermark, leader, leader_epochs
from cluster.replication.follower import FetchPosition, Reaction
from cluster.replication.leader import LeaderState, acknowledgement

LAG_MS = 10_000
TOPIC = "t"


@dataclass(frozen=True)
class Rules:
    """The decisions under test."""

    initial_truncation: Callable[[int | None, int, int], int] = follower.initial_truncation
    truncation_offset: Callable[..., int] = follower.truncation_offset
    reaction: Callable[..., Reaction] = follower.reaction
    acknowledgement: Callable[..., ErrorCode | None] = acknowledgement
    check_leader_epoch: Callable[[int, int], ErrorCode] = leader_epochs.check_leader_epoch
    end_offset_for: Callable[[LeaderEpochCache, int, int], tuple[int, int]] = LeaderEpochCache.end_offset_for
    leader_state: type[LeaderState] = LeaderState


@dataclass
class Write:
    """A value that a client sent under acks=all. ``outcome`` is None while it waits."""

    value: str
    offset: int
    epoch: int
    outcome: ErrorCode | None = None


@dataclass
class FetchAnswer:
    """A response on its way to a follower."""

    follower: int
    sent: FetchPosition
    error: ErrorCode = ErrorCode.NONE
    diverging: tuple[int, int] | None = None
    records: list[tuple[int, str]] = field(default_factory=list)
    high_watermark: int = -1


@dataclass
class State:
    """What the controller has written: who leads, in which epoch, with which ISR."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int = 0


class Replica:
    """One replica. ``entries`` are (leader epoch, value); ``checkpoint`` is the watermark that survives a restart."""

    def __init__(self, cluster: Cluster, broker_id: int) -> None:
        self.cluster = cluster
        self.broker_id = broker_id
        self.broker_epoch = 0
        self.entries: list[tuple[int, str]] = []
        self.epochs = LeaderEpochCache()
        self.checkpoint = 0
        self.followed_high_watermark = 0
        self.leader: LeaderState | None = None
        self.leader_id = -1
        self.leader_epoch = -1
        self.is_up = True
        #: Whether the controller has seen this life of the broker: before that it hears nothing from it.
        self.is_registered = True
        self.writes: list[Write] = []
        self.proposal: IsrProposal | None = None

    def __repr__(self) -> str:
        role = "leads" if self.leader else f"follows {self.leader_id}"
        return f"<{self.broker_id} {role} in {self.leader_epoch}: {self.entries} watermark {self.high_watermark}>"

    @property
    def end(self) -> int:
        return len(self.entries)

    @property
    def high_watermark(self) -> int:
        return self.leader.high_watermark if self.leader else self.followed_high_watermark

    def take_role(self, state: State) -> None:
        """A LeaderAndIsr arrives."""
        if not self.is_up or not self.is_registered or state.leader_epoch <= self.leader_epoch:
            return
        self.followed_high_watermark = self.high_watermark
        self.leader_id, self.leader_epoch = state.leader, state.leader_epoch
        self.proposal = None
        if state.leader == self.broker_id:
            self.epochs.assign(state.leader_epoch, self.end)
            self.leader = self.cluster.rules.leader_state(
                broker_id=self.broker_id,
                replicas=tuple(self.cluster.replicas),
                isr=state.isr,
                leader_epoch=state.leader_epoch,
                partition_epoch=state.partition_epoch,
                log_end_offset=self.end,
                high_watermark=self.followed_high_watermark,
                min_insync_replicas=self.cluster.min_insync_replicas,
                lag_time_max_ms=LAG_MS,
                now_ms=self.cluster.now_ms,
                eligible=lambda broker: self.cluster.replicas[broker].is_up,
                leading_since=self.leader.leading_since if self.leader else state.leader_epoch,
            )
            self.leader.advance(self.end, self.cluster.now_ms)
        else:
            self.leader = None
            self.cut(self.cluster.rules.initial_truncation(self.epochs.latest, self.followed_high_watermark, self.end))
        self.settle()

    def append(self, value: str) -> Write | None:
        """A client's write under acks=all; None if it is refused before anything is appended."""
        if not self.is_up or self.leader is None or not self.leader.has_enough_in_sync:
            return None
        write = Write(value, self.end, self.leader_epoch)
        self.entries.append((self.leader_epoch, value))
        self.writes.append(write)
        self.leader.advance(self.end, self.cluster.now_ms)
        self.settle()
        return write

    def settle(self) -> None:
        for write in self.writes:
            if write.outcome is None:
                write.outcome = self.cluster.rules.acknowledgement(self.leader, write.epoch, write.offset + 1)

    def fetch(self, limit: int = 100) -> FetchAnswer | None:
        """Ask the leader we know; its answer is returned, not yet applied. None if it cannot be reached."""
        source = self.cluster.replicas.get(self.leader_id)
        if not self.is_up or self.leader is not None or source is None or not source.is_up:
            return None
        return source.answer(self, self.position(), limit)

    def position(self) -> FetchPosition:
        latest = self.epochs.latest
        return FetchPosition(self.leader_epoch, self.end, -1 if latest is None else latest)

    def answer(self, who: Replica, sent: FetchPosition, limit: int) -> FetchAnswer:
        rules, answer = self.cluster.rules, FetchAnswer(who.broker_id, sent)
        answer.error = rules.check_leader_epoch(sent.leader_epoch, self.leader_epoch)
        if answer.error is ErrorCode.NONE and self.leader is None:
            answer.error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        if answer.error is not ErrorCode.NONE or self.leader is None:
            return answer
        if sent.last_fetched_epoch >= 0:
            found = rules.end_offset_for(self.epochs, sent.last_fetched_epoch, self.end)
            answer.diverging = leader_epochs.diverging_epoch(sent.last_fetched_epoch, sent.fetch_offset, found)
            if answer.diverging is not None:
                return answer
        if sent.fetch_offset > self.end:
            answer.error = ErrorCode.OFFSET_OUT_OF_RANGE
            return answer
        _, proposal = self.leader.fetched(
            who.broker_id, sent.fetch_offset, self.end, self.cluster.now_ms, who.broker_epoch
        )
        if proposal is not None:
            self.proposal = proposal
        self.settle()
        answer.high_watermark = self.high_watermark
        answer.records = self.entries[sent.fetch_offset : sent.fetch_offset + limit]
        return answer

    def apply(self, answer: FetchAnswer | None) -> None:
        """An answer arrives."""
        if answer is None or not self.is_up or self.leader is not None:
            return
        rules = self.cluster.rules
        what = rules.reaction(answer.sent, self.position(), answer.error, diverges=answer.diverging is not None)
        if what is Reaction.TRUNCATE and answer.diverging is not None:
            epoch, end_offset = answer.diverging
            local = self.epochs.end_offset_for(epoch, self.end)
            self.cut(rules.truncation_offset(epoch, end_offset, local, self.end, self.followed_high_watermark))
        elif what is Reaction.APPEND:
            for epoch, value in answer.records:
                self.epochs.assign(epoch, self.end)
                self.entries.append((epoch, value))
            self.followed_high_watermark = high_watermark.follower_high_watermark(
                self.followed_high_watermark, answer.high_watermark, self.end
            )

    def cut(self, offset: int) -> None:
        del self.entries[offset:]
        self.epochs.truncate_from_end(offset)
        self.followed_high_watermark = min(self.followed_high_watermark, offset)

    def crash(self, *, wiped: bool = False) -> None:
        """kill -9: what the kernel has stays (unless the disk is lost), the watermark falls back to its checkpoint."""
        self.is_up = self.is_registered = False
        self.leader, self.leader_id, self.leader_epoch, self.proposal = None, -1, -1, None
        self.writes.clear()
        if wiped:
            self.entries.clear()
            self.epochs.clear()
            self.checkpoint = 0

    def start(self, *, seen: bool = False) -> None:
        """A new life; ``seen``: the controller notices it at once."""
        self.is_up, self.is_registered = True, seen
        self.broker_epoch += 1
        self.followed_high_watermark = high_watermark.restored_high_watermark(self.checkpoint, 0, self.end)


class Cluster:
    """Replicas 1..n of one partition and the controller's state. Nobody hears of a change before ``tell``."""

    def __init__(self, count: int = 3, *, min_insync_replicas: int = 2, rules: Rules | None = None) -> None:
        self.rules = rules or Rules()
        self.min_insync_replicas = min_insync_replicas
        self.now_ms = 0
        self.replicas = {number: Replica(self, number) for number in range(1, count + 1)}
        self.state = State(1, 0, tuple(self.replicas))
        self.acknowledged: list[Write] = []
        self.tell()

    def __getitem__(self, broker_id: int) -> Replica:
        return self.replicas[broker_id]

    def tell(self, *broker_ids: int) -> None:
        """LeaderAndIsr reaches these brokers (all, if none is named)."""
        for broker_id in broker_ids or self.replicas:
            self.replicas[broker_id].take_role(self.state)

    def sync(self, *broker_ids: int, rounds: int = 3) -> None:
        """These followers (all, if none is named) fetch a few times, without anything lost."""
        for _ in range(rounds):
            for broker_id in broker_ids or self.replicas:
                self.replicas[broker_id].apply(self.replicas[broker_id].fetch())

    def elect(self, leader_id: int, isr: tuple[int, ...] | None = None) -> None:
        """A new leader, and the ISR that the controller leaves: by default those members that are up."""
        left = tuple(member for member in self.state.isr if self.replicas[member].is_up) if isr is None else isr
        self.state = State(leader_id, self.state.leader_epoch + 1, left, self.state.partition_epoch + 1)

    def look(self) -> None:
        """The controller looks at who is registered. A bounce is a failure and a start; elections are clean.

        The last member of the ISR stays in it, and leads again when it is back.
        """
        stayed = tuple(member for member in self.state.isr if self.replicas[member].is_registered)
        came_back = tuple(member for member in self.state.isr if self.replicas[member].is_up)
        live = stayed or came_back
        for replica in self.replicas.values():
            replica.is_registered = replica.is_up
        if live and (live != self.state.isr or not stayed or self.state.leader not in live):
            self.elect(self.state.leader if self.state.leader in live else live[0], live)

    def answer_proposal(self, leader_id: int, *, lose_answer: bool = False) -> ErrorCode | None:
        """The controller takes the leader's ISR proposal, if it has one, and answers it."""
        replica = self.replicas[leader_id]
        proposal = replica.proposal
        if proposal is None:
            return None
        answer = self.check(leader_id, proposal)
        if not lose_answer and replica.leader is not None and replica.proposal is proposal:
            replica.proposal = None
            replica.leader.answered(proposal, answer, replica.end, self.now_ms)
            replica.settle()
        return answer.error_code

    def check(self, leader_id: int, proposal: IsrProposal) -> IsrAnswer:
        state = self.state
        if leader_id != state.leader or proposal.leader_epoch < state.leader_epoch:
            return IsrAnswer(ErrorCode.FENCED_LEADER_EPOCH)
        if set(proposal.members) != set(state.isr):
            if proposal.partition_epoch < state.partition_epoch:
                return IsrAnswer(ErrorCode.INVALID_UPDATE_VERSION)
            for member, seen_epoch in proposal.isr:
                replica = self.replicas[member]
                if not replica.is_up or seen_epoch not in (UNKNOWN_BROKER_EPOCH, replica.broker_epoch):
                    return IsrAnswer(ErrorCode.INELIGIBLE_REPLICA)
            order = tuple(member for member in self.replicas if member in proposal.members)
            self.state = State(state.leader, state.leader_epoch, order, state.partition_epoch + 1)
        return IsrAnswer(ErrorCode.NONE, self.state.leader_epoch, self.state.isr, self.state.partition_epoch)

    def write(self, value: str, leader_id: int | None = None) -> Write:
        """A write that must be taken."""
        written = self.replicas[leader_id or self.state.leader].append(value)
        assert written is not None, "the write was refused"
        return written

    def values(self, broker_id: int) -> list[str]:
        return [value for _, value in self.replicas[broker_id].entries]


def lost(cluster: Cluster, writes: list[Write]) -> list[str]:
    """Acknowledged values that the leader of the controller's choice does not have at their offsets."""
    entries = cluster[cluster.state.leader].entries
    return [
        write.value
        for write in writes
        if write.outcome is ErrorCode.NONE
        and (write.offset >= len(entries) or entries[write.offset] != (write.epoch, write.value))
    ]


__all__ = ["Cluster", "Rules", "State", "Write", "leader", "lost"]
