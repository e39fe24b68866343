"""Adapters for kafka-python, which gives the final phase a second opinion in addition to librdkafka. Owns the adapters.

Only for processes without Locust, because its calls block. The configuration has Kafka's keys; those that kafka-python
does not know are left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from typing import Any

from cluster.seams.clock import Clock
from cluster.seams.units import ms_of_seconds, ns_of_seconds, seconds_of_ns
from loadgen.clients.base import PolledRecords, SentResult, Watermarks, first_line
from loadgen.settings import ConfigValue
from loadgen.spans import ReadRecord

with warnings.catch_warnings():
    # kafka-python 3.0 reads its schemas with calls that only Python 3.11 reports as deprecated
    warnings.filterwarnings("ignore", message=r"(read|open)_text is deprecated", category=DeprecationWarning)
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.errors import KafkaError

BOOTSTRAP_TIMEOUT_MS = 5000

_CONSUMER: dict[str, Any] = {
    "bootstrap_timeout_ms": BOOTSTRAP_TIMEOUT_MS,
    "auto_offset_reset": "none",
    "enable_auto_commit": False,
    "isolation_level": "read_uncommitted",
    "check_crcs": True,
    "fetch_max_wait_ms": 100,
}
_PRODUCER: dict[str, Any] = {"bootstrap_timeout_ms": BOOTSTRAP_TIMEOUT_MS, "linger_ms": 0}


class KafkaPythonReader:
    """``RecordReader`` on kafka-python's consumer, which is made when it is first polled: making it needs a broker."""

    is_cooperative = False

    def __init__(self, bootstrap: str, client_id: str, given: Mapping[str, ConfigValue]) -> None:
        self._config: dict[str, Any] = {
            **_CONSUMER,
            **_known(given, KafkaConsumer.DEFAULT_CONFIG),
            "bootstrap_servers": bootstrap.split(","),
            "client_id": client_id,
            "group_id": None,
        }
        self._consumer: KafkaConsumer | None = None
        self._assignment: dict[TopicPartition, int] = {}

    def assign(self, topic: str, offsets: Mapping[int, int]) -> None:
        self._assignment = {TopicPartition(topic, partition): offset for partition, offset in offsets.items()}
        self._apply()

    def poll(self, max_records: int, timeout_s: float) -> PolledRecords:
        try:
            if self._consumer is None:
                self._consumer = KafkaConsumer(**self._config)
                self._apply()
            polled = self._consumer.poll(timeout_ms=int(ms_of_seconds(timeout_s)), max_records=max_records)
        except KafkaError as error:
            return PolledRecords([], [_describe(error)], broken=True)
        records = [
            ReadRecord(topic_partition.partition, record.offset, record.value)
            for topic_partition, batch in polled.items()
            for record in batch
        ]
        return PolledRecords(records, [], broken=False)

    def watermarks(self, topic: str, partition: int) -> Watermarks:
        """kafka-python keeps no last stable offset."""
        if self._consumer is None:
            return Watermarks()
        high_watermark = self._consumer.highwater(TopicPartition(topic, partition))
        return Watermarks() if high_watermark is None else Watermarks(high_watermark)

    def end_offsets(self, topic: str, partitions: Collection[int], timeout_s: float) -> Mapping[int, int]:
        """Return nothing, because the request would block all other readers."""
        return {}

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()

    def _apply(self) -> None:
        if self._consumer is None:
            return
        self._consumer.assign(list(self._assignment))
        for topic_partition, offset in self._assignment.items():
            self._consumer.seek(topic_partition, offset)


class KafkaPythonSentinelSender:
    """``SentinelSender`` on kafka-python's idempotent producer, which lives for one attempt."""

    def __init__(self, bootstrap: str, client_id: str, given: Mapping[str, ConfigValue], clock: Clock) -> None:
        self._config = {
            **_PRODUCER,
            **_known(given, KafkaProducer.DEFAULT_CONFIG),
            "bootstrap_servers": bootstrap.split(","),
            "client_id": client_id,
            "acks": "all",
            "enable_idempotence": True,
        }
        self._clock = clock

    def send(self, topic: str, values: Mapping[int, bytes], timeout_s: float) -> dict[int, SentResult]:
        timeout_ms = max(1, int(ms_of_seconds(timeout_s)))
        limits = {
            "delivery_timeout_ms": timeout_ms,
            "request_timeout_ms": min(3000, timeout_ms),
            "max_block_ms": timeout_ms,
        }
        try:
            producer = KafkaProducer(**{**self._config, **limits})
        except KafkaError as error:
            return dict.fromkeys(values, SentResult.unknown(_describe(error)))
        try:
            return self._send(producer, topic, values, timeout_s)
        finally:
            producer.close(timeout=1)

    def _send(
        self, producer: KafkaProducer, topic: str, values: Mapping[int, bytes], timeout_s: float
    ) -> dict[int, SentResult]:
        deadline_ns = self._clock.monotonic_ns() + ns_of_seconds(timeout_s + 1)
        results: dict[int, SentResult] = {}
        futures: dict[int, Any] = {}
        for partition, value in values.items():
            try:
                futures[partition] = producer.send(topic, value, partition=partition)
            except KafkaError as error:
                results[partition] = SentResult.unknown(_describe(error))
        for partition, future in futures.items():
            left_s = max(0.0, seconds_of_ns(deadline_ns - self._clock.monotonic_ns()))
            try:
                results[partition] = SentResult.of_offset(future.get(timeout=left_s).offset)
            except KafkaError as error:
                results[partition] = SentResult.unknown(_describe(error))
        return results


def _describe(error: KafkaError) -> str:
    return f"{type(error).__name__}: {first_line(error)}"


def _known(given: Mapping[str, ConfigValue], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The keys that kafka-python knows, in its spelling and with its types."""
    known: dict[str, Any] = {}
    for key, value in given.items():
        name = key.replace(".", "_")
        if name not in defaults:
            continue
        if isinstance(defaults[name], bool):
            known[name] = value if isinstance(value, bool) else str(value).lower() == "true"
        elif isinstance(defaults[name], int) and not isinstance(value, bool):
            known[name] = int(value)
        elif name != "acks":
            known[name] = value
    return known
