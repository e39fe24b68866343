"""A program, lost and late requests, fenced and timed-out transactions against a coordinator written down simply.

Owns the promises: what a program is told about the end of a transaction is what happened to everything that was written
in it, nothing of one transaction is in another, a batch goes only where the coordinator has its partition, no
transaction stays open that the producer does not know of, and when faults end, every call has its outcome.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cluster.client.producer.transaction.transaction_errors import IllegalTransactionCall, TransactionError
from cluster.client.producer.transaction.txn_requests import (
    AddTxnOffsets,
    AddTxnPartitions,
    EndTxnRequested,
    TxnAnswer,
    TxnIdentity,
)
from tests.cluster.client.producer.transaction.model_coordinator import ModelCoordinator
from tests.cluster.client.producer.transaction.txn_bench import GROUP, ID, T0, T1, U0, Bench, E, S, TxnOffset

PATIENCE = 60
PASSING = (E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR, E.CONCURRENT_TRANSACTIONS)
partitions = st.sampled_from([T0, T1, U0])


class Program(RuleBasedStateMachine):
    """One producer and its program, which numbers its transactions."""

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench()
        self.coordinator = ModelCoordinator()
        self.number = 0
        self.unsent: list = []
        #: The last of init, commit and abort, of which the program waits for the outcome.
        self.call = None
        self.is_commit = False
        #: Number -> the outcomes that the program may believe in.
        self.told: dict[int, set[bool]] = {}
        self.late: list = []
        self.seen_drops = 0

    @property
    def manager(self):
        return self.bench.manager

    # The program.

    @rule()
    def init(self):
        self.make(lambda: self.manager.init_transactions())

    @rule()
    def begin(self):
        if self.tried(self.manager.begin_transaction):
            self.number += 1
            self.told[self.number] = {False}

    @rule(partition=partitions)
    def send(self, partition):
        if self.tried(lambda: self.manager.use_partition(partition)):
            self.unsent.append(partition)

    @rule()
    def send_offsets(self):
        self.tried(lambda: self.manager.send_offsets_to_transaction({T0: TxnOffset(self.number)}, GROUP))

    @rule(partition=partitions)
    def usual_transaction(self, partition):
        """What usually happens, up to the commit."""
        self.init()
        self.settle()
        self.begin()
        self.send(partition)
        self.settle()

    @rule(commit=st.booleans())
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

    @precondition(lambda self: self.call is not None and self.call.is_done)
    @rule()
    def acknowledge(self):
        self.manager.acknowledged(self.call)
        if self.call.operation.value == "commit_transaction":
            error = self.call.error
            if error is None:
                self.told[self.number] = {True}
            elif error.may_be_committed:
                self.told[self.number] = {True, False}
        self.call = None

    # Brokers and the network.

    @rule(
        fate=st.sampled_from(["answered"] * 6 + ["not arrived", "answer lost", "late", "passing"]),
        code=st.sampled_from(PASSING),
    )
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
        elif fate == "passing" and not isinstance(request, EndTxnRequested):
            answer = TxnAnswer(code)
        else:
            answer = TxnAnswer(E.NETWORK_EXCEPTION)
            if fate == "answer lost":
                self.coordinator.take(request)
            elif fate == "late" and isinstance(request, AddTxnPartitions | AddTxnOffsets):
                self.late.append(request)
        self.bench.answer(answer)
        self.tick()

    @precondition(lambda self: self.late)
    @rule()
    def arrive_late(self):
        self.coordinator.take(self.late.pop())

    @rule()
    def write_markers(self):
        self.coordinator.write_markers()

    @rule(is_answer_lost=st.sampled_from([False, False, False, True]))
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

    @precondition(lambda self: self.unsent and self.manager.state is not S.FATAL_ERROR)
    @rule()
    def expire(self):
        """A batch is too old before it could be sent."""
        self.unsent.pop()
        self.manager.batch_failed(E.REQUEST_TIMED_OUT, was_numbered=False)
        self.tick()

    @rule(dice=st.integers(0, 9))
    def fence(self, dice):
        if dice == 0 and self.coordinator.producer_id >= 0:
            self.coordinator.fence()

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
            self.write_markers()
            if self.call is not None and self.call.is_done:
                self.acknowledge()

    @invariant()
    def outcomes_are_what_was_told(self):
        for commit, writes in self.coordinator.ended:
            numbers = {number for _, number in self.of(writes)}
            assert len(numbers) <= 1, f"writes of {numbers} end together"
            for number in numbers - {self.number}:
                assert commit in self.told[number], f"{number} was {commit}, told was {self.told[number]}"

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
        if self.manager.state is S.READY:
            known = (self.coordinator.producer_id, self.coordinator.epoch)
            assert self.coordinator.open is None or self.identity[1:] != known, "a transaction that no one ends"
        self.number += 1
        self.outcomes_are_what_was_told()


TestProgram = Program.TestCase
TestProgram.settings = settings(stateful_step_count=40)
