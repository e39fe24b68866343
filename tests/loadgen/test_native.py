"""Our own client behind the load: what it says becomes what the load records, and a send never waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from cluster.client.consumer.results import ConsumerRecord, OffsetOutOfRange
from cluster.client.producer.delivery import (
    BufferExhausted,
    DeliveryTimeout,
    FatalProducerError,
    ProduceError,
    RecordMetadata,
    RecordTooLarge,
    RetriedBatch,
)
from cluster.config.consumer import CONSUMER_KEYS
from cluster.config.producer import PRODUCER_KEYS
from cluster.protocol.errors import ErrorCode
from cluster.seams.clock import ManualClock
from loadgen.clients import native
from loadgen.clients.base import ClientCallbacks, ClientRefusal, Failure, ProducerClient, Retried
from loadgen.clients.librdkafka import consumer_config, producer_config
from loadgen.spans import ReadRecord

Report = Callable[[ProduceError | None, RecordMetadata], object]


class FakeProducer:
    """The library's producer; the test decides what becomes of each record."""

    def __init__(self, config: dict[str, Any], on_retry: Callable[[RetriedBatch], object]) -> None:
        self.config = config
        self.on_retry = on_retry
        self.disconnects = 0
        self.sent: list[tuple[bytes, bytes | None, int, Report]] = []
        self.refuse: ProduceError | None = None
        self.fatal_error: FatalProducerError | None = None
        self.identity = (-1, -1)
        self.closed_after_s: float | None = None

    def send(self, topic: str, value: bytes, key: bytes | None, partition: int, *, on_delivery: Report) -> None:
        if self.refuse is not None:
            on_delivery(self.refuse, RecordMetadata(topic, partition, -1, -1, -1, -1))
            return
        self.sent.append((value, key, partition, on_delivery))

    def done(self, error: ProduceError | None, offset: int = -1) -> None:
        """The oldest record's outcome, as from the library's own thread: outside of any send."""
        self.sent.pop(0)[3](error, RecordMetadata("t", 0, offset, 1, 1, 1))

    def metrics(self) -> dict[str, float]:
        return {"producer-id": self.identity[0], "producer-epoch": self.identity[1]}

    def close(self, timeout_s: float) -> None:
        self.closed_after_s = timeout_s


