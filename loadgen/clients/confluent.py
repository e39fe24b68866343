"""confluent-kafka (librdkafka) behind the load's shapes. Owns the adapters, not the configuration's defaults.

Nothing here blocks the caller for longer than the timeout it gave, a consumer's ``close`` apart. confluent-kafka
releases a producer with its last reference; ``dispose_producer`` ensures that nothing is queued by then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from cluster.client.producer.outcomes import reported_code
from cluster.protocol.errors import ErrorCode
from cluster.seams.clock import Clock
from cluster.seams.units import ms_of_seconds, ns_of_seconds
from loadgen.clients.base import (
    ClientCallbacks,
    ClientRefusal,
    Failure,
    PolledRecords,
    ProducerFactory,
    Retried,
    SentResult,
    Watermarks,
    first_line,
)
from loadgen.clients.librdkafka import SENTINEL_NEEDS, consumer_config, producer_config, producer_identity
from loadgen.clients.librdkafka_attempts import ATTEMPTS, AttemptListener, KeptLines, LostConnections, client_logger
from loadgen.settings import ConfigValue, LoadSettings, SettingsError
from loadgen.spans import ReadRecord

logger = logging.getLogger(__name__)


def producer_factory(bootstrap: str, client_id: str, given: Mapping[str, ConfigValue], clock: Clock) -> ProducerFactory:
    """Makes the producers of one stream, one per incarnation. The factory raises ``KafkaException`` for a bad key."""
    config = producer_config(bootstrap, client_id, given)
    return lambda callbacks: ConfluentProducer(config, callbacks, clock)


class ConfluentProducer:
    """``ProducerClient`` on confluent-kafka's."""

    is_cooperative = False

    def __init__(self, config: Mapping[str, str], callbacks: ClientCallbacks, clock: Clock) -> None:
        self._callbacks = callbacks
        self._clock = clock
        self._first_sequences: dict[int, int] = {}
        self._connections = LostConnections()
        self._lines = KeptLines(AttemptListener(self._on_failed_attempt, is_debugged="debug" in config))
        debug = ",".join(filter(None, (config.get("debug"), ATTEMPTS)))
        own = {**config, "debug": debug, "stats_cb": self._on_statistics}
        self._producer = TellingProducer(own, self._on_error, self._lines)

    def produce(self, topic: str, partition: int, key: bytes | None, value: bytes, sequence: int) -> None:
        on_delivery = partial(self._on_delivery, sequence)
        try:
            self._producer.produce(topic, value, key, partition=partition, on_delivery=on_delivery)
        except KafkaException as error:
            raise ClientRefusal(Failure(describe_exception(error), is_fatal=is_fatal(error))) from error
        self._first_sequences.setdefault(partition, sequence)

    def poll(self) -> None:
        self._producer.poll(0)
        self._lines.pass_on()

    def purge(self) -> None:
        self._producer.purge(in_queue=True, in_flight=True, blocking=False)

    def dispose(self, timeout_s: float) -> bool:
        return dispose_producer(self._producer, timeout_s=timeout_s, clock=self._clock)

    def _on_delivery(self, sequence: int, error: KafkaError | None, message: Message) -> None:
        failure = None if error is None else failure_of(error)
        self._callbacks.on_delivery(sequence, failure, message.offset())

    def _on_statistics(self, statistics: str) -> None:
        identity = producer_identity(statistics)
        if identity is not None:
            self._callbacks.on_identity(*identity)
        if lost := self._connections.told(statistics):
            self._callbacks.on_disconnect(f"{lost} since the last statistics", lost)

    def _on_error(self, error: KafkaError) -> None:
        self._callbacks.on_error(failure_of(error))

    def _on_failed_attempt(self, error: str, records: int, number: int, partition: int) -> None:
        """librdkafka numbers the records of a partition from 1, and a producer has one stream to a partition."""
        if number and partition in self._first_sequences:
            first = self._first_sequences[partition] + number - 1
            self._callbacks.on_retry(Retried(first_line(error), records, first, first + records - 1))
        else:
            self._callbacks.on_retry(Retried(first_line(error), records))

    def __repr__(self) -> str:
        return f"ConfluentProducer(waiting={len(self._producer)})"


