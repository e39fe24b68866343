"""Producer: sends records to a Kafka cluster (Kafka's KafkaProducer).

Owns the face to a program: ``send`` and what may be asked besides, and the short way of a record into an open batch.
Does not own the long way (``appender.py``), nor anything that happens to a batch (``io_thread.py`` and what it joins).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from cluster.client.argument_checks import checked_long, checked_partition
from cluster.client.closeable import Closeable
from cluster.client.cluster_view import PartitionView
from cluster.client.producer.appender import RecordAppender
from cluster.client.producer.delivery import FatalProducerError, ProduceError, ProducerClosed
from cluster.client.producer.encoding import as_bytes
from cluster.client.producer.futures import BatchDelivery, OnDelivery, RecordFuture
from cluster.client.producer.interceptors import ProducerRecord
from cluster.client.producer.io_thread import OnRetry, ProducerIo
from cluster.client.producer.metrics import ProducerMetrics
from cluster.client.producer.partitioner import partition_for_key
from cluster.client.producer.parts import producer_parts
from cluster.client.producer.settings import producer_settings
from cluster.client.producer.transaction_calls import TransactionCalls
from cluster.client.producer.transactional_methods import TransactionalMethods
from cluster.client.wiring import client_io
from cluster.protocol.records import Header
from cluster.seams.clock import Clock, SystemClock
from cluster.seams.randomness import Random, fresh_seed
from cluster.seams.runner import Runner, ThreadRunner
from cluster.seams.selector import Selector
from cluster.seams.socket_selector import SocketSelector
from cluster.seams.units import NS_PER_MS, ns_of_seconds, seconds_of_ns

logger = logging.getLogger(__name__)

#: How long ``close`` waits for its thread once everything was abandoned.
_LAST_WAIT_S = 5.0


class Producer(TransactionalMethods, Closeable):
    """Safe from any thread, and one per program is enough. Close it after use, or use it as a context manager.

    ``config`` has Kafka's own keys (``docs/client.md``). Raises ``ConfigError`` for a key or a value that is wrong, and
    for settings that contradict each other. A thread of its own, a daemon, does all I/O; callbacks run there, in the
    order of the records of a partition.
    """

    def __init__(
        self,
        config: Mapping[str, object],
        *,
        selector: Selector | None = None,
        clock: Clock | None = None,
        random: Random | None = None,
        runner: Runner | None = None,
        on_retry: OnRetry | None = None,
    ) -> None:
        """The others are the seams, for tests; ``on_retry`` learns of batches sent again."""
        self._settings = settings = producer_settings(config)
        for warning in settings.config.warnings:
            logger.warning("%s", warning)
        clock = SystemClock() if clock is None else clock
        random = Random(fresh_seed()) if random is None else random
        self._metrics = ProducerMetrics()
        selector = SocketSelector() if selector is None else selector
        try:
            io = client_io(
                settings.config,
                selector,
                clock,
                random,
                max_in_flight=settings.sender.max_in_flight,
                max_idle_topic_ms=settings.config["metadata.max.idle.ms"],
            )
        except BaseException:
            selector.shutdown()
            raise
        self._shared = shared = producer_parts(settings, clock, random)
        self._identity, self._pool = shared.identity, shared.pool
        runner = ThreadRunner(f"producer-{settings.config['client.id']}") if runner is None else runner
        self._io = ProducerIo(shared, io, self._metrics, runner, on_retry)
        manager = shared.transactions
        self._transactions = None if manager is None else TransactionCalls(shared, self._io, manager, self._metrics)
        self._appender = RecordAppender(shared, self._io.wakeup, lambda: not self._io.is_current_thread)
        # What every send needs, within reach.
        self._topics = shared.topics
        self._lock = shared.lock
        self._wall_ns = clock.wall_ns
        self._ignores_keys = settings.ignores_keys
        self._is_plain = not (
            settings.interceptors or settings.partitioner or settings.key_serializer or settings.value_serializer
        )
        self._io.start()

    def __repr__(self) -> str:
        return f"Producer({self._settings.config!r})"

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        headers: Sequence[Header] | Mapping[str, bytes | None] | None = None,
        timestamp_ms: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> RecordFuture:
        """Put a record into a batch that is sent soon; its outcome is the future's, and ``on_delivery``'s.

        Key and value are bytes or None, or what the serializers take. Without a partition the key decides, and without
        a key the producer. ``timestamp_ms`` is milliseconds since the epoch, now if left out. Waits up to max.block.ms
        for metadata and memory; if that is too short, and for a record that fits nowhere, the future has failed
        already. Raises ``ProducerClosed``, ``TypeError`` and ``ValueError`` for arguments that are wrong, and what a
        serializer raises.
        """
        if self._is_plain and not headers and (on_delivery is None or callable(on_delivery)):
            if timestamp_ms is None:
                timestamp_ms = self._wall_ns() // NS_PER_MS
            else:
                _check_timestamp(timestamp_ms)
            choice = self._topics.get(topic)
            if choice is not None:
                # acquire() and release() are half the price, but a signal between acquire() and try leaves it held.
                with self._lock:
                    if partition is not None:
                        batch = choice.open.get(partition)
                    elif key is None or self._ignores_keys:
                        batch = choice.sticky_batch
                    elif type(key) is bytes:
                        batch = choice.open.get(partition_for_key(key, choice.partition_count))
                    else:
                        batch = None
                    if batch is not None:
                        future = batch.try_append(timestamp_ms, key, value, (), on_delivery)
                        if future is not None:
                            return future
        record = ProducerRecord(topic, value, key, partition, _checked_headers(headers), timestamp_ms)
        return self._send(record, on_delivery)

    def _send(self, record: ProducerRecord, on_delivery: OnDelivery | None) -> RecordFuture:
        settings = self._settings
        if settings.interceptors:
            record = settings.interceptors.on_send(record)
            on_delivery = settings.interceptors.around(on_delivery)
        topic, value, key, partition, headers, timestamp_ms = record
        if partition is not None:
            partition = checked_partition(partition)
        timestamp_ms = self._wall_ns() // NS_PER_MS if timestamp_ms is None else timestamp_ms
        _check_timestamp(timestamp_ms)
        if on_delivery is not None and not callable(on_delivery):
            raise TypeError(f"on_delivery is a function, not {type(on_delivery).__name__}")
        self._io.check_alive()
        deadline_ms = self._appender.deadline_ms()
        try:
            # As Kafka: before serializing.
            if self._shared.is_closing:
                raise self._shared.refusal
            key = key if settings.key_serializer is None else settings.key_serializer(key)
            value = value if settings.value_serializer is None else settings.value_serializer(value)
            key, value = as_bytes(key, "key"), as_bytes(value, "value")
            if partition is None and settings.partitioner is not None:
                partition = self._chosen_partition(topic, key, value, deadline_ms)
            return self._appender.append(topic, key, value, partition, headers, timestamp_ms, on_delivery, deadline_ms)
        except ProducerClosed:
            raise
        except ProduceError as error:
            if self._shared.transactions is not None:
                with self._lock:
                    self._shared.transactions.record_failed(error.error_code)
            return _failed_future(record, error, on_delivery)

    def _chosen_partition(self, topic: str, key: bytes | None, value: bytes | None, deadline_ms: int) -> int:
        partitioner = self._settings.partitioner
        with self._lock:
            choice = self._appender.wait_for_topic(topic, None, deadline_ms)
            count, available = choice.partition_count, choice.available
        chosen = -1 if partitioner is None else partitioner(topic, key, value, count, available)
        if not 0 <= chosen < count:
            raise ValueError(f"the partitioner chose {chosen} for {topic}, which has {count} partitions")
        return chosen

    def flush(self, timeout_s: float | None = None) -> None:
        """Send what was given to ``send`` so far, without lingering, and wait for its outcomes and callbacks.

        Raises ``TimeoutError`` if that takes longer than ``timeout_s``, and ``RuntimeError`` in a callback, where it
        would wait for itself.
        """
        if self._io.is_current_thread:
            raise RuntimeError("Producer.flush() in a callback would wait for the callback itself")
        self._io.check_alive()
        shared, clock = self._shared, self._shared.clock
        deadline_ns = None if timeout_s is None else clock.monotonic_ns() + ns_of_seconds(timeout_s)
        with shared.lock:
            batches = [*shared.finishing, *shared.accumulator.begin_flush()]
        try:
            self._io.wakeup()
            for index, batch in enumerate(batches):
                left_s = None if deadline_ns is None else max(0.0, seconds_of_ns(deadline_ns - clock.monotonic_ns()))
                if not batch.wait_until_done(left_s):
                    raise TimeoutError(
                        f"{len(batches) - index} of {len(batches)} batches have no outcome after {timeout_s:g} s"
                    )
        finally:
            with shared.lock:
                shared.accumulator.end_flush()

    def close(self, timeout_s: float | None = None) -> None:
        """Take no more records, wait for the outcomes of all, and end. An open transaction is aborted first.

        What has no outcome after ``timeout_s`` fails with ``ProducerClosed``. In a callback nothing is waited for, and
        all that has no outcome fails. A second call does nothing but wait.
        """
        shared = self._shared
        is_inside = self._io.is_current_thread
        began_ns = shared.clock.monotonic_ns()
        if self._transactions is not None:
            self._transactions.close(timeout_s)
        if timeout_s is not None:
            timeout_s = max(0.0, timeout_s - seconds_of_ns(shared.clock.monotonic_ns() - began_ns))
        with shared.lock:
            was_closing = shared.is_closing
            shared.is_closing = True
            shared.accumulator.close()
            shared.changed.notify_all()
        self._pool.close()
        self._io.wakeup()
        if is_inside or not self._io.join(timeout_s):
            with shared.lock:
                shared.abort_error = shared.abort_error or ProducerClosed()
            self._io.wakeup()
            if not is_inside:
                self._io.join(_LAST_WAIT_S)
        if not was_closing:
            self._settings.interceptors.close()

    def partitions_for(self, topic: str) -> list[PartitionView]:
        """The partitions of a topic and their leaders. Waits up to max.block.ms for them; raises ``ProduceError``."""
        with self._lock:
            self._appender.wait_for_topic(topic, None, self._appender.deadline_ms())
            return self._shared.partitions(topic)

    @property
    def fatal_error(self) -> FatalProducerError | None:
        """Why this producer can send nothing anymore, None as long as it can. A new one may do better."""
        with self._lock:
            return self._shared.fatal_error

    @property
    def disconnects(self) -> int:
        """How often a connection to a broker that had carried records was lost."""
        return self._metrics.disconnect_total

    def metrics(self) -> dict[str, float]:
        """Kafka's names and their values, since the start; without an id, ``producer-id`` and ``-epoch`` are -1."""
        identity, pool = self._identity, self._pool
        read = self._metrics.read()
        with self._lock:
            read["producer-id"] = -1 if identity is None else identity.producer_id
            read["producer-epoch"] = -1 if identity is None else identity.producer_epoch
            read["requests-in-flight"] = self._shared.core.requests_in_flight
            read["is-fatal"] = self._shared.fatal_error is not None
        read["buffer-total-bytes"] = pool.total_bytes
        read["buffer-available-bytes"] = pool.available_bytes
        read["waiting-threads"] = pool.waiting
        return read


def _check_timestamp(timestamp_ms: int) -> None:
    if checked_long(timestamp_ms, "a timestamp") < 0:
        raise ValueError(f"Invalid timestamp: {timestamp_ms}. Timestamp should always be non-negative or None.")


def _checked_headers(headers: Sequence[Header] | Mapping[str, bytes | None] | None) -> Sequence[Header]:
    if not headers:
        return ()
    checked: list[Header] = []
    for name, value in headers.items() if isinstance(headers, Mapping) else headers:
        if not isinstance(name, str):
            raise TypeError(f"the name of a header is a text, not {type(name).__name__}")
        checked.append((name, as_bytes(value, f"header {name!r}")))
    return checked


def _failed_future(record: ProducerRecord, error: ProduceError, on_delivery: OnDelivery | None) -> RecordFuture:
    """The outcome of a record that got into no batch; the callback runs here and now."""
    partition = -1 if record.partition is None else record.partition
    delivery = BatchDelivery(record.topic, partition)
    future = RecordFuture((delivery, 0, -1, -1, -1))
    if on_delivery is not None:
        delivery.wanted.append((future, on_delivery))
    delivery.fail(error)
    return future
