"""A steady load of transactions whose commits are timed: one transactional producer, in a thread of its own.

Owns the thread, what follows a call that did not succeed (what the client asks for: ``loadgen.clients``), and when each
commit was acknowledged. Times are monotonic seconds of this process.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence

from cluster.seams.clock import SystemClock
from loadgen.clients import confluent_transactions, native_transactions
from loadgen.clients.base import ClientCallbacks, ClientRefusal
from loadgen.clients.transactional import Remedy, TransactionalClient, TransactionalFactory, TransactionRefusal
from loadgen.settings import CONFLUENT, NATIVE, ConfigValue

VALUE = b"v" * 100
FACTORIES: Mapping[str, Callable[..., TransactionalFactory]] = {
    NATIVE: native_transactions.transactional_factory,
    CONFLUENT: confluent_transactions.transactional_factory,
}
#: Of the clients, for their end.
DISPOSE_S = 5.0
#: Before a record that a client had no room for is offered again.
PAUSE_S = 0.01


class CommitLoad:
    """Transactions of one record for each of some partitions, at a fixed rate."""

    def __init__(
        self,
        client: str,
        bootstrap: str,
        transactional_id: str,
        given: Mapping[str, ConfigValue],
        topic: str,
        partitions: Sequence[int],
        interval_s: float,
    ) -> None:
        self.client = client
        self.transactional_id = transactional_id
        #: When each commit was acknowledged, ascending.
        self.committed_s: list[float] = []
        #: What did not succeed, with its time.
        self.refusals: list[tuple[float, str]] = []
        self.replaced = 0
        self._make = FACTORIES[client](bootstrap, transactional_id, given, SystemClock())
        self._topic = topic
        self._partitions = partitions
        self._interval_s = interval_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=transactional_id, daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"<CommitLoad {self.client} {self.transactional_id}: {len(self.committed_s)} commits>"

    def longest_gap_s(self, from_s: float) -> float | None:
        """The longest time between two commits of which the later came at ``from_s`` or after; None if none came."""
        times = self.committed_s
        gaps = [times[at] - times[at - 1] for at in range(1, len(times)) if times[at] >= from_s]
        return max(gaps, default=None)

    def committed_since(self, since_s: float) -> int:
        return sum(when >= since_s for when in self.committed_s[-20:])

    def close(self, timeout_s: float = 30.0) -> None:
        """End it after the transaction that is open."""
        self._stop.set()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        due = time.monotonic()
        producer: TransactionalClient | None = None
        while not self._stop.is_set():
            try:
                if producer is None:
                    producer = self._make(ClientCallbacks(_ignore, _ignore, _ignore))
                    self._repeated(producer.initialize)
                self._transaction(producer)
            except TransactionRefusal:
                if producer is not None:
                    producer.dispose(DISPOSE_S)
                producer = None
                self.replaced += not self._stop.is_set()
            due = max(due + self._interval_s, time.monotonic())
            self._stop.wait(due - time.monotonic())
        if producer is not None:
            producer.dispose(DISPOSE_S)

    def _transaction(self, producer: TransactionalClient) -> None:
        """One, committed, or aborted where the client asks for it. Raises ``TransactionRefusal`` for a new client."""
        try:
            producer.begin()
            for partition in self._partitions:
                self._produce(producer, partition)
            self._repeated(producer.commit)
        except TransactionRefusal as refusal:
            if refusal.remedy is not Remedy.ABORT:
                raise
            self._repeated(producer.abort)
        else:
            self.committed_s.append(time.monotonic())
        producer.poll()

    def _repeated(self, call: Callable[[], None]) -> None:
        """Make a call as often as the client asks for it; what else it asks for is raised."""
        while True:
            try:
                return call()
            except TransactionRefusal as refusal:
                self.refusals.append((time.monotonic(), str(refusal)))
                if refusal.remedy is not Remedy.REPEAT or self._stop.is_set():
                    raise

    def _produce(self, producer: TransactionalClient, partition: int) -> None:
        """Queue one record; a client that has no room yet, or no metadata, is asked again."""
        while True:
            try:
                return producer.produce(self._topic, partition, None, VALUE, 0)
            except BufferError:
                self._stop.wait(PAUSE_S)
            except ClientRefusal as refusal:
                self.refusals.append((time.monotonic(), str(refusal)))
                remedy = Remedy.REPLACE if refusal.failure.is_fatal else Remedy.ABORT
                raise TransactionRefusal(str(refusal), remedy, is_certain=True) from refusal


def _ignore(*_told: object) -> None:
    """What records become is known by what their transactions do."""
