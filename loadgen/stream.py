"""One stream: a logical producer on one partition, which uses as many producer instances as necessary.

Owns the sequences (from 0, without gaps at the source), their reservation, which records are outstanding, and
incarnations. Does not own pacing, the client, or threads: nothing here blocks, and one thread, or the greenlets of one
hub, call ``send`` and ``poll``.

Before a new instance starts, one that failed for good is purged, and polled until it has reported all outcomes or a
second has passed; records that are still outstanding become ``info``. For every client, the same table decides which
outcome a failure's code allows (``outcomes.recorded_outcome``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from cluster.client.producer.outcomes import recorded_outcome
from cluster.seams.clock import Clock
from loadgen.clients.base import ClientCallbacks, ClientRefusal, Failure, ProducerClient, ProducerFactory, Retried
from loadgen.recorder import Recorder, StreamIdentity
from loadgen.records import StreamRecords
from loadgen.spans import Delivery, OffsetTrust, SentSpan, coalesce_deliveries, ranges

logger = logging.getLogger(__name__)

RETIRE_NS = 1_000_000_000


@dataclass(slots=True)
class Incarnation:
    """One producer instance. Its callbacks write only here, so that late ones cannot affect its successor."""

    number: int
    trust: OffsetTrust
    client: ProducerClient | None = None
    reports: list[tuple[int, Failure | None, int | None]] = field(default_factory=list)
    errors: list[Failure] = field(default_factory=list)
    identity: tuple[int, int] = (-1, -1)
    recorded_identity: tuple[int, int] = (-1, -1)
    fatal: str | None = None
    retire_by_ns: int | None = None

    def on_delivery(self, sequence: int, failure: Failure | None, offset: int | None) -> None:
        self.reports.append((sequence, failure, offset))

    def on_identity(self, producer_id: int, producer_epoch: int) -> None:
        self.identity = (producer_id, producer_epoch)


class ProducerStream:
    """Sends the sequence of one stream and records what became of it.

    ``make_client`` makes one producer instance; ``dispose`` gets rid of one without blocking the caller.
    """

    def __init__(
        self,
        *,
        stream: int,
        topic: str,
        partition: int,
        records: StreamRecords,
        recorder: Recorder,
        clock: Clock,
        make_client: ProducerFactory,
        dispose: Callable[[ProducerClient], None],
        acks: str = "all",
        reserve_sequences: int = 4096,
    ) -> None:
        self._stream, self._topic, self._partition = stream, topic, partition
        self._records = records
        self._recorder = recorder
        self._clock = clock
        self._make_client = make_client
        self._dispose = dispose
        self._acks = acks
        self._reserve_sequences = reserve_sequences
        self._next_sequence = 0
        self._reserved_to = 0
        self._outstanding: dict[int, int] = {}  # sequence -> intended time
        self._closed = False
        #: the number of the current transaction; -1 outside of transactions
        self.op = -1
        self._current = self._new_incarnation(0)

    @property
    def number(self) -> int:
        """The stream's number, which is unique in the run."""
        return self._stream

    @property
    def identity(self) -> StreamIdentity:
        """What the next records belong to."""
        current = self._current
        return StreamIdentity(
            self._topic, self._partition, self._stream, current.number, *current.recorded_identity, self.op
        )

    @property
    def outstanding(self) -> int:
        """The number of records that were handed to the client and have no outcome yet."""
        return len(self._outstanding)

    @property
    def next_sequence(self) -> int:
        return self._next_sequence

    @property
    def incarnation(self) -> int:
        return self._current.number

    @property
    def closed(self) -> bool:
        return self._closed

    def send(self, intended_ns: int) -> bool:
        """Hand the next record to the client. False if it cannot take it now; the next call tries the same sequence."""
        current = self._current
        if self._closed or current.client is None or current.fatal is not None:
            return False
        sequence = self._next_sequence
        self._reserve(sequence)
        key, value = self._records.key(sequence), self._records.value(sequence, intended_ns)
        try:
            current.client.produce(self._topic, self._partition, key, value, sequence)
        except BufferError:
            return False
        except ClientRefusal as refusal:
            self._refused(refusal.failure)
            return False
        self._outstanding[sequence] = intended_ns
        self._next_sequence = sequence + 1
        return True

    def skip_to(self, sequence: int) -> None:
        """Continue with ``sequence``; earlier sequences are never sent."""
        if sequence > self._next_sequence:
            self._reserve(sequence - 1)
            self._recorder.never_sent(self.identity, self._next_sequence, sequence - 1)
            self._next_sequence = sequence

    def _reserve(self, sequence: int) -> None:
        if sequence >= self._reserved_to:
            last = max(sequence, self._reserved_to + self._reserve_sequences - 1)
            self._recorder.reserve(self.identity, self._reserved_to, last)
            self._reserved_to = last + 1

    def poll(self) -> None:
        """Record what the client reports, and replace an instance that failed for good."""
        current = self._current
        if current.client is None:
            return
        current.client.poll()
        self._collect()
        if current.fatal is None:
            return
        now_ns = self._clock.monotonic_ns()
        if current.retire_by_ns is None:
            self._begin_retirement(current, now_ns)
        elif not self._outstanding or now_ns >= current.retire_by_ns:
            self._give_up_outstanding(f"outstanding at a fatal error: {current.fatal}")
            self._dispose(current.client)
            self._current = self._new_incarnation(current.number + 1)

    def close(self) -> None:
        """End the stream: outstanding records become ``info``, reserved ones that were never sent ``fail``.

        A second call does nothing. The caller waits beforehand for as long as it cares to (``outstanding``).
        """
        if self._closed:
            return
        self._closed = True
        current = self._current
        if current.client is not None:
            current.client.poll()
            self._collect()
            self._give_up_outstanding("outstanding when the producer was closed")
            self._dispose(current.client)
            current.client = None
        if self._next_sequence < self._reserved_to:
            self._recorder.never_sent(self.identity, self._next_sequence, self._reserved_to - 1)

    def _new_incarnation(self, number: int) -> Incarnation:
        current = Incarnation(number, OffsetTrust(acknowledged=self._acks != "0"))
        current.client = self._make_client(
            ClientCallbacks(
                current.on_delivery,
                current.errors.append,
                current.on_identity,
                partial(self._retried, current),
                partial(self._disconnected, current),
            )
        )
        self._current = current
        self._recorder.incarnation(self.identity, self._next_sequence, known=False)
        return current

    def _retried(self, incarnation: Incarnation, told: Retried) -> None:
        """Record that the client resends these sequences or, if it does not say which, all that it may resend.

        Deliveries that were reported before it are collected when the poll is over: their sequences still count as
        outstanding here, and the range is too wide by them, never too narrow.
        """
        if incarnation is not self._current or not self._outstanding:
            return
        first = min(self._outstanding) if told.first is None else told.first
        last = self._next_sequence - 1 if told.last is None else told.last
        self._recorder.retried(
            self.identity, first, last, self._outstanding_since(first), told.records, f"retry: {told.reason}"
        )

    def _disconnected(self, incarnation: Incarnation, reason: str, connections: int) -> None:
        if incarnation is not self._current:
            return
        first = min(self._outstanding, default=-1)
        last = max(self._outstanding, default=-1)
        since_ns = self._outstanding_since(first)
        self._recorder.disconnected(self.identity, first, last, since_ns, connections, f"disconnect: {reason}")

    def _outstanding_since(self, sequence: int) -> int:
        return self._outstanding.get(sequence, self._clock.monotonic_ns())

    def _collect(self) -> None:
        """Record the identity, the errors and the deliveries from the last poll."""
        current = self._current
        if current.identity != current.recorded_identity:
            current.recorded_identity = current.identity
            self._recorder.incarnation(self.identity, self._next_sequence, known=True)
        if current.errors:
            errors, current.errors[:] = list(current.errors), []
            for error in errors:
                self._recorder.error(error.text, who=self.identity)
                if error.is_fatal:
                    self._failed_for_good(error.text)
        if current.reports:
            reports, current.reports = current.reports, []
            spans = coalesce_deliveries(self._deliveries(reports), current.trust)
            self._recorder.sent(self.identity, spans, self._records.size_bytes, self._acks)

    def _deliveries(self, reports: list[tuple[int, Failure | None, int | None]]) -> list[Delivery]:
        deliveries: list[Delivery] = []
        for sequence, failure, offset in reports:
            intended_ns = self._outstanding.pop(sequence, None)
            if intended_ns is None:
                # a second report, or one about a record that the client never got: the first report counts
                self._recorder.error(f"delivery report of sequence {sequence}, not outstanding", who=self.identity)
                continue
            if failure is None:
                deliveries.append(Delivery(sequence, intended_ns, -1 if offset is None else offset, None))
                continue
            is_refused = recorded_outcome(failure.code) == "fail"
            deliveries.append(Delivery(sequence, intended_ns, -1, failure.text, is_refused))
            if failure.is_fatal:
                self._failed_for_good(failure.text)
        return deliveries

    def _refused(self, failure: Failure) -> None:
        """Handle a refusal by the client, which did not queue the record."""
        self._recorder.error(f"not queued: {failure.text}", who=self.identity)
        if failure.is_fatal:
            self._failed_for_good(failure.text)

    def _failed_for_good(self, reason: str) -> None:
        if self._current.fatal is not None:
            return
        self._current.fatal = reason
        self._recorder.tally.count("fatal")
        self._recorder.note(f"fatal: {reason}", who=self.identity)
        logger.warning("stream %d: incarnation %d failed: %s", self._stream, self._current.number, reason)

    def _begin_retirement(self, current: Incarnation, now_ns: int) -> None:
        current.retire_by_ns = now_ns + RETIRE_NS
        if current.client is not None:
            current.client.purge()

    def _give_up_outstanding(self, reason: str) -> None:
        outstanding, self._outstanding = self._outstanding, {}
        spans = []
        for first, last in ranges(sorted(outstanding)):
            spans.append(SentSpan(first, -1, reason, [outstanding[each] for each in range(first, last + 1)]))
        self._recorder.sent(self.identity, spans, self._records.size_bytes, self._acks)

    def __repr__(self) -> str:
        return (
            f"ProducerStream({self._stream}, partition={self._partition}, next={self._next_sequence}, "
            f"outstanding={len(self._outstanding)}, incarnation={self._current.number})"
        )
