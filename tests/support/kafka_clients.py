"""Real Kafka clients behind one small face, so that each can be held to the same rules.

Owns how confluent-kafka (librdkafka) and kafka-python are told to do a thing; kcat is ``tests.support.kcat``. Reading
is always by assignment from offset 0.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

with warnings.catch_warnings():
    # kafka-python reads its schemas in a way that Python 3.11 calls deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka as kafka  # Exported: tests must not import it first.
    import kafka.admin

TIMEOUT_S = 30.0
REPLICAS = 3
#: How a producer asks for acknowledgement; ``idempotent`` is acks=all with sequences.
ACKS = ("0", "1", "all", "idempotent")
EARLIEST, LATEST = "earliest", "latest"
#: Of no record: what ``offset_of`` answers for a time after the last.
NONE = -1
QUIET = {"log_level": 2}

#: (offset, timestamp in ms, value)
Read = tuple[int, int, bytes]


class KafkaClient(Protocol):
    """What a client can do in these tests."""

    name: str

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic of three replicas; a client that cannot lets another one do it."""

    def produce(self, topic: str, partition: int, values: Sequence[bytes], acks: str, codec: str) -> None:
        """Send all, and return when everything was acknowledged (or, with acks=0, sent)."""

    def offset_of(self, topic: str, partitions: Sequence[int], when: str | int) -> dict[int, int]:
        """Partition -> the offset of ``EARLIEST``, ``LATEST`` or a time in ms."""

    def read(self, topic: str, counts: Mapping[int, int]) -> dict[int, list[Read]]:
        """Partition -> its first so many records, in the order in which they came."""


def wait_for(condition: Callable[[], Any], what: str, timeout_s: float = TIMEOUT_S) -> Any:
    """The first true value of ``condition``, which waits by itself."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
    return value


class Confluent:
    """confluent-kafka."""

    name = "confluent"

    def __init__(self, bootstrap: str) -> None:
        self.settings: dict[str, Any] = {"bootstrap.servers": bootstrap, **QUIET}
        self.admin = AdminClient(self.settings)

    def create(self, topic: str, partitions: int) -> None:
        for future in self.admin.create_topics([NewTopic(topic, partitions, REPLICAS)]).values():
            future.result(TIMEOUT_S)

    def produce(self, topic: str, partition: int, values: Sequence[bytes], acks: str, codec: str) -> None:
        errors: list[Any] = []
        asked = {"enable.idempotence": True} if acks == "idempotent" else {"acks": acks}
        producer = confluent_kafka.Producer(
            {**self.settings, **asked, "compression.type": codec, "linger.ms": 5, "message.timeout.ms": 30_000}
        )
        for value in values:
            producer.produce(
                topic, value, partition=partition, on_delivery=lambda error, _: errors.append(error) if error else None
            )
        assert producer.flush(TIMEOUT_S) == 0
        assert errors == []

    def offset_of(self, topic: str, partitions: Sequence[int], when: str | int) -> dict[int, int]:
        specs = {EARLIEST: OffsetSpec.earliest(), LATEST: OffsetSpec.latest()}
        spec = specs[when] if isinstance(when, str) else OffsetSpec.for_timestamp(when)
        asked = {confluent_kafka.TopicPartition(topic, partition): spec for partition in partitions}
        futures = self.admin.list_offsets(asked, request_timeout=TIMEOUT_S)
        return {place.partition: future.result(TIMEOUT_S).offset for place, future in futures.items()}

    def consumer(self, topic: str, partitions: Sequence[int], **settings: Any) -> Any:
        """A consumer that is assigned these partitions from offset 0. librdkafka wants a group; nobody joins it."""
        base = {"group.id": "nobody", "enable.auto.commit": False, "auto.offset.reset": "error"}
        consumer = confluent_kafka.Consumer({**self.settings, **base, **settings})
        consumer.assign([confluent_kafka.TopicPartition(topic, partition, 0) for partition in partitions])
        return consumer

    def read(self, topic: str, counts: Mapping[int, int]) -> dict[int, list[Read]]:
        found: dict[int, list[Read]] = {partition: [] for partition in counts}
        consumer = self.consumer(topic, list(counts))

        def all_came() -> bool:
            for message in consumer.consume(1000, 0.05):
                assert message.error() is None, message.error()
                found[message.partition()].append((message.offset(), message.timestamp()[1], message.value()))
            return _complete(found, counts)

        try:
            wait_for(all_came, f"the records of {topic} for {self.name}")
        finally:
            consumer.close()
        return found


class KafkaPython:
    """kafka-python. Its consumers have no group unless one is named."""

    name = "kafka-python"

    def __init__(self, bootstrap: str) -> None:
        self.servers = bootstrap.split(",")
        self.admin = kafka.admin.KafkaAdminClient(bootstrap_servers=self.servers)
        self._consumer = self.consumer()

    def close(self) -> None:
        """End its threads and connections."""
        self._consumer.close()
        self.admin.close()

    def create(self, topic: str, partitions: int) -> None:
        self.admin.create_topics([kafka.admin.NewTopic(topic, partitions, REPLICAS)])

    def produce(self, topic: str, partition: int, values: Sequence[bytes], acks: str, codec: str) -> None:
        idempotent = acks == "idempotent"
        producer = kafka.KafkaProducer(
            bootstrap_servers=self.servers,
            acks="all" if idempotent or acks == "all" else int(acks),
            enable_idempotence=idempotent,
            compression_type=None if codec == "none" else codec,
            linger_ms=5,
        )
        try:
            futures = [producer.send(topic, value, partition=partition) for value in values]
            producer.flush(TIMEOUT_S)
            for future in futures:
                future.get(TIMEOUT_S)
        finally:
            producer.close(TIMEOUT_S)

    def offset_of(self, topic: str, partitions: Sequence[int], when: str | int) -> dict[int, int]:
        places = [kafka.TopicPartition(topic, partition) for partition in partitions]
        if isinstance(when, str):
            ask = {EARLIEST: self._consumer.beginning_offsets, LATEST: self._consumer.end_offsets}[when]
            return {place.partition: offset for place, offset in ask(places).items()}
        found = self._consumer.offsets_for_times(dict.fromkeys(places, when))
        return {place.partition: NONE if entry is None else entry.offset for place, entry in found.items()}

    def consumer(self, **settings: Any) -> Any:
        """A consumer without an assignment."""
        base = {"enable_auto_commit": False, "auto_offset_reset": "none", "fetch_max_wait_ms": 50}
        return kafka.KafkaConsumer(bootstrap_servers=self.servers, **{**base, **settings})

    def read(self, topic: str, counts: Mapping[int, int]) -> dict[int, list[Read]]:
        found: dict[int, list[Read]] = {partition: [] for partition in counts}
        consumer = self._consumer
        places = [kafka.TopicPartition(topic, partition) for partition in counts]
        consumer.assign(places)
        for place in places:
            consumer.seek(place, 0)

        def all_came() -> bool:
            for place, records in consumer.poll(50).items():
                found[place.partition] += [(record.offset, record.timestamp, record.value) for record in records]
            return _complete(found, counts)

        wait_for(all_came, f"the records of {topic} for {self.name}")
        return found


def _complete(found: Mapping[int, list[Read]], counts: Mapping[int, int]) -> bool:
    return all(len(found[partition]) >= count for partition, count in counts.items())
