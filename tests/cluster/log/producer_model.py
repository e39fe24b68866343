"""A small model of producers and replicas around the real sequence check and the real producer state.

Three replicas that copy their leader's log, one client with several batches in flight, a network that loses answers,
keeps copies and delivers them in any order. Leaders change, followers cut what the leader does not have, brokers
restart, the log start moves, idle producers are forgotten. A schedule is a list of (action, number); what it means at
each step follows from the state, so every schedule can be played, and a shrunk one is still a story.

``play`` returns what went wrong: ``lost`` (acknowledged and not in the log), ``doubled`` (in the log twice) or ``hole``
(in the log without what the client sent before it, although the log still begins at 0). ``Conditions`` are what the
rules rest on; each can be taken away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cluster.log.producers import ProducerStates
from cluster.log.sequence import ProducerEntry, VerdictKind, check_sequence
from tests.cluster.log.builders import make_header

ACTIONS = ("send", "retry", "deliver", "lose answer", "replicate", "elect", "restart", "delete", "expire", "other")
PRODUCER_ID = 7
REPLICAS = 3

Schedule = Sequence[tuple[str, int]]


@dataclass(frozen=True)
class Conditions:
    """What the broker heeds. All of them is our rule; ``in_flight`` is the client's limit."""

    unknown_producer: str = "gapless"
    below_window_needs_complete_history: bool = True
    duplicates_wait_for_their_original: bool = True
    epoch_of_the_append_counts: bool = True
    truncation_takes_producers_back: bool = True
    expiry_waits_for_copies: bool = True
    in_flight: int = 5


class Written(NamedTuple):
    """One batch in a log; sequence -1 is somebody else's. The offset of a batch is its place: each counts as one."""

    sequence: int
    leader_epoch: int


def note(producers: ProducerStates, offset: int, batch: Written) -> None:
    if batch.sequence >= 0:
        producers.update(make_header(producer_id=PRODUCER_ID, base_sequence=batch.sequence), offset)


class Pending(NamedTuple):
    """An append, or a duplicate of one, that waits to be committed: number ``sequence`` of the client."""

    sequence: int
    must_commit_offset: int
    leader_epoch: int


class Replica:
    """A log, and what is known of producers. It begins at ``start``; what was before is kept for the judge."""

    def __init__(self, conditions: Conditions) -> None:
        self.log: list[Written] = []
        self.start = 0
        self.producers = ProducerStates()
        self._conditions = conditions

    def write(self, batch: Written) -> None:
        note(self.producers, len(self.log), batch)
        self.log.append(batch)

    def rebuild(self) -> None:
        """As after a start: a snapshot of what is deleted, the log for the rest."""
        deleted = ProducerStates()
        for offset, batch in enumerate(self.log[: self.start]):
            note(deleted, offset, batch)
        self.producers.clear()
        self.producers.load_snapshot(deleted.snapshot())
        for offset in range(self.start, len(self.log)):
            note(self.producers, offset, self.log[offset])

    def copy(self, leader: Replica, count: int) -> None:
        """Cut what the leader does not have, then take ``count`` batches of it."""
        same = 0
        while same < min(len(self.log), len(leader.log)) and self.log[same] == leader.log[same]:
            same += 1
        if same < len(self.log):
            del self.log[same:]
            if self._conditions.truncation_takes_producers_back:
                self.rebuild()
        for batch in leader.log[same : same + count]:
            self.write(batch)
        self.start = max(self.start, min(leader.start, len(self.log)))


