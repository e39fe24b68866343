"""Clients, failed appends, lost answers, failovers and timeouts against what anyone can say about transactions.

Owns a log of one partition of ``__transaction_state`` whose tail a failover may lose, partitions that take markers or
fence them, and the rules: one outcome for each transaction, a marker of it in every partition that the client was told
is part of it, no answer of success for a producer that has a successor, and no decision that stays without completion.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cluster.coordinator.transaction.coordinator import TransactionCoordinator
from cluster.coordinator.transaction.decisions import AppendRecord, SendMarkers, TransactionMarkers, TxnDecision
from cluster.coordinator.transaction.invariants import validate, validate_successor
from cluster.coordinator.transaction.loading import TransactionTable
from cluster.coordinator.transaction.records import encode_key, encode_value
from cluster.coordinator.transaction.state import PREPARED, ProducerIdAndEpoch, TransitMetadata
from tests.cluster.coordinator.transaction.situations import E, S
from tests.support.examples import examples

IDS = ("a", "b")
PARTITIONS = (("t", 0), ("t", 1), ("u", 0))
TIMEOUT_MS = 1000
#: Not in the log; in the log nevertheless.
REFUSED = (E.NOT_ENOUGH_REPLICAS, E.UNKNOWN_TOPIC_OR_PARTITION, E.MESSAGE_TOO_LARGE)
UNCERTAIN = (E.REQUEST_TIMED_OUT, E.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
MARKERS_FAIL = (E.NOT_LEADER_OR_FOLLOWER, E.NOT_ENOUGH_REPLICAS_AFTER_APPEND, E.CORRUPT_MESSAGE)


@dataclass
class Client:
    transactional_id: str
    identity: ProducerIdAndEpoch | None = None


@dataclass
class Asked:
    """A request that waits for its record."""

    client: Client
    kind: str
    wish: object = None
    lost: bool = False


@dataclass
class Told:
    """Of one id: its newest producer, and of its transaction what clients were told and which outcome was seen."""

    newest: ProducerIdAndEpoch | None = None
    partitions: set = field(default_factory=set)
    wishes: set = field(default_factory=set)
    outcome: bool | None = None
    last_outcome: bool | None = None
    marked: dict = field(default_factory=dict)

    def end(self) -> None:
        self.last_outcome, self.outcome = self.outcome, None
        self.partitions, self.wishes, self.marked = set(), set(), {}


#: From the newest; mostly that one.
indexes = st.sampled_from([0, 0, 0, 1, 1, 2, 3, 4])


class Transactions(RuleBasedStateMachine):
    """One coordinator at a time, the next one in the next epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms, self.epoch, self.producer_ids = 1000, 0, 100
        self.log: list[tuple[bytes, bytes | None]] = []
        self.replicated = 0
        self.clients: list[Client] = []
        self.identities: set[ProducerIdAndEpoch] = set()
        self.told = {each: Told() for each in IDS}
        self.appends: list[tuple[AppendRecord, Asked | None]] = []
        self.markers: list[TransactionMarkers] = []
        #: (partition, producer id) -> the epoch and the coordinator epoch of its last marker.
        self.fences: defaultdict = defaultdict(lambda: (-1, -1))
        self.before: dict = {}
        self.coordinator = TransactionCoordinator(1, 900_000, 5000)

    @initialize(epoch=st.sampled_from([0, 32_762, 32_765]))
    def begin(self, epoch):
        """An id that has used up its epochs, or nearly."""
        transit = TransitMetadata(9, -1, epoch, -1, TIMEOUT_MS, S.EMPTY, frozenset(), -1, 0)
        self.log.append((encode_key("a"), encode_value(transit)))
        self.replicated = 1
        self.fail_over(0, ())

    def take_producer_id(self):
        self.producer_ids += 1
        return self.producer_ids

    # Clients.

    @rule(transactional_id=st.sampled_from(IDS), lost=st.booleans())
    def init_new(self, transactional_id, lost):
        self.clients.append(Client(transactional_id))
        self.init(self.clients[-1], lost)

    @precondition(lambda self: self.clients)
    @rule(index=indexes, lost=st.booleans())
    def init_again(self, index, lost):
        self.init(self.clients[-1 - index % len(self.clients)], lost)

    def init(self, client, lost):
        decision = self.coordinator.init_producer_id(
            client.transactional_id, TIMEOUT_MS, client.identity, self.take_producer_id, self.now_ms
        )
        self.carry_out(decision, Asked(client, "init", lost=lost))

    @precondition(lambda self: self.clients)
    @rule(index=indexes, partition=st.sampled_from(PARTITIONS))
    def add(self, index, partition):
        client = self.clients[-1 - index % len(self.clients)]
        if client.identity is not None:
            decision = self.coordinator.add_partitions(
                client.transactional_id, *client.identity, frozenset({partition}), self.now_ms
            )
            self.carry_out(decision, Asked(client, "add", partition))

    @precondition(lambda self: self.clients)
    @rule(index=indexes, commit=st.booleans())
    def end(self, index, commit):
        client = self.clients[-1 - index % len(self.clients)]
        if client.identity is not None:
            if client.identity == self.told[client.transactional_id].newest:
                self.told[client.transactional_id].wishes.add(commit)
            decision = self.coordinator.end_txn(client.transactional_id, *client.identity, self.now_ms, commit=commit)
            self.carry_out(decision, Asked(client, "end", commit))

    @rule(transactional_id=st.sampled_from(IDS), first=st.sampled_from(PARTITIONS), commit=st.booleans())
    def whole_transaction(self, transactional_id, first, commit):
        """What usually happens, up to the decision: a new producer, a partition, and perhaps an end."""
        self.settle()
        self.init_new(transactional_id, False)
        self.settle()
        if self.clients[-1].identity is None:
            self.init(self.clients[-1], False)
            self.settle()
        self.add(0, first)
        self.settle()
        self.end(0, commit)

    @rule()
    def settle(self):
        """All that is on its way succeeds."""
        for _ in range(3):
            while self.appends:
                self.append(0, E.NONE)
            while self.markers:
                self.deliver(0, [None] * 3, False)

    # What the shell does.

    def carry_out(self, decision: TxnDecision, asked: Asked | None):
        for effect in decision.effects:
            if isinstance(effect, AppendRecord):
                self.appends.append((effect, asked))
            elif isinstance(effect, SendMarkers):
                self.decided(effect)
                self.markers.append(effect.markers)
        if decision.answer is not None and asked is not None:
            self.answered(asked, decision.answer)
        self.what_always_holds()

    def decided(self, effect: SendMarkers):
        markers, told = effect.markers, self.told[effect.markers.transactional_id]
        if told.outcome is None:
            assert told.partitions <= markers.topic_partitions, "a partition of the transaction gets no marker"
            assert not markers.commit or True in told.wishes, "no one wished to commit"
            if told.wishes == set() and told.newest and told.newest.producer_id == markers.producer_id:
                assert markers.producer_epoch > told.newest.producer_epoch, "the producer is not fenced"
            told.outcome = markers.commit
        assert told.outcome is markers.commit, "two outcomes of one transaction"

    def answered(self, asked: Asked, answer):
        told, client = self.told[asked.client.transactional_id], asked.client
        if answer.error_code is not E.NONE:
            return
        if client.identity is not None:
            assert told.newest in (None, client.identity), "a producer that has a successor"
        if asked.kind == "init" and not asked.lost:
            identity = ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch)
            assert identity not in self.identities, "two producers are told the same"
            self.identities.add(identity)
            told.newest = client.identity = identity
        elif asked.kind == "add":
            assert told.outcome is None, "a partition was added after the decision"
            told.partitions.add(asked.wish)
        elif asked.kind == "end":
            outcome = told.last_outcome if told.outcome is None else told.outcome
            assert outcome is asked.wish, "the answer is not the outcome"

    @precondition(lambda self: self.appends)
    @rule(index=indexes, error=st.sampled_from([E.NONE] * 5 + [*REFUSED, *UNCERTAIN]))
    def append(self, index, error):
        record, asked = self.appends.pop(index % len(self.appends))
        if error not in REFUSED:
            self.log.append((record.key, record.value))
        if error is E.NONE:
            self.replicated = len(self.log)
            self.completed(record)
        decision = self.coordinator.appended(record, error, self.now_ms)
        # The answer comes after the decision it tells.
        self.carry_out(decision, asked)

    def completed(self, record: AppendRecord):
        told = self.told[record.transactional_id]
        if record.transit.state in (S.COMPLETE_COMMIT, S.COMPLETE_ABORT):
            commit = record.transit.state is S.COMPLETE_COMMIT
            assert told.outcome is commit
            assert told.marked and told.partitions <= told.marked.keys(), "complete without a marker"
            assert set(told.marked.values()) == {commit}
            told.end()
        elif record.transit.state is S.DEAD:
            told.newest = told.last_outcome = None

    @precondition(lambda self: self.markers)
    @rule(index=indexes, errors=st.lists(st.sampled_from([None] * 4 + [*MARKERS_FAIL]), min_size=3), lost=st.booleans())
    def deliver(self, index, errors, lost):
        """Each partition takes its marker or fails; the answer arrives or is lost."""
        markers = self.markers.pop(index % len(self.markers))
        is_current = markers.coordinator_epoch == self.epoch
        answers = {}
        for topic_partition, error in zip(sorted(markers.topic_partitions), errors, strict=False):
            answers[topic_partition] = error or self.mark(topic_partition, markers)
            assert not is_current or answers[topic_partition] is not E.TRANSACTION_COORDINATOR_FENCED
        self.carry_out(self.coordinator.markers_answered(markers, None if lost else answers), None)

    def mark(self, topic_partition, markers: TransactionMarkers):
        epoch, coordinator_epoch = self.fences[topic_partition, markers.producer_id]
        if markers.producer_epoch < epoch:
            return E.INVALID_PRODUCER_EPOCH
        if markers.coordinator_epoch < coordinator_epoch:
            return E.TRANSACTION_COORDINATOR_FENCED
        self.fences[topic_partition, markers.producer_id] = markers.producer_epoch, markers.coordinator_epoch
        told = self.told[markers.transactional_id]
        assert told.outcome is markers.commit, "a marker of another transaction"
        told.marked[topic_partition] = markers.commit
        return E.NONE

    # Time and leadership.

    @rule(elapsed_ms=st.integers(0, 3000))
    def time_passes(self, elapsed_ms):
        self.now_ms += elapsed_ms
        self.carry_out(self.coordinator.abort_timed_out(self.coordinator.owned.all_ids(), self.now_ms), None)
        self.carry_out(self.coordinator.expire_idle(self.coordinator.owned.all_ids(), self.now_ms), None)

    @rule(kept=st.integers(0, 5), arrive=st.lists(st.booleans(), max_size=5))
    def fail_over(self, kept, arrive):
        """Another broker leads. What was not replicated may be lost, what was on its way may have arrived."""
        self.log += [(record.key, record.value) for (record, _), has in zip(self.appends, arrive, strict=False) if has]
        self.log = self.log[: self.replicated + kept]
        self.replicated = len(self.log)
        old, self.epoch = self.coordinator, self.epoch + 1
        old.resigned(0, self.epoch)
        for record, asked in self.appends:
            self.carry_out(old.appended(record, E.NOT_LEADER_OR_FOLLOWER, self.now_ms), asked)
        self.appends, self.before = [], {}
        table = TransactionTable()
        for offset, (key, value) in enumerate(self.log):
            table.take(offset, key, value)
        for transactional_id, told in self.told.items():
            loaded = table.transactions.get(transactional_id)
            if loaded is None:
                told.newest = told.last_outcome = None
            if told.outcome is not None and (loaded is None or loaded.state not in PREPARED):
                assert loaded is not None and loaded.state in (S.COMPLETE_COMMIT, S.COMPLETE_ABORT), (
                    "a decision is lost"
                )
                told.end()
        self.coordinator = TransactionCoordinator(1, 900_000, 5000)
        self.coordinator.elected(0, self.epoch)
        self.carry_out(self.coordinator.loaded(0, self.epoch, table.transactions, self.now_ms), None)

    @invariant()
    def what_always_holds(self):
        validate(self.coordinator)
        served = self.coordinator.owned.served.get(0)
        now = {} if served is None else dict(served.transactions)
        for transactional_id in now.keys() & self.before.keys():
            validate_successor(self.before[transactional_id], now[transactional_id])
        self.before = now

    def teardown(self):
        """Left alone, every decision is completed."""
        self.settle()
        assert all(each.state not in PREPARED and each.pending is None for each in self.before_now())
        assert all(told.outcome is None for told in self.told.values())

    def before_now(self):
        served = self.coordinator.owned.served.get(0)
        return [] if served is None else served.transactions.values()


TestTransactions = Transactions.TestCase
TestTransactions.settings = examples(50, full=3000)
TestTransactions.__doc__ = "One outcome, told to no one who has a successor, and always completed."
