"""RecordAppender: a record that no open batch took: metadata, partition, memory, a new batch (Kafka's ``doSend``).

Owns the waiting of a send, within one budget of max.block.ms, and the refusal of records that fit nowhere. Does not own
the short way of nearly all records, which is ``Producer.send``, nor what follows once the record is in a batch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from cluster.client.argument_checks import checked_topic
from cluster.client.producer.batch import ProducerBatch
from cluster.client.producer.delivery import ProduceError, RecordTooLarge
from cluster.client.producer.encoding import size_upper_bound
from cluster.client.producer.futures import OnDelivery, RecordFuture
from cluster.client.producer.partitioner import partition_for_key
from cluster.client.producer.shared_state import ProducerShared
from cluster.client.producer.topic_choice import TopicChoice
from cluster.client.wiring import no_broker_answered
from cluster.protocol.errors import ErrorCode
from cluster.protocol.records import Header
from cluster.seams.units import seconds_of_ms

#: What more metadata do not change.
_FINAL_ERRORS = (ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


class RecordAppender:
    """Safe from any thread. ``wakeup`` lets the I/O thread look; ``may_wait`` says whether this thread may."""

    def __init__(self, shared: ProducerShared, wakeup: Callable[[], None], may_wait: Callable[[], bool]) -> None:
        self._shared = shared
        self._wakeup = wakeup
        self._may_wait = may_wait

    def __repr__(self) -> str:
        return f"RecordAppender({self._shared!r})"

    def deadline_ms(self, timeout_ms: int | None = None) -> int:
        """Until when a call that begins now may wait: max.block.ms, or not at all in a callback."""
        if timeout_ms is None:
            timeout_ms = self._shared.settings.max_block_ms
        return self._shared.clock.monotonic_ms() + (timeout_ms if self._may_wait() else 0)

    def append(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        partition: int | None,
        headers: Sequence[Header],
        timestamp_ms: int,
        on_delivery: OnDelivery | None,
        deadline_ms: int,
    ) -> RecordFuture:
        """Put a record into a batch, by ``deadline_ms``. Raises ``ProduceError`` if that cannot be, and
        ``IllegalTransactionCall``.
        """
        shared = self._shared
        settings, transactions = shared.settings, shared.transactions
        if transactions is not None:
            with shared.lock:
                transactions.ensure_may_send()
        size_bytes = size_upper_bound(key, value, headers)
        if size_bytes > settings.sender.max_request_size:
            raise RecordTooLarge.than(size_bytes, "max.request.size", settings.sender.max_request_size)
        needed_bytes = max(settings.limit_bytes, size_bytes)
        is_sticky = partition is None and (key is None or settings.ignores_keys)
        held_bytes = 0
        try:
            while True:
                with shared.lock:
                    choice = self.wait_for_topic(topic, partition, deadline_ms)
                    now_ms = shared.clock.monotonic_ms()
                    record = (timestamp_ms, key, value, headers, on_delivery)
                    chosen = self._partition(choice, partition, key, is_sticky)
                    batch = choice.open.get(chosen)
                    future = None if batch is None else batch.try_append(*record)
                    if future is None and is_sticky:
                        chosen = choice.next_partition()
                        batch = choice.open.get(chosen)
                        future = None if batch is None else batch.try_append(*record)
                    if future is not None:
                        if is_sticky:
                            choice.sticky_batch = batch
                        return future
                    held_bytes = held_bytes or (needed_bytes if shared.pool.try_allocate(needed_bytes) else 0)
                    if held_bytes:
                        if transactions is not None:
                            # Batches that are open have their partitions in the transaction.
                            transactions.use_partition((topic, chosen))
                        if batch is not None:
                            # What comes later must not get in before this record.
                            batch.close()
                        batch = self._new_batch(choice, chosen, now_ms)
                        future = batch.try_append(*record)
                        if future is None:
                            raise RuntimeError(f"{batch!r} did not take its first record")
                        batch.memory_bytes, held_bytes = held_bytes, 0
                        shared.accumulator.add(batch)
                        if is_sticky:
                            choice.sticky_batch = batch
                        shared.use(topic, now_ms)
                        break
                self._wait_for_memory(needed_bytes, deadline_ms)
                held_bytes = needed_bytes
        finally:
            if held_bytes:
                shared.pool.release(held_bytes)
        self._wakeup()
        return future

    def wait_for_topic(self, topic: str, partition: int | None, deadline_ms: int) -> TopicChoice:
        """What is known of ``topic``, as soon as it is. The lock is held, and let go while this waits.

        Raises ``ProduceError``: not in time, or there can be no such topic; ``ProducerClosed``; and ``TypeError`` and
        ``ValueError`` for what is no name of a topic.
        """
        shared = self._shared
        began_ms = shared.clock.monotonic_ms()
        asked_version: int | None = None
        while True:
            if shared.is_closing:
                raise shared.refusal
            choice = shared.topics.get(topic)
            if choice is not None and (partition is None or partition < choice.partition_count):
                return choice
            if asked_version is None:
                # What cannot be sent would be the end of the thread that sends.
                checked_topic(topic)
            code = shared.topic_error(topic)
            is_asked = asked_version is not None
            asked_version = shared.want(topic, partition) if asked_version is None else asked_version
            if code in _FINAL_ERRORS and is_asked and shared.version > asked_version:
                raise ProduceError(code, f"topic {topic!r}")
            self._wakeup()
            now_ms = shared.clock.monotonic_ms()
            if now_ms >= deadline_ms:
                text = _not_known(topic, partition, choice, now_ms - began_ms)
                if not shared.version:
                    text += f" {no_broker_answered(shared.settings.config)}"
                raise ProduceError(ErrorCode.REQUEST_TIMED_OUT, text)
            shared.changed.wait(min(seconds_of_ms(deadline_ms - now_ms), threading.TIMEOUT_MAX))
            if shared.topic_error(topic) not in _FINAL_ERRORS:
                shared.want(topic, partition)

    def _partition(self, choice: TopicChoice, partition: int | None, key: bytes | None, is_sticky: bool) -> int:
        if partition is not None:
            return partition
        if is_sticky or key is None:
            return choice.partitioner.partition
        return partition_for_key(key, choice.partition_count)

    def _new_batch(self, choice: TopicChoice, partition: int, now_ms: int) -> ProducerBatch:
        settings, shared = self._shared.settings, self._shared
        ratio = shared.ratios.estimate(choice.topic, settings.codec)
        limit_bytes, codec, level = settings.limit_bytes, settings.codec, settings.level
        return ProducerBatch(choice.topic, partition, limit_bytes, codec, now_ms, ratio, level)

    def _wait_for_memory(self, size_bytes: int, deadline_ms: int) -> None:
        # What is there is sent without lingering as soon as a caller waits: let the other thread see that.
        left_ms = max(0, deadline_ms - self._shared.clock.monotonic_ms())
        self._shared.pool.allocate(size_bytes, left_ms, self._wakeup)


def _not_known(topic: str, partition: int | None, choice: TopicChoice | None, waited_ms: int) -> str:
    if choice is not None:
        return (
            f"Partition {partition} of topic {topic} with partition count {choice.partition_count} "
            f"is not present in metadata after {waited_ms} ms."
        )
    return f"Topic {topic} not present in metadata after {waited_ms} ms."
