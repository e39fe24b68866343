"""The producer's world with transactions: a program that commits and aborts, and a coordinator that loses answers.

Owns the program, the coordinator, and what must hold of transactions. Records, brokers, connections and their faults
are ``model_world``'s; the brokers refuse what is in no transaction (KIP-890).
"""

from __future__ import annotations

from collections.abc import Sequence

from cluster.client.producer.actions import Action, SendProduce
from cluster.client.producer.transaction.calls import TxnCall
from cluster.client.producer.transaction.invariants import validate
from cluster.client.producer.transaction.manager import TransactionManager
from cluster.client.producer.transaction.states import TxnProducerState
from cluster.client.producer.transaction.transaction_errors import IllegalTransactionCall, TransactionError
from cluster.client.producer.transaction.txn_actions import FinishTxnCall, SendTxnRequest
from cluster.client.producer.transaction.txn_requests import (
    AddTxnPartitions,
    EndTransaction,
    FindTxnCoordinator,
    InitTxnProducerId,
    TxnAnswer,
    TxnRequest,
)
from cluster.client.producer.transactional_identity import TransactionalIdentity
from cluster.client.producer.transactional_sender import TransactionalSenderCore
from cluster.protocol.batch import parse_header
from cluster.protocol.errors import ErrorCode
from tests.cluster.client.producer.model_broker import Appended, values_of
from tests.cluster.client.producer.model_world import HEAL_MS, SETTLING_MS, Sent, Violation, World

S = TxnProducerState
#: When the program begins its last transaction, which nothing is in the way of.
LAST_MS = HEAL_MS + SETTLING_MS


class ModelCoordinator:
    """What it has decided, and which partitions its transaction has."""

    def __init__(self, first_epoch: int) -> None:
        self.producer_id = 1
        self.epoch = first_epoch
        self.last: tuple[int, int] | None = None
        self.open: set[int] = set()
        #: The end that was decided last; None while a transaction is open.
        self.ended: bool | None = None

    def take(self, request: TxnRequest) -> TxnAnswer:
        if isinstance(request, FindTxnCoordinator):
            return TxnAnswer(node=0)
        if isinstance(request, InitTxnProducerId):
            return self.identify(request.identity[1:])
        if request.identity[1:] != (self.producer_id, self.epoch):
            return TxnAnswer(ErrorCode.PRODUCER_FENCED)
        if isinstance(request, AddTxnPartitions):
            self.ended = None
            self.open.update(partition for _topic, partition in request.topic_partitions)
            return TxnAnswer(partitions=dict.fromkeys(request.topic_partitions, ErrorCode.NONE))
        assert isinstance(request, EndTransaction)
        if not self.open and self.ended is not request.commit:
            return TxnAnswer(ErrorCode.INVALID_TXN_STATE)
        self.open, self.ended = set(), request.commit
        return TxnAnswer()

    def identify(self, asked: tuple[int, int]) -> TxnAnswer:
        """The same answer to the same question, should it have been lost (KIP-360)."""
        if asked == (self.producer_id, self.epoch):
            self.last = asked
            is_used_up = self.epoch >= 32_766
            self.producer_id, self.epoch = (self.producer_id + 1, 0) if is_used_up else (self.producer_id, asked[1] + 1)
        elif asked[0] >= 0 and asked != self.last:
            return TxnAnswer(ErrorCode.PRODUCER_FENCED)
        return TxnAnswer(producer_id=self.producer_id, producer_epoch=self.epoch)


