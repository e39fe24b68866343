"""Producers with transactions, of each real client, behind one small face; and a reader of what is committed."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any, Protocol

import confluent_kafka

from cluster.client import Producer
from tests.support.kafka_clients import QUIET, TIMEOUT_S, kafka


class Transactions(Protocol):
    """One producer of a transactional id."""

    def init(self) -> None: ...

    def begin(self) -> None: ...

    def send(self, topic: str, partition: int, value: bytes) -> None: ...

    def flush(self) -> None:
        """Wait until what was sent is in the log."""

    def send_offsets(self, offsets: Any, group: Any) -> None:
        """Make offsets part of the transaction, in the client's own form."""

    def end(self, *, commit: bool) -> None: ...

    def close(self) -> None: ...


class ConfluentTransactions:
    """librdkafka's."""

    def __init__(self, bootstrap: str, transactional_id: str, **settings: Any) -> None:
        self._producer = confluent_kafka.Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, **QUIET, **settings}
        )

    def init(self) -> None:
        self._producer.init_transactions(TIMEOUT_S)

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, partition: int, value: bytes) -> None:
        self._producer.produce(topic, value, partition=partition)

    def flush(self) -> None:
        assert self._producer.flush(TIMEOUT_S) == 0

    def send_offsets(self, offsets: Any, group: Any) -> None:
        self._producer.send_offsets_to_transaction(offsets, group, TIMEOUT_S)

    def end(self, *, commit: bool) -> None:
        if commit:
            self._producer.commit_transaction(TIMEOUT_S)
        else:
            self._producer.abort_transaction(TIMEOUT_S)

    def close(self) -> None:
        self._producer.purge()


class KafkaPythonTransactions:
    """kafka-python's."""

    _producer: Any

    def __init__(self, bootstrap: str, transactional_id: str, **settings: Any) -> None:
        self._producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap.split(","), transactional_id=transactional_id, **settings
        )

    def init(self) -> None:
        self._producer.init_transactions()

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, partition: int, value: bytes) -> None:
        self._producer.send(topic, value, partition=partition)

    def flush(self) -> None:
        self._producer.flush(TIMEOUT_S)

    def send_offsets(self, offsets: Any, group: Any) -> None:
        self._producer.send_offsets_to_transaction(offsets, group)

    def end(self, *, commit: bool) -> None:
        if commit:
            self._producer.commit_transaction()
        else:
            self._producer.abort_transaction()

    def close(self) -> None:
        self._producer.close(1)


class NativeTransactions(KafkaPythonTransactions):
    """Ours, whose calls have the same names."""

    def __init__(self, bootstrap: str, transactional_id: str, **settings: Any) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id, **settings})

    def close(self) -> None:
        self._producer.close(TIMEOUT_S)


MAKERS: dict[str, Callable[..., Transactions]] = {
    "confluent": ConfluentTransactions,
    "kafka-python": KafkaPythonTransactions,
    "native": NativeTransactions,
}


def read_values(
    bootstrap: str,
    topic: str,
    partition: int,
    count: int,
    isolation: str = "read_committed",
    *,
    wait_s: float = TIMEOUT_S,
) -> list[bytes]:
    """The first values of a partition, as many as come in time; and after ``count`` of them no other may follow."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": uuid.uuid4().hex, "isolation.level": isolation,
         "enable.auto.commit": False, **QUIET}
    )  # fmt: skip
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, partition, 0)])
        values: list[bytes] = []
        deadline = time.monotonic() + wait_s
        while len(values) < count and time.monotonic() < deadline:
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                values.append(message.value())
        late = consumer.poll(0.5)
        if late is not None and late.error() is None:
            values.append(late.value())
        return values
    finally:
        consumer.close()