class Model:
    """See the module's text."""

    def __init__(self, conditions: Conditions) -> None:
        self.conditions = conditions
        self.replicas = [Replica(conditions) for _ in range(REPLICAS)]
        self.isr = set(range(REPLICAS))
        self.leader = 0
        self.epoch = 0
        self.high_watermark = 0
        self.pending: list[Pending] = []
        # The client: how many batches it made, which are answered, the copies on their way as (batch, whom they go to).
        self.made = 0
        self.acknowledged: set[int] = set()
        self.is_over = False
        self.copies: list[tuple[int, int]] = []

    @property
    def outstanding(self) -> list[int]:
        return [sequence for sequence in range(self.made) if sequence not in self.acknowledged]

    def step(self, action: str, number: int) -> None:
        getattr(self, f"_{action.replace(' ', '_')}")(number)
        self._commit()

    # The client

    def _send(self, number: int) -> None:
        if len(self.outstanding) < self.conditions.in_flight and not self.is_over:
            self.made += 1
            self._put(self.made - 1, number)

    def _retry(self, number: int) -> None:
        if self.outstanding and not self.is_over:
            self._put(self.outstanding[number % len(self.outstanding)], number // 7)

    def _put(self, sequence: int, number: int) -> None:
        """Mostly to the leader; sometimes to whom the client takes for it."""
        self.copies.append((sequence, self.leader if number % 4 else number % REPLICAS))

    def _deliver(self, number: int, *, answered: bool = True) -> None:
        if not self.copies:
            return
        sequence, receiver = self.copies.pop(number % len(self.copies))
        if receiver != self.leader:
            return  # NOT_LEADER_OR_FOLLOWER: the client will send it again
        replica = self.replicas[receiver]
        entry: ProducerEntry | None = replica.producers.get(PRODUCER_ID)
        if entry is not None and not self.conditions.below_window_needs_complete_history:
            entry = entry._replace(complete=True)
        header = make_header(producer_id=PRODUCER_ID, base_sequence=sequence)
        setting = self.conditions.unknown_producer if entry is None else "gapless"
        verdict = check_sequence(entry, header, replica.start, setting)
        if verdict.kind is VerdictKind.REJECT:
            # In the middle it is retried. For the oldest there is no way on: clients call that fatal.
            self.is_over |= answered and self.outstanding[:1] == [sequence]
            return
        must_commit_offset = verdict.must_commit_offset
        if verdict.kind is VerdictKind.ACCEPT:
            replica.write(Written(sequence, self.epoch))
            must_commit_offset = len(replica.log) - 1
        elif not self.conditions.duplicates_wait_for_their_original:
            must_commit_offset = -1
        if answered:
            self.pending.append(Pending(sequence, must_commit_offset, self.epoch))

    def _other(self, _number: int) -> None:
        """A batch of somebody else."""
        self.replicas[self.leader].write(Written(-1, self.epoch))

    def _lose_answer(self, number: int) -> None:
        self._deliver(number, answered=False)

    # The brokers

    def _replicate(self, number: int) -> None:
        follower = (self.leader + 1 + number % (REPLICAS - 1)) % REPLICAS
        leader = self.replicas[self.leader]
        self.replicas[follower].copy(leader, number % 5)
        if len(self.replicas[follower].log) >= self.high_watermark:
            self.isr.add(follower)

    def _elect(self, number: int) -> None:
        """Somebody else of the ISR; a former leader that lags behind may have left it."""
        candidates = sorted(self.isr - {self.leader})
        if not candidates:
            return
        former = self.leader
        self.leader = candidates[number % len(candidates)]
        self.epoch += 1
        if number % 2:
            self.isr.discard(former)
        if len(self.isr) < 2:
            self.isr.add(former)
        if self.conditions.epoch_of_the_append_counts:
            self.pending.clear()  # NOT_LEADER_OR_FOLLOWER

    def _restart(self, number: int) -> None:
        self.replicas[number % REPLICAS].rebuild()

    def _delete(self, number: int) -> None:
        """Of what is committed."""
        leader = self.replicas[self.leader]
        leader.start = max(leader.start, min(number, self.high_watermark))

    def _expire(self, _number: int) -> None:
        """The condition: producer.id.expiration.ms is longer than a batch can be on its way."""
        if self.conditions.expiry_waits_for_copies and (self.copies or self.outstanding):
            return
        for replica in self.replicas:
            for monotonic_ms in (0, 1):
                replica.producers.expire(2**60, monotonic_ms, 1)

    def _commit(self) -> None:
        ends = []
        leader = self.replicas[self.leader].log
        for member in self.isr:
            log = self.replicas[member].log
            same = 0
            while same < min(len(log), len(leader)) and log[same] == leader[same]:
                same += 1
            ends.append(same)
        self.high_watermark = max(self.high_watermark, min(ends))
        waiting = []
        for pending in self.pending:
            if self.high_watermark > pending.must_commit_offset:
                self.acknowledged.add(pending.sequence)
            else:
                waiting.append(pending)
        self.pending = waiting

    # The judge

    def wrong(self) -> str | None:
        replica = self.replicas[self.leader]
        sequences = [batch.sequence for batch in replica.log if batch.sequence >= 0]
        if missing := self.acknowledged - set(sequences):
            return f"lost: {min(missing)} was acknowledged and is not in the log {sequences}"
        if len(set(sequences)) < len(sequences):
            return f"doubled: the log is {sequences}"
        if replica.start == 0 and sequences != list(range(len(sequences))):
            return f"hole: the log is {sequences}"
        return None


def play(schedule: Schedule, conditions: Conditions) -> str | None:
    """What is wrong, or None. Whoever meets a hole goes on: it may become a loss."""
    model = Model(conditions)
    hole = None
    for action, number in schedule:
        model.step(action, number)
        wrong = model.wrong()
        if wrong is not None and not wrong.startswith("hole"):
            return wrong
        hole = hole or wrong
    return hole