class TransactionalWorld(World):
    """``sender`` and ``numbers`` are the classes under test, or ones with a planted bug."""

    def __init__(
        self,
        seed: int,
        sender: type[TransactionalSenderCore] = TransactionalSenderCore,
        numbers: type[TransactionalIdentity] = TransactionalIdentity,
    ) -> None:
        super().__init__(seed)
        settings = self.core._settings
        self.manager = TransactionManager("id", 60_000, self.core._backoff_ms)
        self.manager.coordinator_ready(can_bump_epoch=True)
        self.identity = identity = numbers(self.manager, settings.max_in_flight)
        self.core = sender(settings, self.accumulator, identity, self.core._backoff_ms, self.manager)
        self.is_idempotent = self.is_ordered = True
        self.odds["transaction"] = self.random.choice([0, 0, 0.1, 0.3])
        self.coordinator = ModelCoordinator(self.first_epoch)
        self.call: TxnCall | None = None
        self.numbers = [0] * len(self.partitions)
        #: Of each transaction, its records and its end; the last one is open, or was the last.
        self.transactions: list[set[tuple[int, int]]] = []
        self.ends: list[bool | None] = []
        self.began_ms = 0
        self.of_record: dict[tuple[int, int], int] = {}

    def run(self) -> None:
        for _ in range(self.random.randint(0, 4) if self.odds["move"] else 0):
            self.at(self.random.randint(0, HEAL_MS), self.move)
        self.at(0, self.refresh)
        self.at(1, self.step)
        self.play()
        self.judge(self.numbers)

    # The program.

    def step(self) -> None:
        state = self.manager.state
        if self.call is not None:
            if self.call.is_done:
                self.learn(self.call)
        elif state is S.FATAL_ERROR:
            raise Violation(f"a producer that no one fenced ended: {self.manager.error}")
        elif state is S.UNINITIALIZED:
            self.call = self.manager.init_transactions()
        elif state is S.READY:
            if self.now_ms > LAST_MS and self.ends and self.ends[-1] and self.began_ms > LAST_MS:
                return
            self.began_ms = self.now_ms
            self.manager.begin_transaction()
            self.transactions.append(set())
            self.ends.append(None)
        elif state is S.ABORTABLE_ERROR:
            self.waiting.clear()
            self.call = self.manager.abort_transaction()
        elif not self.waiting and self.random.random() < 0.2:
            is_commit = self.random.random() < 0.7 or self.now_ms > LAST_MS
            self.call = self.manager.commit_transaction() if is_commit else self.manager.abort_transaction()
            self.accumulator.close_open()
        else:
            self.produce(self.random.randrange(len(self.partitions)), self.numbers)
        self.after(self.random.choice((1, 5, 20, 100)), self.step)

    def learn(self, call: TxnCall) -> None:
        self.manager.acknowledged(call)
        self.call = None
        self.counts[f"{call.operation.value} {'well' if call.error is None else 'badly'}"] += 1
        if call.operation.value == "commit_transaction" and call.error is None:
            self.ends[-1] = True
        elif call.operation.value == "abort_transaction":
            self.ends[-1] = False

    def append(self, partition: int, number: int) -> bool:
        try:
            self.manager.use_partition(("t", partition))
        except (TransactionError, IllegalTransactionCall):
            # It is not sent at all.
            return True
        if not super().append(partition, number):
            return False
        self.of_record[partition, number] = len(self.transactions) - 1
        self.transactions[-1].add((partition, number))
        return True

    # The coordinator.

    def tick(self) -> None:
        super().tick()
        validate(self.manager)

    def carry_out(self, action: Action) -> None:
        if isinstance(action, SendTxnRequest):
            self.ask(action)
        elif not isinstance(action, FinishTxnCall):
            super().carry_out(action)

    def ask(self, action: SendTxnRequest) -> None:
        lost = TxnAnswer(ErrorCode.NETWORK_EXCEPTION)
        fate = self.random.choice(["before", "after", "not now"]) if self.strikes("transaction") else "well"

        def arrive() -> None:
            answer = TxnAnswer(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) if fate == "not now" else lost
            if fate in ("well", "after"):
                taken = self.coordinator.take(action.request)
                answer = lost if fate == "after" else taken
            self.after(self.random.randint(1, 5), lambda: self.manager.answered(action.request_id, answer, self.now_ms))

        self.after(self.random.randint(1, 5), arrive)

    def send(self, request: SendProduce) -> None:
        for batch in request.batches:
            if batch.partition not in self.coordinator.open:
                raise Violation(f"{batch!r} is sent before its partition is in the transaction")
        super().send(request)

    def store(self, node: int, sent: Sequence[Sent]) -> dict[int, ErrorCode | Appended]:
        """As far as it is in the transaction that is open."""
        begun: dict[int, ErrorCode | Appended] = {}
        for each in sent:
            header = parse_header(each.data)
            is_current = (header.producer_id, header.producer_epoch) == (
                self.coordinator.producer_id,
                self.coordinator.epoch,
            )
            if not header.is_transactional:
                raise Violation("a batch that is in no transaction")
            if each.partition not in self.coordinator.open or not is_current:
                self.counts["refused by its transaction"] += 1
                begun[each.partition] = ErrorCode.INVALID_TXN_STATE
                continue
            before = len(self.partitions[each.partition].log)
            begun.update(super().store(node, [each]))
            of = {self.of_record[each.partition, value] for value in values_of(each.data)}
            if len(self.partitions[each.partition].log) > before and of != {len(self.transactions) - 1}:
                raise Violation(f"records of {of} are stored in transaction {len(self.transactions) - 1}")
        return begun

    # The judgment.

    def judge(self, numbers: Sequence[int]) -> None:
        if not self.ends[-1]:
            raise Violation(f"the last transaction did not commit: {self.manager!r}")
        stored = {
            (partition, value)
            for partition, each in enumerate(self.partitions)
            for entry in each.log
            for value in entry.values
        }
        for number, (records, is_committed) in enumerate(zip(self.transactions, self.ends, strict=True)):
            if is_committed and not records <= stored:
                raise Violation(f"transaction {number} is committed without {records - stored}")
        for key in self.of_record:
            values = self.values(key[0])
            self.judge_record(key, values, values.count(key[1]), is_last=False)
        for partition in range(len(numbers)):
            if self.values(partition) != sorted(self.values(partition)):
                raise Violation(f"partition {partition} is out of order: {self.values(partition)}")
        if self.free != self.capacity:
            raise Violation(f"{self.capacity - self.free} bytes of memory were not given back")

    def values(self, partition: int) -> list[int]:
        return [value for entry in self.partitions[partition].log for value in entry.values]
