"""Fakes of the clients' shapes, driven by the tests."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from cluster.protocol.errors import ErrorCode
from loadgen.clients.base import ClientCallbacks, Failure, PolledRecords, SentResult, Watermarks

TIMED_OUT = Failure("_MSG_TIMED_OUT: told", ErrorCode.REQUEST_TIMED_OUT)


@dataclass
class FakeProducer:
    """A producer whose deliveries the test decides: they come out of the next ``poll``."""

    callbacks: ClientCallbacks
    capacity: int = 10**9
    values: list[bytes] = field(default_factory=list)
    queue: list[int] = field(default_factory=list)
    ready: list[tuple[int, Failure | None, int | None]] = field(default_factory=list)
    refuse: Exception | None = None
    purged: bool = False
    disposed: bool = False
    is_cooperative: bool = True

    def produce(self, topic: str, partition: int, key: bytes | None, value: bytes, sequence: int) -> None:
        if self.refuse is not None:
            raise self.refuse
        if len(self.queue) >= self.capacity:
            raise BufferError("Local: Queue full")
        self.values.append(value)
        self.queue.append(sequence)

    def deliver(self, count: int, base_offset: int) -> None:
        """Acknowledge the oldest records with offsets from ``base_offset`` on."""
        for number, sequence in enumerate(self._take(count)):
            self.ready.append((sequence, None, base_offset + number))

    def fail(self, count: int, failure: Failure) -> None:
        for sequence in self._take(count):
            self.ready.append((sequence, failure, -1001))

    def poll(self) -> None:
        ready, self.ready = self.ready, []
        for report in ready:
            self.callbacks.on_delivery(*report)

    def purge(self) -> None:
        self.purged = True
        self.fail(len(self.queue), Failure("_PURGE_QUEUE: told", ErrorCode.REQUEST_TIMED_OUT))

    def dispose(self, timeout_s: float) -> bool:
        self.disposed = True
        return True

    def _take(self, count: int) -> list[int]:
        taken, self.queue[:count] = self.queue[:count], []
        return taken


@dataclass
class FakeReader:
    """A record reader that answers each poll with the next prepared result."""

    answers: list[PolledRecords] = field(default_factory=list)
    assignments: list[dict[int, int]] = field(default_factory=list)
    known: dict[int, Watermarks] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    closed: bool = False
    is_cooperative: bool = True

    def assign(self, topic: str, offsets: Mapping[int, int]) -> None:
        self.assignments.append(dict(offsets))

    def poll(self, max_records: int, timeout_s: float) -> PolledRecords:
        return self.answers.pop(0) if self.answers else PolledRecords([], [], broken=False)

    def watermarks(self, topic: str, partition: int) -> Watermarks:
        return self.known.get(partition, Watermarks())

    def end_offsets(self, topic: str, partitions: Collection[int], timeout_s: float) -> Mapping[int, int]:
        return {partition: self.ends[partition] for partition in partitions if partition in self.ends}

    def close(self) -> None:
        self.closed = True


@dataclass
class FakeSender:
    """A sentinel sender with a prepared answer per attempt; keeps what it was given."""

    answers: list[dict[int, SentResult]]
    sent: list[dict[int, bytes]] = field(default_factory=list)

    def send(self, topic: str, values: Mapping[int, bytes], timeout_s: float) -> dict[int, SentResult]:
        self.sent.append(dict(values))
        answer = self.answers.pop(0) if self.answers else {}
        return {partition: answer.get(partition, SentResult.unknown("no answer")) for partition in values}