def failure_of(error: KafkaError) -> Failure:
    """librdkafka's error as a ``Failure``. Codes from 0 on are Kafka's. Its own errors leave the outcome unknown.

    librdkafka does not tell that a record was sent before the attempt that was refused, and after an error that asks
    for new metadata it sends again without counting a retry, also with ``retries=0``. So a refusal takes back nothing
    (``outcomes.reported_code``).
    """
    code = error.code()
    kafka_code = ErrorCode.of(code) if code > 0 else ErrorCode.REQUEST_TIMED_OUT
    return Failure(describe(error), reported_code(kafka_code, is_doubtful=True), error.fatal())


class TellingProducer(Producer):  # type: ignore[misc]  # it comes without types
    """A producer that reports fatal errors like all others: to ``on_error``, when it is polled.

    confluent-kafka raises a fatal error out of whatever serves callbacks (``poll``, ``flush``) instead of calling
    ``error_cb``. Other exceptions, such as a callback's own, are raised on.
    """

    def __init__(
        self, config: Mapping[str, Any], on_error: Callable[[KafkaError], None], log_to: Any = client_logger
    ) -> None:
        self._on_error = on_error
        super().__init__({**config, "error_cb": on_error}, logger=log_to)

    def poll(self, timeout: float = -1) -> int:
        """Serve callbacks; the number of events."""
        try:
            return int(super().poll(timeout))
        except KafkaException as error:
            if not is_fatal(error):
                raise
            self._on_error(error.args[0])
            return 1


def dispose_producer(client: Producer, *, timeout_s: float, clock: Clock) -> bool:
    """Drop what is queued or in flight. Blocks up to about ``timeout_s``: not for an event loop's thread.

    False if the client still held records then. It is released with its last reference.
    """
    deadline_ns = clock.monotonic_ns() + ns_of_seconds(timeout_s)
    client.purge(in_queue=True, in_flight=True, blocking=False)
    while len(client) and clock.monotonic_ns() < deadline_ns:
        client.poll(0.05)
    if len(client):
        logger.warning("a producer still holds %d records after its purge", len(client))
        return False
    return True


def check_client_config(settings: LoadSettings) -> None:
    """Have librdkafka check the configuration before anything starts. Raises ``SettingsError`` with its message."""
    producer = producer_config("", "check", settings.producer_config)
    consumer = consumer_config("", "check", settings.consumer_config)
    for kind, make, config in (("producer", Producer, producer), ("consumer", Consumer, consumer)):
        # without an address, the client does not connect
        own = {key: value for key, value in config.items() if key != "bootstrap.servers"}
        try:
            make(own, logger=client_logger)
        except KafkaException as error:
            raise SettingsError(f"{kind} configuration: {describe_exception(error)}") from error


