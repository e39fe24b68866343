"""A transactional producer whose last record arrives after its transaction has ended.

No real client does this on purpose, but a network can cause it. A broker must refuse a record that arrives after the
marker of its transaction in the same epoch: otherwise the record would open a transaction that no one ends, or become
part of the next one (KIP-890). The outcome of such a record always counts as unknown. Does not own the requests
(``single_requests``).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Coroutine
from typing import NamedTuple, TypeVar

from cluster.client.errors import AdminError
from cluster.client.loop_thread import LoopThread
from cluster.protocol.errors import ErrorCode
from cluster.protocol.records import NewRecord, build_batch
from cluster.seams.asyncio_transport import AsyncioTransport
from cluster.seams.clock import Clock
from loadgen.clients.base import ClientCallbacks, Failure, first_line
from loadgen.clients.single_requests import SingleRequests
from loadgen.clients.transaction_keys import CALL_MS, TRANSACTION_TIMEOUT_MS
from loadgen.clients.transactional import Remedy, TransactionalFactory, TransactionRefusal

T = TypeVar("T")


def late_factory(bootstrap: str, transactional_id: str, clock: Clock) -> TransactionalFactory:
    """A factory for the instances of one late producer, with any ``--client``."""
    brokers = bootstrap.split(",")

    def make(callbacks: ClientCallbacks) -> LateProducer:
        transport = AsyncioTransport()
        requests = SingleRequests(brokers, transport, clock, CALL_MS, transactional_id=transactional_id)
        return LateProducer(requests, callbacks, clock)

    return make


class _Queued(NamedTuple):
    topic: str
    partition: int
    key: bytes | None
    value: bytes
    sequence: int


class LateProducer:
    """``TransactionalClient`` that sends its records when the transaction ends, and the last record after the end."""

    is_cooperative = True

    def __init__(self, requests: SingleRequests, callbacks: ClientCallbacks, clock: Clock) -> None:
        self._callbacks = callbacks
        self._clock = clock
        self._requests = requests
        self._thread = LoopThread.join()
        self._is_closed = False
        self._identity = (-1, -1)
        self._queue: list[_Queued] = []
        self._done: deque[tuple[int, Failure | None, int]] = deque()
        #: By partition: the sequence that its leader expects next.
        self._following: dict[tuple[str, int], int] = defaultdict(int)

    def produce(self, topic: str, partition: int, key: bytes | None, value: bytes, sequence: int) -> None:
        self._queue.append(_Queued(topic, partition, key, value, sequence))

    def poll(self) -> None:
        while self._done:
            self._callbacks.on_delivery(*self._done.popleft())

    def purge(self) -> None:
        """Fail the queued records, because the producer cannot continue. They were never sent, but count as unknown."""
        self._settle(Failure("purged"))

    def dispose(self, timeout_s: float) -> bool:
        if not self._is_closed:
            self._is_closed = True
            self._thread.wait(self._requests.close())
            self._thread.leave()
        return True

    def initialize(self) -> None:
        self._identity = self._called(self._requests.initialize(TRANSACTION_TIMEOUT_MS))
        self._callbacks.on_identity(*self._identity)

    def begin(self) -> None:
        """Do nothing: the coordinator learns about the transaction with the first record."""

    def occupy(self, topic: str) -> None:
        raise TransactionRefusal("a late producer takes no id over", Remedy.REPLACE, is_certain=True)

    def commit(self) -> None:
        self._called(self._ended(is_commit=True))

    def abort(self) -> None:
        self._called(self._ended(is_commit=False))

    async def _ended(self, *, is_commit: bool) -> None:
        if not self._queue:
            return
        await self._requests.add(self._identity, {(each.topic, each.partition) for each in self._queue})
        while len(self._queue) > 1:
            await self._append(self._queue[0])
            del self._queue[0]
        await self._requests.end(self._identity, is_commit=is_commit)
        # until its markers are written it would be one more record of the transaction, as any other
        await self._requests.until_complete()
        late = self._queue[0]
        try:
            await self._append(late)
        except AdminError as error:
            self._done.append((late.sequence, Failure(first_line(error)), -1))
        self._queue.clear()

    async def _append(self, record: _Queued) -> None:
        """Append a record. Raises ``AdminError`` if it is refused; the next record then gets its sequence."""
        place = (record.topic, record.partition)
        batch = build_batch(
            [NewRecord(self._clock.wall_ms(), record.key, record.value)],
            producer_id=self._identity[0],
            producer_epoch=self._identity[1],
            base_sequence=self._following[place],
            transactional=True,
        )
        try:
            offset = await self._requests.append(place, batch)
        except AdminError as error:
            if error.error_code is not ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                raise
            offset = -1
        self._following[place] += 1
        self._done.append((record.sequence, None, offset))

    def _called(self, call: Coroutine[object, object, T]) -> T:
        """The result of a call. Does not repeat a failed call, because then the right sequences would be unknown.

        Raises ``TransactionRefusal``.
        """
        try:
            return self._thread.wait(call)
        except (AdminError, OSError) as error:
            code = error.error_code if isinstance(error, AdminError) else ErrorCode.REQUEST_TIMED_OUT
            self._settle(Failure(first_line(error)))
            raise TransactionRefusal(f"{code.name}: {first_line(error)}", Remedy.REPLACE, is_certain=False) from error

    def _settle(self, failure: Failure) -> None:
        """Report this failure for all queued records, which will not be sent again."""
        while self._queue:
            self._done.append((self._queue.pop(0).sequence, failure, -1))

    def __repr__(self) -> str:
        return f"LateProducer({self._requests}, {len(self._queue)} queued)"
