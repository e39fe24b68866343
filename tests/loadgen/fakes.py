"""Fakes of the clients' shapes, driven by the tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from loadgen.clients.base import ClientCallbacks, ClientError, DeliveryCallback, Polled, SentResult


@dataclass
class FakeError:
    """A KafkaError."""

    text: str = "_MSG_TIMED_OUT"
    is_fatal: bool = False

    def code(self) -> int:
        return -192

    def name(self) -> str:
        return self.text

    def fatal(self) -> bool:
        return self.is_fatal

    def str(self) -> str:
        return "told"


@dataclass
class FakeMessage:
    """A delivered Message."""

    _value: bytes
    _offset: int | None = None

    def value(self) -> bytes:
        return self._value

    def offset(self) -> int | None:
        return self._offset


@dataclass
class FakeProducer:
    """A producer whose deliveries the test decides: they come out of the next ``poll``."""

    callbacks: ClientCallbacks
    capacity: int = 10**9
    values: list[bytes] = field(default_factory=list)
    queue: list[tuple[bytes, DeliveryCallback]] = field(default_factory=list)
    ready: list[tuple[DeliveryCallback, ClientError | None, FakeMessage]] = field(default_factory=list)
    refuse: Exception | None = None
    purged: bool = False
    closed: bool = False

    def produce(self, topic: str, value: bytes, *, partition: int, on_delivery: DeliveryCallback) -> None:
        if self.refuse is not None:
            raise self.refuse
        if len(self.queue) >= self.capacity:
            raise BufferError("Local: Queue full")
        self.values.append(value)
        self.queue.append((value, on_delivery))

    def deliver(self, count: int, base_offset: int) -> None:
        """Acknowledge the oldest records with offsets from ``base_offset`` on."""
        for number, (value, callback) in enumerate(self._take(count)):
            self.ready.append((callback, None, FakeMessage(value, base_offset + number)))

    def fail(self, count: int, error: FakeError) -> None:
        for value, callback in self._take(count):
            self.ready.append((callback, error, FakeMessage(value, -1001)))

    def poll(self, timeout: float) -> int:
        ready, self.ready = self.ready, []
        for callback, error, message in ready:
            callback(error, message)
        return len(ready)

    def purge(self, *, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None:
        self.purged = True
        self.fail(len(self.queue), FakeError("_PURGE_QUEUE"))

    def close(self) -> bool:
        self.closed = True
        return True

    def __len__(self) -> int:
        return len(self.queue) + len(self.ready)

    def _take(self, count: int) -> list[tuple[bytes, DeliveryCallback]]:
        taken, self.queue[:count] = self.queue[:count], []
        return taken


@dataclass
class FakeReader:
    """A record reader that answers each poll with the next prepared result."""

    answers: list[Polled] = field(default_factory=list)
    assignments: list[dict[int, int]] = field(default_factory=list)
    closed: bool = False

    def assign(self, topic: str, offsets: Mapping[int, int]) -> None:
        self.assignments.append(dict(offsets))

    def poll(self, max_records: int, timeout_s: float) -> Polled:
        return self.answers.pop(0) if self.answers else Polled([], [], broken=False)

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
