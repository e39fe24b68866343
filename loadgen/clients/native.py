"""Adapters for gapless's own client. Owns the adapters and the load's defaults; configuration keys are Kafka's.

The client is plain Python: under Locust its thread is a greenlet, and other greenlets run while it waits. A ``send``
that must not wait (``max.block.ms`` 0) fails at once if there is no room or the topic is not known yet; the load then
offers the record again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from functools import partial
from threading import get_ident

from cluster.client import Consumer, Producer
from cluster.client.consumer.results import ConsumerError
from cluster.client.producer.delivery import FatalProducerError, ProduceError, RecordMetadata, RetriedBatch
from cluster.config import consumer, producer
from cluster.config.errors import ConfigError
from cluster.seams.clock import Clock
from loadgen.clients.base import (
    ClientCallbacks,
    ClientRefusal,
    Failure,
    PolledRecords,
    ProducerFactory,
    Retried,
    Watermarks,
    first_line,
)
from loadgen.settings import ConfigValue, LoadSettings, SettingsError
from loadgen.spans import ReadRecord

PRODUCER_DEFAULTS: dict[str, ConfigValue] = {"max.block.ms": 0}
CONSUMER_DEFAULTS: dict[str, ConfigValue] = {
    "auto.offset.reset": "none",
    "allow.auto.create.topics": False,
    "fetch.max.wait.ms": 100,
}
#: How often a producer is asked for its id and epoch.
IDENTITY_INTERVAL_NS = 250_000_000


def producer_factory(bootstrap: str, client_id: str, given: Mapping[str, ConfigValue], clock: Clock) -> ProducerFactory:
    """Makes the producers of one stream, one per incarnation. The factory raises ``ConfigError`` for a bad key."""
    config = {**PRODUCER_DEFAULTS, **given, "bootstrap.servers": bootstrap, "client.id": client_id}
    return lambda callbacks: NativeProducer(config, callbacks, clock)


class NativeProducer:
    """``ProducerClient`` on gapless's own producer. Outcomes come in its own thread and wait for the next ``poll``."""

    is_cooperative = True

    def __init__(self, config: Mapping[str, object], callbacks: ClientCallbacks, clock: Clock) -> None:
        self._callbacks = callbacks
        self._clock = clock
        self._done: deque[tuple[int, ProduceError | None, int]] = deque()
        self._caller: int | None = None
        self._refusal: ProduceError | None = None
        self._identity_ns = clock.monotonic_ns()
        self._is_fatal = False
        self._retried: deque[RetriedBatch] = deque()
        self._disconnects = 0
        self._producer = Producer(config, on_retry=self._retried.append)

    def produce(self, topic: str, partition: int, key: bytes | None, value: bytes, sequence: int) -> None:
        self._caller = get_ident()
        try:
            self._producer.send(topic, value, key, partition, on_delivery=partial(self._on_delivery, sequence))
        except (ProduceError, ValueError) as error:
            raise ClientRefusal(_failure(error)) from error
        finally:
            self._caller = None
        if self._refusal is None:
            return
        refusal, self._refusal = self._refusal, None
        if refusal.retriable:
            raise BufferError(str(refusal))
        raise ClientRefusal(_failure(refusal))

    def poll(self) -> None:
        # report failed attempts before the outcomes of their records
        while self._retried:
            self._tell_retried(self._retried.popleft())
        if (lost := self._producer.disconnects) > self._disconnects:
            self._callbacks.on_disconnect("a connection to a broker was lost", lost - self._disconnects)
            self._disconnects = lost
        while self._done:
            sequence, error, offset = self._done.popleft()
            self._callbacks.on_delivery(sequence, None if error is None else _failure(error), offset)
        now_ns = self._clock.monotonic_ns()
        if now_ns - self._identity_ns >= IDENTITY_INTERVAL_NS:
            self._identity_ns = now_ns
            self._tell_identity()

    def purge(self) -> None:
        """Do nothing: a producer that has failed for good has failed all of its records, and will report them."""

    def dispose(self, timeout_s: float) -> bool:
        self._producer.close(0.0)
        return True

    def _on_delivery(self, sequence: int, error: ProduceError | None, metadata: RecordMetadata) -> None:
        if self._caller is not None and self._caller == get_ident():
            # called from within ``send``: the record is not in any batch
            self._refusal = error
        else:
            self._done.append((sequence, error, metadata.offset))

    def _tell_retried(self, retried: RetriedBatch) -> None:
        """Report a retried batch, with the sequences that the callbacks of its records know."""
        sequences = [each.args[0] for each in retried.on_delivery if isinstance(each, partial)]
        if sequences:
            name = retried.error_code.name
            self._callbacks.on_retry(Retried(name, len(sequences), min(sequences), max(sequences)))

    def _tell_identity(self) -> None:
        metrics = self._producer.metrics()
        producer_id, producer_epoch = int(metrics["producer-id"]), int(metrics["producer-epoch"])
        if producer_id >= 0:
            self._callbacks.on_identity(producer_id, producer_epoch)
        error = self._producer.fatal_error
        if error is not None and not self._is_fatal:
            self._is_fatal = True
            self._callbacks.on_error(_failure(error))

    def __repr__(self) -> str:
        return f"NativeProducer({self._producer})"


class NativeReader:
    """``RecordReader`` on gapless's own consumer."""

    is_cooperative = True

    def __init__(self, bootstrap: str, client_id: str, given: Mapping[str, ConfigValue]) -> None:
        self._consumer = Consumer(
            {**CONSUMER_DEFAULTS, **given, "bootstrap.servers": bootstrap, "client.id": client_id}
        )

    def assign(self, topic: str, offsets: Mapping[int, int]) -> None:
        self._consumer.assign([(topic, partition) for partition in offsets])
        for partition, offset in offsets.items():
            self._consumer.seek((topic, partition), offset)

    def poll(self, max_records: int, timeout_s: float) -> PolledRecords:
        """Poll once. Returns at most ``max.poll.records`` records, and ignores ``max_records``."""
        try:
            found = self._consumer.poll(timeout_s)
        except ConsumerError as error:
            return PolledRecords([], [f"{error.error_code.name}: {first_line(error)}"], broken=True)
        return PolledRecords([ReadRecord(each.partition, each.offset, each.value) for each in found], [], broken=False)

    def watermarks(self, topic: str, partition: int) -> Watermarks:
        return Watermarks(*self._consumer.watermarks((topic, partition)))

    def end_offsets(self, topic: str, partitions: Collection[int], timeout_s: float) -> Mapping[int, int]:
        try:
            found = self._consumer.end_offsets([(topic, partition) for partition in partitions], timeout_s)
        except (ConsumerError, TimeoutError):
            return {}
        return {partition: offset for (_, partition), offset in found.items()}

    def close(self) -> None:
        self._consumer.close()


def check_client_config(settings: LoadSettings) -> None:
    """Check the configuration of producers and consumers. Raises ``SettingsError``."""
    try:
        producer.validate(settings.producer_config)
        consumer.validate(settings.consumer_config)
    except ConfigError as error:
        raise SettingsError(str(error)) from error


def _failure(error: ProduceError | ValueError) -> Failure:
    if isinstance(error, ProduceError):
        return Failure(first_line(error), error.error_code, isinstance(error, FatalProducerError))
    return Failure(f"{type(error).__name__}: {first_line(error)}")
