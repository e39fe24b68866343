"""A program, lost and late requests, fenced and timed-out transactions against a coordinator written down simply.

Owns the promises: what a program is told about the end of a transaction is what happened to everything that was written
in it, nothing of one transaction is in another, a batch goes only where the coordinator has its partition, no
transaction stays open that the producer does not know of, a producer that no one fenced can always continue, and when
faults end, every call has its outcome.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from cluster.client.producer.transaction.ledger import TransactionLedger
from cluster.client.producer.transaction.manager import TransactionManager
from cluster.client.producer.transaction.transaction_errors import IllegalTransactionCall, TransactionError
from cluster.client.producer.transaction.txn_requests import (
    AddTxnOffsets,
    AddTxnPartitions,
    EndTransaction,
    TxnAnswer,
    TxnIdentity,
)
from tests.cluster.client.producer.transaction.broker_coordinator import BrokerCoordinator
from tests.cluster.client.producer.transaction.model_coordinator import ModelCoordinator
from tests.cluster.client.producer.transaction.txn_bench import GROUP, ID, T0, T1, U0, Bench, E, OffsetAndMetadata, S

PATIENCE = 60
PASSING = (E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR, E.CONCURRENT_TRANSACTIONS)
STEPS = (
    ["program"] * 5 + ["broker"] * 6 + ["produce"] * 4 + ["markers", "markers", "late", "expire", "any call", "fence"]
)
WISHES = ["send", "send", "send", "offsets", "commit", "commit", "abort"]
FATES = ["answered"] * 7 + ["not arrived", "answer lost", "late", "passing"]
PARTITIONS = (T0, T1, U0)
SCHEDULES = 100
STEPS_OF_A_SCHEDULE = 120


class Program(RuleBasedStateMachine):
    """One producer and its program, which numbers its transactions."""

    coordinator_type = ModelCoordinator

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench()
        self.coordinator = self.coordinator_type()
        self.number = 0
        self.unsent: list = []
        #: The last of init, commit and abort, of which the program waits for the outcome.
        self.call = None
        self.is_commit = False
        #: Number -> the outcomes that the program may believe in.
        self.told: dict[int, set[bool]] = {}
        self.late: list = []
        #: Something happened that may end the producer.
        self.is_fenced = False
        self.seen_drops = 0

    @property
    def manager(self):
        return self.bench.manager

    @initialize()
    def start(self):
        self.init()
        self.settle()

    @rule(
        what=st.sampled_from(STEPS),
        wish=st.sampled_from(WISHES),
        partition=st.sampled_from(PARTITIONS),
        fate=st.sampled_from(FATES),
        code=st.sampled_from(PASSING),
    )
    def step(self, what, wish, partition, fate, code):
        """One rule with everything: the weights of what happens are ours."""
        if what == "program":
            self.sensible_call(wish, partition)
        elif what == "any call":
            self.any_call(wish, partition)
        elif what == "broker":
            self.serve(fate, code)
        elif what == "produce":
            self.produce(fate == "answer lost")
        elif what == "markers":
            self.coordinator.write_markers()
        elif what == "late" and self.late:
            self.coordinator.take(self.late.pop())
            # What opens a transaction between the abort and the raising of the epoch fences the producer.
            self.is_fenced = True
        elif what == "expire" and self.unsent and self.manager.state is not S.FATAL_ERROR:
            self.expire()
        elif what == "fence" and fate != "answered":
            self.coordinator.fence()
            self.is_fenced = True

    # The program.

    def sensible_call(self, wish, partition):
        """What a program does next that looks at the state; after a fatal error, another producer takes over."""
        state = self.manager.state
        if self.call is not None and self.call.is_done:
            self.acknowledge()
        elif state is S.FATAL_ERROR:
            self.start_another()
        elif self.call is not None or state is S.UNINITIALIZED:
            self.repeat()
        elif state is S.READY:
            self.begin()
            self.send(partition)
        elif wish == "send" and state is S.IN_TRANSACTION:
            self.send(partition)
        elif wish == "offsets" and state is S.IN_TRANSACTION:
            self.send_offsets()
        else:
            self.end(wish == "commit" and state is S.IN_TRANSACTION)

    def any_call(self, wish, partition):
        """Also what does not fit the state."""
        calls = {
            "init": self.init,
            "begin": self.begin,
            "send": lambda: self.send(partition),
            "offsets": self.send_offsets,
            "commit": lambda: self.end(True),
            "abort": lambda: self.end(False),
        }
        calls[wish]()

    def start_another(self):
        if self.is_commit and self.call is not None:
            self.told[self.number] = {True, False}
        self.bench, self.call, self.seen_drops, self.is_fenced = Bench(), None, 0, False
        self.unsent.clear()
        self.init()

    def repeat(self):
        """The program stopped waiting, and makes the same call again."""
        name = "init_transactions" if self.call is None else self.call.operation.value
        self.make(getattr(self.manager, name))

    def init(self):
        self.make(self.manager.init_transactions)

    def begin(self):
        if self.tried(self.manager.begin_transaction):
            self.number += 1
            self.told[self.number] = {False}
            self.is_commit = False

    def send(self, partition):
        if self.tried(lambda: self.manager.use_partition(partition)):
            self.unsent.append(partition)
            self.tick()

    def send_offsets(self):
        self.tried(lambda: self.manager.send_offsets_to_transaction({T0: OffsetAndMetadata(self.number)}, GROUP))

    def end(self, commit):
        method = self.manager.commit_transaction if commit else self.manager.abort_transaction
        if self.make(method):
            self.is_commit = commit

    def make(self, method) -> bool:
        def keep():
            self.call = method()

        return self.tried(keep)

    def tried(self, method) -> bool:
        try:
            method()
        except (IllegalTransactionCall, TransactionError):
            return False
        self.tick()
        return True

    def acknowledge(self):
        self.manager.acknowledged(self.call)
        if self.call.operation.value == "commit_transaction":
            error = self.call.error
            if error is None:
                assert not self.unsent, "committed before all records had their outcome"
                self.told[self.number] = {True}
            elif error.may_be_committed:
                self.told[self.number] = {True, False}
        self.call = None

    # Brokers and the network.

    def serve(self, fate, code):
        if self.bench.flying is None:
            self.tick(later=True)
            return
        request = self.bench.flying.request
        if fate == "answered":
            answer = self.coordinator.take(request)
            if answer.error_code is E.NONE and isinstance(request, AddTxnPartitions | AddTxnOffsets):
                # What was repeated with success is not what a broker still has.
                self.late = [each for each in self.late if type(each) is not type(request)]
        elif fate == "passing" and not isinstance(request, EndTransaction):
            answer = TxnAnswer(code)
        else:
            answer = TxnAnswer(E.NETWORK_EXCEPTION)
            if fate == "answer lost":
                self.coordinator.take(request)
            elif fate == "late" and isinstance(request, AddTxnPartitions | AddTxnOffsets):
                self.late.append(request)
        self.bench.answer(answer)
        self.tick()

    def produce(self, is_answer_lost):
        """The first batch that may go, goes."""
        for partition in self.unsent:
            if self.manager.may_send(partition):
                self.unsent.remove(partition)
                code = self.coordinator.write(self.identity, partition, (partition, self.number))
                assert code is not E.INVALID_TXN_STATE, "sent before the partition was added"
                if code is E.NONE and is_answer_lost:
                    code = E.REQUEST_TIMED_OUT
                if code is not E.NONE:
                    self.manager.batch_failed(code, was_numbered=True)
                self.tick()
                return

    def expire(self):
        """A batch is too old before it could be sent."""
        self.unsent.pop()
        self.manager.batch_failed(E.REQUEST_TIMED_OUT, was_numbered=False)
        self.tick()

    # What follows each event.

    @property
    def identity(self) -> TxnIdentity:
        return TxnIdentity(ID, *self.bench.identities[-1])

    def tick(self, *, later: bool = False) -> None:
        self.bench.has_batches = bool(self.unsent)
        if later and self.bench.wake_at_ms is not None:
            self.bench.now_ms = self.bench.wake_at_ms
        self.bench.tick()
        if len(self.bench.dropped) > self.seen_drops:
            self.seen_drops = len(self.bench.dropped)
            self.unsent.clear()
            self.tick()

    def settle(self) -> None:
        """No more faults: everything that waits comes to its end."""
        for _ in range(PATIENCE):
            self.serve("answered", None)
            self.produce(False)
            self.coordinator.write_markers()
            if self.call is not None and self.call.is_done:
                self.acknowledge()

    @invariant()
    def outcomes_are_what_was_told(self):
        for commit, writes in self.coordinator.ended:
            numbers = {number for _, number in self.of(writes)}
            assert len(numbers) <= 1, f"writes of {numbers} end together"
            for number in numbers - {self.number}:
                assert commit in self.told[number], f"{number} was {commit}, told was {self.told[number]}"

    @invariant()
    def only_the_fenced_are_finished(self):
        assert self.manager.state is not S.FATAL_ERROR or self.is_fenced, str(self.manager.error)

    @invariant()
    def nothing_is_left_open(self):
        if self.manager.state is S.READY:
            known = (self.coordinator.producer_id, self.coordinator.epoch)
            assert self.coordinator.open is None or self.identity[1:] != known, "a transaction that no one ends"

    @staticmethod
    def of(writes):
        """Offsets are committed with the number of their transaction as the offset."""
        return [("group", each[T0].offset) if isinstance(each, dict) else each for each in writes]

    def teardown(self):
        self.settle()
        assert self.call is None or self.call.is_done
        assert self.bench.flying is None and self.bench.wake_at_ms is None
        if self.manager.state in (S.IN_TRANSACTION, S.ABORTABLE_ERROR):
            self.end(False)
            self.settle()
        for late in self.late:
            self.coordinator.take(late)
        self.nothing_is_left_open()
        self.number += 1
        self.outcomes_are_what_was_told()


class ProgramOfABroker(Program):
    """The same with the coordinator that brokers have."""

    coordinator_type = BrokerCoordinator


def play(seed: int, kind: type[Program] = Program) -> Program:
    """A schedule whose choices are even; hypothesis prefers short ones, in which little happens."""
    random = Random(seed)
    program = kind()
    program.start()
    for _ in range(STEPS_OF_A_SCHEDULE):
        program.step(*map(random.choice, (STEPS, WISHES, PARTITIONS, FATES, PASSING)))
        program.outcomes_are_what_was_told()
        program.only_the_fenced_are_finished()
        program.nothing_is_left_open()
    program.teardown()
    return program


@pytest.mark.parametrize("kind", [Program, ProgramOfABroker])
def test_schedules_from_seeds(kind):
    """The promises hold, and much of everything happens."""
    ended: Counter[tuple[bool, bool]] = Counter()
    for seed in range(SCHEDULES):
        program = play(seed, kind)
        ended.update((commit, bool(writes)) for commit, writes in program.coordinator.ended)
    # (committed, with anything in it): what is committed has all that the program sent.
    assert min(ended[True, True], ended[False, True], ended[False, False]) > SCHEDULES // 4


_send_next = TransactionManager._send_next

PLANTED = {
    "an addition in doubt is forgotten": (
        TransactionLedger,
        "needs_end_txn",
        lambda ledger, *, commit: ledger.is_started,
        "PRODUCER_FENCED|no one ends",
    ),
    "a failed commit is taken for an abort": (TransactionLedger, "may_be_committed", False, "was True, told was"),
    "batches are sent before their partition is added": (
        TransactionManager,
        "may_send",
        lambda manager, partition: manager.state is S.IN_TRANSACTION,
        "sent before",
    ),
    "the end does not wait for batches": (
        TransactionManager,
        "_send_next",
        lambda manager, now_ms, has_incomplete_batches: _send_next(manager, now_ms, False),
        "before (all records|the partition)",
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_found(name, monkeypatch):
    """A manager that is wrong in this way breaks its promise, seen from outside."""
    owner, attribute, planted, said = PLANTED[name]
    monkeypatch.setattr(owner, attribute, planted)
    with pytest.raises(AssertionError, match=said):
        play_until_broken()


def play_until_broken() -> None:
    for seed in range(SCHEDULES):
        play(seed)


TestProgram = Program.TestCase
TestProgram.settings = settings(stateful_step_count=40)
