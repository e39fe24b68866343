"""A transactional producer on a bench: what it does is played by hand, and its invariants are checked at each step."""

from __future__ import annotations

from cluster.client.committed_offset import OffsetAndMetadata
from cluster.client.group_metadata import ConsumerGroupMetadata
from cluster.client.producer.actions import WakeAt
from cluster.client.producer.transaction.invariants import TxnSnapshot, validate, validate_successor
from cluster.client.producer.transaction.manager import TransactionManager
from cluster.client.producer.transaction.states import TxnProducerState
from cluster.client.producer.transaction.txn_actions import DropBatches, FinishTxnCall, SendTxnRequest, UseTxnIdentity
from cluster.client.producer.transaction.txn_requests import (
    AddTxnOffsets,
    AddTxnPartitions,
    CommitTxnOffsets,
    CoordinatorKey,
    CoordinatorKind,
    EndTransaction,
    FindTxnCoordinator,
    InitTxnProducerId,
    TxnAnswer,
    TxnIdentity,
)
from cluster.protocol.errors import ErrorCode

E = ErrorCode
S = TxnProducerState
ID = "id"
BACKOFF_MS = 100
TIMEOUT_MS = 60_000
T0, T1, U0 = ("t", 0), ("t", 1), ("u", 0)
PID, EPOCH = 7, 3
ME = TxnIdentity(ID, PID, EPOCH)
NODE, GROUP_NODE = 1, 2
TXN_KEY = CoordinatorKey(CoordinatorKind.TRANSACTION, ID)
GROUP = ConsumerGroupMetadata("group", 5, "member")
GROUP_KEY = CoordinatorKey(CoordinatorKind.GROUP, "group")
OFFSETS = {T0: OffsetAndMetadata(10), T1: OffsetAndMetadata(20)}
OK = TxnAnswer()


class Checked:
    """A manager whose invariants are checked after each call, also one that is refused."""

    def __init__(self, manager: TransactionManager) -> None:
        self._manager = manager
        self._before = TxnSnapshot.of(manager)

    def __getattr__(self, name):
        found = getattr(self._manager, name)
        return self._checked(found) if callable(found) else found

    def _checked(self, method):
        def call(*args, **named):
            try:
                return method(*args, **named)
            finally:
                validate(self._manager)
                after = TxnSnapshot.of(self._manager)
                validate_successor(self._before, after)
                self._before = after

        return call


class Bench:
    """``has_batches``: the accumulator has one without an outcome."""

    def __init__(self, *, can_bump_epoch: bool = True) -> None:
        self.manager = Checked(TransactionManager(ID, TIMEOUT_MS, lambda failures: BACKOFF_MS))
        self.manager.coordinator_ready(can_bump_epoch=can_bump_epoch)
        self.now_ms = 0
        self.has_batches = False
        self.flying: SendTxnRequest | None = None
        self.finished: list = []
        self.dropped: list[DropBatches] = []
        self.identities: list[UseTxnIdentity] = []
        self.wake_at_ms: int | None = None

    @property
    def state(self) -> TxnProducerState:
        return self.manager.state

    def tick(self):
        """What is sent, if anything."""
        self.wake_at_ms = None
        sent = None
        for action in self.manager.tick(self.now_ms, has_incomplete_batches=self.has_batches):
            if isinstance(action, SendTxnRequest):
                assert self.flying is None
                self.flying = sent = action
            elif isinstance(action, FinishTxnCall):
                self.finished.append(action.call)
            elif isinstance(action, DropBatches):
                self.dropped.append(action)
            elif isinstance(action, UseTxnIdentity):
                self.identities.append(action)
            elif isinstance(action, WakeAt):
                self.wake_at_ms = action.at_ms
        return None if sent is None else sent.request

    def later(self, pause_ms: int = BACKOFF_MS):
        self.now_ms += pause_ms
        return self.tick()

    def answer(self, answer: TxnAnswer | ErrorCode = OK):
        """The request in flight has ended; what is sent next."""
        assert self.flying is not None
        flying, self.flying = self.flying, None
        if isinstance(answer, ErrorCode):
            answer = TxnAnswer(answer)
        self.manager.answered(flying.request_id, answer, self.now_ms)
        return self.tick()

    def succeed(self):
        """The request in flight succeeds."""
        request = self.flying.request
        if isinstance(request, FindTxnCoordinator):
            node = NODE if request.key.kind is CoordinatorKind.TRANSACTION else GROUP_NODE
            return self.answer(TxnAnswer(node=node))
        if isinstance(request, InitTxnProducerId):
            bumped = request.identity.producer_epoch + 1 if request.is_epoch_bump else EPOCH
            return self.answer(TxnAnswer(producer_id=PID, producer_epoch=bumped))
        return self.answer()

    def succeed_all(self) -> list:
        """Everything that is sent succeeds; the requests."""
        sent = [] if self.flying is None else [self.flying.request]
        while self.flying is not None:
            request = self.succeed()
            if request is not None:
                sent.append(request)
        return sent

    def start(self):
        """An id is there."""
        call = self.manager.init_transactions()
        self.tick()
        self.succeed_all()
        assert call.is_done and call.error is None
        self.manager.acknowledged(call)
        return self

    def begin(self, *partitions):
        """A transaction with these partitions, which are added."""
        self.start()
        self.manager.begin_transaction()
        for each in partitions:
            self.manager.use_partition(each)
        self.tick()
        self.succeed_all()
        return self


#: Each kind of request, in flight: how it comes about on a bench, and the call that waits for it, if one does.
def flying_find():
    bench = Bench()
    call = bench.manager.init_transactions()
    bench.tick()
    return bench, call


def flying_init():
    bench, call = flying_find()
    bench.succeed()
    return bench, call


def flying_add():
    bench = Bench().begin()
    bench.manager.use_partition(T0)
    bench.tick()
    return bench, None


def flying_offsets():
    bench = Bench().begin()
    call = bench.manager.send_offsets_to_transaction(OFFSETS, GROUP)
    bench.tick()
    return bench, call


def flying_find_group():
    bench, call = flying_offsets()
    bench.succeed()
    return bench, call


def flying_commit_offsets():
    bench, call = flying_find_group()
    bench.succeed()
    return bench, call


def flying_end():
    bench = Bench().begin(T0)
    call = bench.manager.commit_transaction()
    bench.tick()
    return bench, call


def flying_abort():
    bench = Bench().begin(T0)
    call = bench.manager.abort_transaction()
    bench.tick()
    return bench, call


def flying_bump():
    bench = Bench().begin(T0)
    bench.manager.batch_failed(E.REQUEST_TIMED_OUT, was_numbered=True)
    call = bench.manager.abort_transaction()
    bench.tick()
    bench.succeed()
    return bench, call


FLYING = {
    "find": (flying_find, FindTxnCoordinator),
    "find group": (flying_find_group, FindTxnCoordinator),
    "init": (flying_init, InitTxnProducerId),
    "bump": (flying_bump, InitTxnProducerId),
    "add": (flying_add, AddTxnPartitions),
    "offsets": (flying_offsets, AddTxnOffsets),
    "commit offsets": (flying_commit_offsets, CommitTxnOffsets),
    "commit": (flying_end, EndTransaction),
    "abort": (flying_abort, EndTransaction),
}
