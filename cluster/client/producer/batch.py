"""ProducerBatch: the records for one partition that travel together, from the first append to the outcome.

Owns a batch's bytes (v2, kafka-semantics 2.1), its limits, and its division when a broker finds it too large (Kafka's
ProducerBatch and MemoryRecordsBuilder: seeds 002 section 3 and 004; semantics 8.3, 8.4). Does not own when it is sent,
again or at all, nor memory; sequence and attempts are ``batch_life``'s, who waits for a record is ``futures``'.

Not thread-safe: who appends and who builds hold one lock.
"""

from __future__ import annotations

from collections.abc import Sequence

from cluster.client.producer.batch_life import BatchLife
from cluster.client.producer.encoding import (
    NO_HEADERS,
    OFFSETS,
    OFFSETS_AND_NULL_KEY,
    RECORD_OVERHEAD_BYTES,
    SIZED,
    as_bytes,
    record_parts,
    size_upper_bound,
    time_part,
)
from cluster.client.producer.futures import OnDelivery, RecordFuture
from cluster.protocol.batch import CODEC_NONE, HEADER_BYTES, TRANSACTIONAL_BIT, increment_sequence
from cluster.protocol.compression import compress
from cluster.protocol.records import Header, decode_records, seal_batch

#: An estimate by the ratio of earlier batches is taken this much larger, as Kafka does.
_ESTIMATION_FACTOR = 1.05