class ConfluentReader:
    """``RecordReader`` on a confluent-kafka consumer. Never blocks in ``poll`` with a timeout of 0."""

    is_cooperative = False

    def __init__(self, bootstrap: str, client_id: str, given: Mapping[str, ConfigValue]) -> None:
        self._notices: list[str] = []
        config: dict[str, Any] = {**consumer_config(bootstrap, client_id, given), "error_cb": self._on_error}
        self._consumer = Consumer(config, logger=client_logger)
        self._names: dict[tuple[str, int], TopicPartition] = {}

    def assign(self, topic: str, offsets: Mapping[int, int]) -> None:
        self._consumer.assign([TopicPartition(topic, partition, offset) for partition, offset in offsets.items()])

    def poll(self, max_records: int, timeout_s: float) -> PolledRecords:
        records: list[ReadRecord] = []
        errors: list[str] = []
        broken = False
        for message in self._consumer.consume(max_records, timeout_s):
            error = message.error()
            if error is None:
                records.append(ReadRecord(message.partition(), message.offset(), message.value()))
            else:
                broken = True
                errors.append(f"partition {message.partition()}: {describe(error)}")
        notices, self._notices = self._notices, []
        return PolledRecords(records, errors + notices, broken)

    def watermarks(self, topic: str, partition: int) -> Watermarks:
        """Only the high watermark: librdkafka does not expose the last stable offset."""
        name = self._names.get((topic, partition))
        if name is None:
            name = self._names[topic, partition] = TopicPartition(topic, partition)
        try:
            cached = self._consumer.get_watermark_offsets(name, cached=True)
        except (KafkaException, RuntimeError):
            return Watermarks()
        # before the first fetch, and after a broker's error, librdkafka returns a negative number here
        return Watermarks() if cached is None or cached[1] < 0 else Watermarks(cached[1])

    def end_offsets(self, topic: str, partitions: Collection[int], timeout_s: float) -> Mapping[int, int]:
        """Return nothing, because librdkafka's request would block all other greenlets."""
        return {}

    def close(self) -> None:
        self._consumer.close()

    def _on_error(self, error: KafkaError) -> None:
        # librdkafka recovers from these on its own, so they need a note but no new assignment
        self._notices.append(describe(error))


class ConfluentSentinelSender:
    """``SentinelSender`` on a confluent-kafka producer that lives for one attempt."""

    def __init__(self, bootstrap: str, client_id: str, given: Mapping[str, ConfigValue], clock: Clock) -> None:
        self._config = producer_config(bootstrap, client_id, {**given, **SENTINEL_NEEDS})
        self._clock = clock

    def send(self, topic: str, values: Mapping[int, bytes], timeout_s: float) -> dict[int, SentResult]:
        results: dict[int, SentResult] = {}
        timeout_ms = max(1, int(ms_of_seconds(timeout_s)))
        client = TellingProducer(
            {**self._config, "delivery.timeout.ms": timeout_ms, "linger.ms": 0, "statistics.interval.ms": 0},
            lambda error: logger.warning("sentinel: %s", describe(error)),
        )
        for partition, value in values.items():
            self._produce(client, topic, partition, value, results)
        # a second more than the client's own timeout, so that the client reports the outcome
        deadline_ns = self._clock.monotonic_ns() + ns_of_seconds(timeout_s + 1)
        while len(results) < len(values) and self._clock.monotonic_ns() < deadline_ns:
            client.poll(0.05)
        dispose_producer(client, timeout_s=1.0, clock=self._clock)
        return {partition: results.get(partition, SentResult.unknown("no delivery report")) for partition in values}

    def _produce(
        self, client: Producer, topic: str, partition: int, value: bytes, results: dict[int, SentResult]
    ) -> None:
        def on_delivery(error: KafkaError | None, message: Message) -> None:
            if error is None:
                results[partition] = SentResult.of_offset(message.offset())
            else:
                results[partition] = SentResult.unknown(describe(error))

        try:
            client.produce(topic, value, partition=partition, on_delivery=on_delivery)
        except (KafkaException, BufferError) as error:
            results[partition] = SentResult.unknown(describe_exception(error))


def describe(error: KafkaError) -> str:
    """``NAME: text``, one bounded line."""
    return f"{error.name()}: {first_line(error.str())}"


def describe_exception(error: BaseException) -> str:
    """The same for an exception that confluent-kafka raised."""
    if isinstance(error, KafkaException) and error.args and isinstance(error.args[0], KafkaError):
        return describe(error.args[0])
    return f"{type(error).__name__}: {first_line(error)}"


def is_fatal(error: BaseException) -> bool:
    """Whether the producer that raised this must be replaced."""
    return isinstance(error, KafkaException) and bool(
        error.args
        and isinstance(error.args[0], KafkaError)
        and (error.args[0].fatal() or error.args[0].code() == KafkaError._FATAL)
    )
