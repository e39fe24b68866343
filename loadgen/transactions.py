"""A transactional producer of the load: several streams, and one transaction at a time.

Owns the life of its transactions, and what the history says about them (docs/history.md "Transactions"). Replaces an
instance that was fenced or failed for good with one that has the same ``transactional.id``, whose initialization aborts
what the other left open. Nothing here waits: ``call`` does the work that may take time. Does not own pacing, or what a
stream writes (``loadgen.stream``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

from cluster.seams.clock import Clock
from loadgen.clients.base import ClientCallbacks, ProducerClient, ignore
from loadgen.clients.transactional import (
    Remedy,
    SharedClient,
    StreamPart,
    TransactionalClient,
    TransactionalFactory,
    TransactionRefusal,
)
from loadgen.recorder import Recorder
from loadgen.stream import ProducerStream
from verifier.evidence.history import HistoryOutcome, HistoryRow

logger = logging.getLogger(__name__)

#: Does blocking work; returns its refusal, or None.
Call = Callable[[bool, Callable[[], None]], TransactionRefusal | None]
#: Makes a stream from its number, its factory of clients, and a function that disposes of a client.
StreamFactory = Callable[
    [int, Callable[[ClientCallbacks], ProducerClient], Callable[[ProducerClient], None]], ProducerStream
]
Ending = Literal["commit", "abort"]


class TransactionalProducer:
    """One producer with a ``transactional.id``. ``make_stream`` makes its streams, whose numbers are in ``streams``.

    ``is_over`` gets the time in ns when a call began, and returns whether it was repeated for long enough.
    """

    def __init__(
        self,
        *,
        streams: Sequence[int],
        make_stream: StreamFactory,
        make_client: TransactionalFactory,
        dispose: Callable[[ProducerClient], None],
        recorder: Recorder,
        clock: Clock,
        call: Call,
        is_over: Callable[[int], bool],
    ) -> None:
        self._make_client = make_client
        self._dispose = dispose
        self._recorder = recorder
        self._clock = clock
        self._call = call
        self._is_over = is_over
        self._width = len(streams)
        self._shared = SharedClient(0, self._width, make_client, dispose)
        #: stream -> the instance that it uses
        self._attached: dict[int, SharedClient] = {}
        self._is_initialized = False
        #: the producers that have taken over, until they are disposed of
        self._usurpers: list[TransactionalClient] = []
        #: the instance and the number of the open transaction
        self._open: tuple[SharedClient, int] | None = None
        self.streams: Sequence[ProducerStream] = [
            make_stream(number, partial(self._new_part, at), _release) for at, number in enumerate(streams)
        ]

    @property
    def is_open(self) -> bool:
        """Whether a transaction is open. Abandons one whose instance has failed."""
        if self._open is not None and self._open[0].is_failed:
            self._abandon("its producer failed")
        return self._open is not None

    @property
    def is_doomed(self) -> bool:
        """Whether the open transaction can only be aborted."""
        return self._open is not None and self._open[0].doomed is not None

    @property
    def instance(self) -> int:
        """The number of the current instance, from 0."""
        return self._shared.number

    @property
    def outstanding(self) -> int:
        """The number of records without an outcome yet."""
        return sum(stream.outstanding for stream in self.streams)

    def is_ready(self) -> bool:
        """Whether a transaction can begin. Initializes a new instance first, which may take time."""
        shared = self._shared
        if shared.is_failed or self.outstanding or any(self._attached[each] is not shared for each in self._attached):
            return False
        if self._is_initialized:
            return True
        refusal = self._call(shared.client.is_cooperative, shared.client.initialize)
        if refusal is None:
            self._is_initialized = shared is self._shared
        elif refusal.remedy is Remedy.REPLACE:
            shared.fail(f"initialization: {refusal}")
        else:
            self._recorder.error(f"initialization: {refusal}", who=self.streams[0].identity)
        return False

    def begin(self) -> bool:
        """Begin a transaction. False if the instance turns out to have failed."""
        self._level()
        shared, invoke_ns = self._shared, self._clock.monotonic_ns()
        try:
            shared.client.begin()
        except TransactionRefusal as refusal:
            shared.fail(f"begin: {refusal}")
            return False
        shared.doomed = None
        op = self._recorder.next_op()
        self._open = shared, op
        for stream in self.streams:
            stream.op = op
        self._write("begin", "ok", invoke_ns, None)
        return True

    def take_over(self, *, occupies: bool = False) -> None:
        """Have another producer take the ``transactional.id``, so that this one becomes a zombie without knowing it.

        The other producer writes nothing; its initialization aborts the open transaction of this one. ``occupies``: it
        keeps a transaction of its own open until this one has ended.
        """
        if self._open is None:
            return
        shared, since_ns = self._open[0], self._clock.monotonic_ns()
        other = self._make_client(ClientCallbacks(lambda *_: None, ignore, lambda *_: None))
        refusal = self._call(other.is_cooperative, other.initialize)
        while refusal is not None and refusal.remedy is Remedy.REPEAT and not self._is_over(since_ns):
            refusal = self._call(other.is_cooperative, other.initialize)
        if occupies and refusal is None:
            refusal = self._call(other.is_cooperative, partial(_occupy, other, self.streams[0].identity.topic))
        told = "" if refusal is None else f", which failed: {refusal}"
        self._recorder.note(
            f"another producer takes over from instance {shared.number}{told}", who=self.streams[0].identity
        )
        self._usurpers.append(other)
        if not occupies:
            self._dispose_of_usurpers()

    def end(self, end: Ending) -> None:
        """End the transaction. If it cannot be committed, abort it; if it cannot be aborted, abandon it."""
        try:
            self._end(end)
        finally:
            self._dispose_of_usurpers()

    def _dispose_of_usurpers(self) -> None:
        while self._usurpers:
            self._dispose(self._usurpers.pop())

    def _end(self, end: Ending) -> None:
        if end == "commit" and self.is_open and not self.is_doomed:
            refusal = self._finish("commit")
            if refusal is None or refusal.remedy is not Remedy.ABORT:
                return
        if self.is_open:
            self._finish("abort")

    def _finish(self, end: Ending) -> TransactionRefusal | None:
        """Repeat the call that ends the transaction until it has an outcome, or until ``is_over``."""
        if self._open is None:
            return None
        (shared, _), invoke_ns = self._open, self._clock.monotonic_ns()
        client = shared.client
        work = client.commit if end == "commit" else client.abort
        refusal = self._call(client.is_cooperative, work)
        while refusal is not None and refusal.remedy is Remedy.REPEAT and not self._is_over(invoke_ns):
            refusal = self._call(client.is_cooperative, work)
        outcome: HistoryOutcome = "ok" if refusal is None else "fail" if refusal.is_certain else "info"
        self._write(end, outcome, invoke_ns, None if refusal is None else str(refusal))
        if refusal is None:
            self._open = None
        elif end == "abort" or refusal.remedy is not Remedy.ABORT:
            shared.fail(str(refusal))
            self._abandon(str(refusal))
        return refusal

    def _abandon(self, reason: str) -> None:
        """Leave the open transaction to the initialization of the next instance, or to its timeout."""
        self._write("abort", "info", self._clock.monotonic_ns(), f"abandoned: {reason}")
        self._open = None

    def _level(self) -> None:
        """Bring all streams to the same sequence, by skipping the records that some of them lack."""
        furthest = max(stream.next_sequence for stream in self.streams)
        for stream in self.streams:
            stream.skip_to(furthest)

    def _new_part(self, at: int, callbacks: ClientCallbacks) -> ProducerClient:
        if self._shared.is_failed:
            self._shared = SharedClient(self._shared.number + 1, self._width, self._make_client, self._dispose)
            self._is_initialized = False
        self._attached[at] = self._shared
        return self._shared.part(at, callbacks)

    def _write(
        self, f: Literal["begin", "commit", "abort"], outcome: HistoryOutcome, invoke_ns: int, error: str | None
    ) -> None:
        if self._open is None:
            return
        (shared, op), now_ns = self._open, self._clock.monotonic_ns()
        row = HistoryRow(f, outcome, invoke_ns=invoke_ns, complete_ns=now_ns, error=error, op=op)
        self._recorder.history.append(
            row._replace(
                producer_id=shared.producer_id, producer_epoch=shared.producer_epoch, incarnation=shared.number
            )
        )
        if error is not None:
            logger.info("%s of transaction %d: %s: %s", f, op, outcome, error)

    def __repr__(self) -> str:
        return f"TransactionalProducer({len(self.streams)} streams, open={self._open is not None}, {self._shared})"


def _occupy(client: TransactionalClient, topic: str) -> None:
    client.begin()
    client.occupy(topic)


def _release(part: ProducerClient) -> None:
    if isinstance(part, StreamPart):
        part.shared.release()