class ProducerBatch(BatchLife):
    """``limit_bytes`` is batch.size; ``estimated_ratio`` what compression is expected to leave of it (1.0: all).

    ``memory_bytes`` is what the batch holds of buffer.memory, ``record_bytes`` its records uncompressed, and
    ``compression_ratio`` what compression left of them, once it is built. The rest is ``BatchLife``'s.
    """

    __slots__ = (
        "_base_timestamp_ms",
        "_built",
        "_factor",
        "_max_timestamp_ms",
        "_parts",
        "_room",
        "_surely_bytes",
        "_time_part",
        "_time_size",
        "codec",
        "compression_ratio",
        "limit_bytes",
        "memory_bytes",
        "record_bytes",
    )

    def __init__(
        self, topic: str, partition: int, limit_bytes: int, codec: int, created_ms: int, estimated_ratio: float = 1.0
    ) -> None:
        super().__init__(topic, partition, created_ms)
        self.limit_bytes = limit_bytes
        self.codec = codec
        self.record_bytes = 0
        self.memory_bytes = limit_bytes
        self.compression_ratio = 1.0
        self._factor = 1.0 if codec == CODEC_NONE else estimated_ratio * _ESTIMATION_FACTOR
        self._room = self._surely_bytes = limit_bytes - HEADER_BYTES
        self._parts: list[bytes] = []
        self._built: bytes | None = None
        self._base_timestamp_ms = self._max_timestamp_ms = -1
        # The bytes of _last_timestamp_ms, and their count with the one that says that there are no headers.
        self._time_part = b""
        self._time_size = 0

    def __repr__(self) -> str:
        state = "closed" if self.is_closed else "open"
        return (
            f"ProducerBatch({self.topic}-{self.partition}, {self.record_count} records, {self.size_bytes} bytes, "
            f"{state}, sequence {self.base_sequence} of {self.producer_id}/{self.producer_epoch}, "
            f"attempts {self.attempts})"
        )

    def try_append(
        self,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
        on_delivery: OnDelivery | None,
        now_ms: int,
    ) -> RecordFuture | None:
        """Take a record, unless it does not fit any more or the batch is closed: then None. The first always fits.

        ``timestamp_ms`` is milliseconds since the epoch. Raises ``TypeError`` if key or value is no bytes.
        """
        count = self.record_count
        # Nearly every record is of the same millisecond as the one before, and small; what is not goes the long way.
        if timestamp_ms != self._last_timestamp_ms or headers or type(value) is not bytes:
            return self._append_any(timestamp_ms, key, value, headers, on_delivery, now_ms)
        try:
            value_bytes = len(value)
            value_length, value_size = SIZED[value_bytes]
            if key is None:
                key_bytes = -1
                offset, offset_size = OFFSETS_AND_NULL_KEY[count]
                length, size = SIZED[self._time_size + offset_size + value_size]
                parts: tuple[bytes, ...] = (length, self._time_part, offset, value_length, value, NO_HEADERS)
            elif type(key) is bytes:
                key_bytes = len(key)
                key_length, key_size = SIZED[key_bytes]
                offset, offset_size = OFFSETS[count]
                length, size = SIZED[self._time_size + offset_size + key_size + value_size]
                parts = (length, self._time_part, offset, key_length, key, value_length, value, NO_HEADERS)
            else:
                return self._append_any(timestamp_ms, key, value, headers, on_delivery, now_ms)
        except IndexError:
            return self._append_any(timestamp_ms, key, value, headers, on_delivery, now_ms)
        record_bytes = self.record_bytes + size
        if record_bytes > self._surely_bytes and not self._has_room(size):
            return None
        self._parts += parts
        self.record_bytes = record_bytes
        self.record_count = count + 1
        self.last_append_ms = now_ms
        future = RecordFuture((self.delivery, count, timestamp_ms, key_bytes, value_bytes))
        if on_delivery is not None:
            self.delivery.wanted.append((future, on_delivery))
        return future

    def _append_any(
        self,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
        on_delivery: OnDelivery | None,
        now_ms: int,
    ) -> RecordFuture | None:
        if self.is_closed:
            return None
        key, value = as_bytes(key, "key"), as_bytes(value, "value")
        count = self.record_count
        before_offset = time_part(timestamp_ms - self._base_timestamp_ms if count else 0)
        parts, size = record_parts(before_offset, count, key, value, headers)
        if not count:
            self._base_timestamp_ms = self._max_timestamp_ms = timestamp_ms
            # Only of a large record is it worth while to know the bound.
            if HEADER_BYTES + RECORD_OVERHEAD_BYTES + size > self.limit_bytes:
                self.memory_bytes = max(self.limit_bytes, size_upper_bound(key, value, headers))
            self._room = self.memory_bytes - HEADER_BYTES
            # Below this no estimate says that it is too much, and a sum of integers is enough.
            self._surely_bytes = int(self._room / max(1.0, self._factor))
        elif not self._has_room(size):
            return None
        self._max_timestamp_ms = max(self._max_timestamp_ms, timestamp_ms)
        self._last_timestamp_ms = timestamp_ms
        self._time_part = before_offset
        self._time_size = len(before_offset) + len(NO_HEADERS)
        self._parts += parts
        self.record_bytes += size
        self.record_count = count + 1
        self.last_append_ms = now_ms
        key_bytes, value_bytes = -1 if key is None else len(key), -1 if value is None else len(value)
        future = RecordFuture((self.delivery, count, timestamp_ms, key_bytes, value_bytes))
        if on_delivery is not None:
            self.delivery.wanted.append((future, on_delivery))
        return future

    def _has_room(self, size_bytes: int) -> bool:
        # What was taken is estimated as it is compressed; a further record is counted in full, as in Kafka.
        return self.record_bytes * self._factor + size_bytes <= self._room

    @property
    def size_bytes(self) -> int:
        """The whole batch on the wire: an estimate as long as it is not built."""
        if self._built is not None:
            return len(self._built)
        return HEADER_BYTES + int(self.record_bytes * self._factor)

    @property
    def is_full(self) -> bool:
        """Whether there is no sense in waiting for more records."""
        return self.is_closed or (self.record_count > 0 and self.record_bytes * self._factor >= self._room)

    def build(self) -> bytes:
        """The finished batch, closed by that. Raises ``ValueError`` if it has no record."""
        if self._built is None:
            if not self.record_count:
                raise ValueError(f"a batch for {self.topic}-{self.partition} without a record")
            self.close()
            records: bytes | memoryview = b"".join(self._parts)
            self._parts = []
            if self.codec != CODEC_NONE:
                records = compress(self.codec, records)
                self.compression_ratio = len(records) / self.record_bytes
        elif self._is_stale:
            records = memoryview(self._built)[HEADER_BYTES:]
        else:
            return self._built
        self._is_stale = False
        self._built = seal_batch(
            records,
            attributes=self.codec | (TRANSACTIONAL_BIT if self._transactional else 0),
            record_count=self.record_count,
            base_timestamp=self._base_timestamp_ms,
            max_timestamp=self._max_timestamp_ms,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.base_sequence,
        )
        return self._built

    def split(self, limit_bytes: int) -> list[ProducerBatch]:
        """The same records in smaller batches, in order and closed, with the same sequences; this one is over.

        Futures and callbacks go to the parts. The last part holds this batch's share of buffer.memory, for that is
        when it can be given back. Raises ``RuntimeError`` if this batch has an outcome or a single record.
        """
        if self.record_count < 2:
            raise RuntimeError(f"{self!r} cannot be split")
        parts: list[ProducerBatch] = []
        firsts: list[int] = []
        # If all would fit into one again, the broker takes less than we are told: then two, so that it comes to an end.
        fits = HEADER_BYTES + self.record_bytes <= limit_bytes
        most = (self.record_count + 1) // 2 if fits else self.record_count - 1
        ratio = max(1.0, self.compression_ratio)
        for index, (_offset, timestamp_ms, key, value, headers) in enumerate(decode_records(self.build())):
            record = timestamp_ms, key, value, headers, None, self.last_append_ms
            if not parts or parts[-1].record_count == most or parts[-1].try_append(*record) is None:
                parts.append(ProducerBatch(self.topic, self.partition, limit_bytes, self.codec, self.created_ms, ratio))
                parts[-1].try_append(*record)
                firsts.append(index)
        if not self.delivery.divide([(first, part.delivery) for first, part in zip(firsts, parts, strict=True)]):
            raise RuntimeError(f"{self!r} has an outcome, and cannot be split")
        for first, part in zip(firsts, parts, strict=True):
            part.close()
            part.memory_bytes = 0
            if self.has_sequence:
                sequence = increment_sequence(self.base_sequence, first)
                part.set_producer_state(self.producer_id, self.producer_epoch, sequence, self._transactional)
        parts[-1].memory_bytes, self.memory_bytes = self.memory_bytes, 0
        return parts
