"""What a batch is beside its bytes: its attempts, its place in the producer's sequence, and its outcome.

Owns the fields that the accumulator, the sender and the producer's identity keep with a batch (Kafka's
ProducerBatch). Does not own records, nor decides when anything of this changes.
"""

from __future__ import annotations

from collections.abc import Mapping

from cluster.client.producer.delivery import ProduceError
from cluster.client.producer.futures import BatchDelivery
from cluster.protocol.batch import increment_sequence


class BatchLife:
    """Times are a monotonic clock's milliseconds. ``leader_epoch_at_attempt`` is -1 until there was an attempt.

    Not thread-safe, but for ``wait_until_done``, and of a closed batch ``complete`` and ``fail``.
    """

    __slots__ = (
        "_is_stale",
        "_span_end",
        "_transactional",
        "attempts",
        "base_sequence",
        "created_ms",
        "delivery",
        "is_closed",
        "is_in_retry",
        "last_attempt_ms",
        "leader_epoch_at_attempt",
        "partition",
        "producer_epoch",
        "producer_id",
        "record_count",
        "topic",
    )

    def __init__(self, topic: str, partition: int, created_ms: int) -> None:
        self.topic = topic
        self.partition = partition
        self.created_ms = self.last_attempt_ms = created_ms
        self.attempts = 0
        self.is_in_retry = False
        self.leader_epoch_at_attempt = -1
        self.producer_id = self.producer_epoch = self.base_sequence = -1
        self.record_count = 0
        self.delivery = BatchDelivery(topic, partition)
        self._transactional = False
        self._is_stale = False
        self.is_closed = False
        # Up to this record the next may be taken the short way, if it is like the last.
        self._span_end = 0

    def close(self) -> None:
        """Take no record anymore."""
        self.is_closed = True
        self._span_end = 0

    @property
    def is_done(self) -> bool:
        """Whether the outcome is known; also of a batch that was divided."""
        return self.delivery.place_of(0)[0].is_finished

    @property
    def has_sequence(self) -> bool:
        return self.base_sequence >= 0

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record, -1 if there is none; 2147483647 is followed by 0."""
        return increment_sequence(self.base_sequence, self.record_count - 1) if self.base_sequence >= 0 else -1

    def set_producer_state(self, producer_id: int, epoch: int, base_sequence: int, transactional: bool = False) -> None:
        """Give the records their place in the producer's sequence, when the batch is drained.

        Raises ``RuntimeError`` if it has one: changing that would hide a duplicate from the broker.
        """
        if self.base_sequence >= 0:
            raise RuntimeError(f"{self!r} has a sequence, and would be written twice under another one")
        self._transactional = transactional
        self._take_producer_state(producer_id, epoch, base_sequence)

    def reset_producer_state(self, producer_id: int, epoch: int, base_sequence: int) -> None:
        """Give the records another place, after the producer has another epoch or id: none of them was written."""
        self._take_producer_state(producer_id, epoch, base_sequence)

    def _take_producer_state(self, producer_id: int, epoch: int, base_sequence: int) -> None:
        self.producer_id, self.producer_epoch, self.base_sequence = producer_id, epoch, base_sequence
        self._is_stale = True

    def reenqueued(self, now_ms: int) -> None:
        """Note that an attempt failed and another is to follow."""
        self.attempts += 1
        self.last_attempt_ms = max(self.last_attempt_ms, now_ms)
        self.is_in_retry = True

    def complete(self, base_offset: int, log_append_time_ms: int = -1) -> bool:
        """The records were written from ``base_offset`` on (-1: not known); call back those who asked for that.

        ``log_append_time_ms`` is the broker's time if the topic takes that, else -1. False if there was an outcome.
        """
        self.close()
        return self.delivery.complete(base_offset, log_append_time_ms)

    def fail(self, error: ProduceError, record_errors: Mapping[int, ProduceError] | None = None) -> bool:
        """The records will not be sent anymore; ``record_errors`` are those of single records, by index.

        False if there was an outcome.
        """
        self.close()
        return self.delivery.fail(error, record_errors)

    def wait_until_done(self, timeout_s: float | None = None) -> bool:
        """Wait until the outcome is known and every callback has run, those of its parts too. False: not in time."""
        return self.delivery.wait_until_told(timeout_s)
