"""Random walks of replicas through crashes, elections, late answers and lost answers.

Nothing acknowledged may be lost, nobody may differ below the watermark, no watermark goes back within a leader epoch.
That the walks would notice is shown by taking one rule away at a time: each is missed within a few hundred seeds.
(Rules that matter only in rarer company are held by the golden scenarios.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from cluster.invariants import InvariantBroken
from cluster.protocol.errors import ErrorCode
from cluster.replication.follower import FetchPosition, Reaction, reaction
from cluster.replication.invariants import validate
from cluster.replication.leader import LeaderState
from tests.cluster.replication.model import LAG_MS, Cluster, FetchAnswer, Rules, Write, lost
from tests.cluster.replication.test_golden import no_divergence

STEPS = 400


class Walk:
    """One seed's walk. ``broken`` is what was found wrong, None if nothing was."""

    def __init__(self, seed: int, rules: Rules) -> None:
        self.random = Random(seed)
        #: Where a rule is taken away, it is the loss that must be seen.
        self.is_inspected = rules == Rules()
        self.cluster = Cluster(self.random.choice([3, 3, 4]), rules=rules)
        self.writes: list[Write] = []
        self.late: list[FetchAnswer] = []
        self.watermarks: dict[tuple[int, int], int] = {}
        #: Seeds differ in temper: some crash much, some leave the controller's word undelivered for long.
        self.moves: list[tuple[Callable[[int], None], float]] = [
            (self.write, 8),
            (self.fetch, 12),
            (self.all_fetch, 8),
            (self.fetch_slowly, self.random.choice([0.5, 4])),
            (self.late_answer, 4),
            (self.crash, self.random.choice([0.5, 1, 2])),
            (self.start, self.random.choice([2, 6])),
            (self.controller_looks, self.random.choice([4, 10])),
            (self.is_told, self.random.choice([2, 8])),
            (self.checkpoint, 1),
            (self.proposal_is_answered, 4),
            (self.time_passes, self.random.choice([1, 5])),
        ]

    def run(self) -> str | None:
        moves, weights = zip(*self.moves, strict=True)
        for move in self.random.choices(moves, weights, k=STEPS):
            move(self.random.choice(list(self.cluster.replicas)))
            broken = self.broken()
            if broken is not None:
                return f"after {move.__name__}: {broken}"
        return None

    def write(self, broker: int) -> None:
        # Clients find the leader quickly, or one that was.
        target = self.cluster.state.leader if self.random.random() < 0.8 else broker
        written = self.cluster[target].append(f"m{len(self.writes)}")
        if written is not None:
            self.writes.append(written)

    def fetch(self, broker: int) -> None:
        self.cluster[broker].apply(self.cluster[broker].fetch(self.random.choice([1, 2, 100])))

    def all_fetch(self, _broker: int) -> None:
        self.cluster.sync(rounds=2)

    def fetch_slowly(self, broker: int) -> None:
        answer = self.cluster[broker].fetch()
        if answer is not None:
            self.late.append(answer)

    def late_answer(self, _broker: int) -> None:
        if self.late:
            answer = self.late.pop(self.random.randrange(len(self.late)))
            self.cluster[answer.follower].apply(answer)

    def crash(self, broker: int) -> None:
        self.cluster[broker].crash()
        # What a dead process asked for reaches nobody.
        self.late = [answer for answer in self.late if answer.follower != broker]

    def start(self, broker: int) -> None:
        for number in (broker, *self.cluster.replicas):
            if not self.cluster[number].is_up:
                self.cluster[number].start()
                return

    def controller_looks(self, _broker: int) -> None:
        self.cluster.look()

    def is_told(self, broker: int) -> None:
        self.cluster.tell(*([broker] if self.random.random() < 0.6 else []))

    def checkpoint(self, broker: int) -> None:
        if self.cluster[broker].is_up:
            self.cluster[broker].checkpoint = self.cluster[broker].high_watermark

    def proposal_is_answered(self, broker: int) -> None:
        self.cluster.answer_proposal(broker, lose_answer=self.random.random() < 0.5)

    def time_passes(self, broker: int) -> None:
        self.cluster.now_ms += self.random.choice([0, LAG_MS // 2, LAG_MS + 1])
        replica = self.cluster[broker]
        if replica.leader is not None:
            proposal = replica.leader.check_lag(replica.end, self.cluster.now_ms)
            replica.proposal = proposal or replica.proposal
            replica.leader.advance(replica.end, self.cluster.now_ms)
            replica.settle()

    def broken(self) -> str | None:
        missing = lost(self.cluster, self.writes)
        if missing:
            return f"acknowledged and lost: {missing}"
        replicas = list(self.cluster.replicas.values())
        for one in replicas:
            if one.high_watermark > one.end:
                return f"{one!r} has a watermark beyond its end"
            for other in replicas:
                shared = min(one.high_watermark, other.high_watermark)
                if one.entries[:shared] != other.entries[:shared]:
                    return f"{one!r} differs from {other!r}"
            if one.leader is not None:
                if self.is_inspected:
                    validate(one.leader, one.end)
                key = (one.broker_id, one.leader_epoch)
                if one.high_watermark < self.watermarks.get(key, 0):
                    return f"the watermark of {one!r} went back"
                self.watermarks[key] = one.high_watermark
        return None


def first_failure(rules: Rules, seeds: int) -> tuple[int, str] | None:
    for seed in range(seeds):
        broken = Walk(seed, rules).run()
        if broken is not None:
            return seed, broken
    return None


def test_no_walk_breaks_the_rules() -> None:
    """Through everything that may happen, what was acknowledged stays, at its offset, with every leader."""
    assert first_failure(Rules(), 300) is None


@pytest.mark.full
@pytest.mark.timeout(900)
def test_no_long_walk_breaks_the_rules() -> None:
    """The same as in the gate, for many more seeds."""
    assert first_failure(Rules(), 20_000) is None


def test_walks_get_somewhere() -> None:
    """The walks are no idle ones: writes are acknowledged, and leaders change, in most of them."""
    walks = [Walk(seed, Rules()) for seed in range(50)]
    for walk in walks:
        walk.run()
    assert sum(any(write.outcome is ErrorCode.NONE for write in walk.writes) for walk in walks) > 35
    assert sum(walk.cluster.state.leader_epoch > 1 for walk in walks) > 40


class AcknowledgesAtOnce(LeaderState):
    """The wait for followers removed: the watermark is the leader's own end."""

    __slots__ = ()

    def advance(self, log_end_offset: int, now_ms: int) -> bool:
        self.high_watermark = max(self.high_watermark, log_end_offset)
        return True


def trusts_late_answers(sent: FetchPosition, here: FetchPosition, error: ErrorCode, *, diverges: bool) -> Reaction:
    return reaction(here, here, error, diverges=diverges)


def ignores_the_last_epoch(sent: FetchPosition, here: FetchPosition, error: ErrorCode, *, diverges: bool) -> Reaction:
    return reaction(sent._replace(last_fetched_epoch=here.last_fetched_epoch), here, error, diverges=diverges)


def watermark_cut(latest: int | None, watermark: int, end: int) -> int:
    return min(watermark, end)


REMOVED = {
    "epoch-based truncation (KIP-101)": replace(Rules(), initial_truncation=watermark_cut),
    "divergence by epoch (KIP-279)": replace(Rules(), end_offset_for=no_divergence),
    "waiting for followers": replace(Rules(), leader_state=AcknowledgesAtOnce),
    "the position of a late answer (KAFKA-18723)": replace(Rules(), reaction=trusts_late_answers),
}


@pytest.mark.parametrize("rule", REMOVED)
def test_a_removed_rule_is_missed(rule: str) -> None:
    """Each rule is needed: without it some walk loses an acknowledged record or parts the replicas."""
    assert first_failure(REMOVED[rule], 600) is not None


def test_without_the_last_epoch_a_late_answer_cuts_what_is_committed() -> None:
    """A log that was cut and has grown to the same end is another one; the walk of this seed takes it for the same."""
    with pytest.raises(InvariantBroken, match="watermark-within"):
        inspected(3817, replace(Rules(), reaction=ignores_the_last_epoch)).run()
    assert Walk(3817, Rules()).run() is None


def inspected(seed: int, rules: Rules) -> Walk:
    walk = Walk(seed, rules)
    walk.is_inspected = True
    return walk