class Bench:
    """One adapter, and what it told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.deliveries: list[tuple[int, Failure | None, int | None]] = []
        self.errors: list[Failure] = []
        self.identities: list[tuple[int, int]] = []
        self.retries: list[Retried] = []
        self.disconnects: list[tuple[str, int]] = []
        self.clock = ManualClock()
        made: list[FakeProducer] = []

        def make(config: dict[str, Any], on_retry: Callable[[RetriedBatch], object]) -> FakeProducer:
            made.append(FakeProducer(config, on_retry))
            return made[-1]

        monkeypatch.setattr(native, "Producer", make)
        factory = native.producer_factory("h:1", "load-7", {"acks": "all"}, self.clock)
        self.adapter: ProducerClient = factory(
            ClientCallbacks(
                lambda *told: self.deliveries.append(told),
                self.errors.append,
                lambda *told: self.identities.append(told),
                self.retries.append,
                lambda *told: self.disconnects.append(told),
            )
        )
        (self.producer,) = made


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(monkeypatch)


def test_outcomes_come_out_of_poll(bench: Bench) -> None:
    """In the order in which the client told them, with the codes that say what may be claimed of a record."""
    for sequence in range(4):
        bench.adapter.produce("t", 3, b"k", b"v%d" % sequence, sequence)
    assert [each[:3] for each in bench.producer.sent] == [(b"v%d" % sequence, b"k", 3) for sequence in range(4)]
    bench.producer.done(None, 70)
    bench.producer.done(None, -1)
    bench.producer.done(DeliveryTimeout("too late"))
    bench.producer.done(ProduceError(ErrorCode.INVALID_RECORD, "no"))
    assert bench.deliveries == []
    bench.adapter.poll()
    assert bench.deliveries == [
        (0, None, 70),
        (1, None, -1),
        (2, Failure("REQUEST_TIMED_OUT: too late", ErrorCode.REQUEST_TIMED_OUT), -1),
        (3, Failure("INVALID_RECORD: no", ErrorCode.INVALID_RECORD), -1),
    ]
    bench.adapter.poll()
    assert len(bench.deliveries) == 4


def test_a_send_never_waits_and_says_what_was_not_taken(bench: Bench) -> None:
    """No room, or a topic not known yet: offered again. What can never be sent, and a fatal state, are refusals."""
    assert bench.producer.config["max.block.ms"] == 0
    for error in (BufferExhausted("full"), ProduceError(ErrorCode.REQUEST_TIMED_OUT, "not present in metadata")):
        bench.producer.refuse = error
        with pytest.raises(BufferError):
            bench.adapter.produce("t", 0, None, b"v", 5)
    for refusal, is_fatal in (
        (RecordTooLarge("9"), False),
        (FatalProducerError(ErrorCode.PRODUCER_FENCED, "other"), True),
    ):
        bench.producer.refuse = refusal
        with pytest.raises(ClientRefusal) as raised:
            bench.adapter.produce("t", 0, None, b"v", 5)
        assert raised.value.failure == Failure(str(refusal), refusal.error_code, is_fatal)
    bench.producer.refuse = None
    bench.adapter.produce("t", 0, None, b"v", 5)
    bench.adapter.poll()
    assert bench.deliveries == []


def test_identity_and_a_fatal_error_are_told(bench: Bench) -> None:
    """Four times a second; the fatal error once, also if no record was there to carry it."""
    bench.producer.identity = (4000, 2)
    bench.adapter.poll()
    assert bench.identities == []
    bench.clock.advance_ms(250)
    bench.adapter.poll()
    bench.producer.fatal_error = FatalProducerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "no")
    for _ in range(3):
        bench.clock.advance_ms(250)
        bench.adapter.poll()
    assert set(bench.identities) == {(4000, 2)}
    assert [(error.code, error.is_fatal) for error in bench.errors] == [(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, True)]


def test_a_batch_that_is_sent_again_is_told_by_its_sequences(bench: Bench) -> None:
    """The range is exact, whatever else is outstanding; it is told before the outcome of its records."""
    for sequence in range(10, 16):
        bench.adapter.produce("t", 3, None, b"v", sequence)
    batch = tuple(each[3] for each in bench.producer.sent[2:5])
    bench.producer.on_retry(RetriedBatch("t", 3, ErrorCode.NETWORK_EXCEPTION, batch))
    bench.producer.done(None, 70)
    assert (bench.retries, bench.deliveries) == ([], [])
    bench.adapter.poll()
    assert bench.retries == [Retried("NETWORK_EXCEPTION", 3, 12, 14)]
    assert len(bench.deliveries) == 1


def test_a_lost_connection_is_told_once(bench: Bench) -> None:
    """At the next poll, so that the last one before the end misses none."""
    bench.adapter.poll()
    bench.producer.disconnects = 2
    bench.adapter.poll()
    bench.adapter.poll()
    assert bench.disconnects == [("a connection to a broker was lost", 2)]


def test_disposal_does_not_wait_for_outcomes(bench: Bench) -> None:
    """What is left is given up: the stream has accounted for it."""
    bench.adapter.purge()
    assert bench.adapter.dispose(2.0)
    assert bench.producer.closed_after_s == 0.0


def test_a_reader_reads_on_from_its_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    """No offset is ever reset; an error breaks the assignment, and the next one begins at the same offsets."""
    calls: list[Any] = []

    class FakeConsumer:
        def __init__(self, config: dict[str, Any]) -> None:
            calls.append(config["auto.offset.reset"])

        def assign(self, partitions: list[tuple[str, int]]) -> None:
            calls.append(partitions)

        def seek(self, partition: tuple[str, int], offset: int) -> None:
            calls.append((partition, offset))

        def poll(self, timeout_s: float) -> list[ConsumerRecord]:
            if timeout_s:
                raise OffsetOutOfRange({("t", 1): 9})
            return [ConsumerRecord("t", 1, 9, 0, 0, b"k", b"v", (), 4)]

        def close(self) -> None:
            calls.append("closed")

    monkeypatch.setattr(native, "Consumer", FakeConsumer)
    reader = native.NativeReader("h:1", "readers", {})
    reader.assign("t", {1: 9, 2: 0})
    assert calls == ["none", [("t", 1), ("t", 2)], (("t", 1), 9), (("t", 2), 0)]
    assert reader.poll(10, 0.0) == ([ReadRecord(1, 9, b"v")], [], False)
    records, errors, broken = reader.poll(10, 0.1)
    assert (records, broken) == ([], True) and "t-1 at 9" in errors[0]
    reader.close()
    assert calls[-1] == "closed"


def test_librdkafka_takes_what_our_client_was_given() -> None:
    """The sentinels and the final read of a native load use confluent-kafka: no key of ours may stop them."""
    for table, translate, make in (
        (PRODUCER_KEYS, producer_config, Producer),
        (CONSUMER_KEYS, consumer_config, Consumer),
    ):
        given = {name: str(key.default) for name, key in table.keys.items() if key.default not in (None, "", ())}
        given.pop("bootstrap.servers", None)
        config = translate("", "check", {**given, "acks": "all"} if make is Producer else given)
        make({key: value for key, value in config.items() if key != "bootstrap.servers"})
