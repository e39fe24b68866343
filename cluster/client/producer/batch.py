"""ProducerBatch: the records for one partition that travel together, from the first append to the outcome.

Owns a batch's bytes (v2) around its records, their compression, and its division when a broker finds it too large
(Kafka's ProducerBatch and MemoryRecordsBuilder). Does not own when it is sent, again or at all, nor memory; its records
and what fits are ``packed_records``', sequence and attempts ``batch_life``'s, who waits for a record is ``futures``'.

Not thread-safe: who appends and who builds hold one lock.
"""

from __future__ import annotations

from cluster.client.producer.packed_records import PackedRecords
from cluster.protocol.batch import CODEC_NONE, HEADER_BYTES, TRANSACTIONAL_BIT, increment_sequence
from cluster.protocol.compression import compress
from cluster.protocol.records import decode_records, seal_batch

#: An estimate by the ratio of earlier batches is taken this much larger, as Kafka does.
_ESTIMATION_FACTOR = 1.05


class ProducerBatch(PackedRecords):
    """``limit_bytes`` is batch.size; ``estimated_ratio`` what compression is expected to leave of it (1.0: all).

    ``level`` is the codec's, None for its default. ``compression_ratio`` is what compression left of the records, once
    the batch is built. The rest is ``PackedRecords``' and ``BatchLife``'s.
    """

    __slots__ = ("_built", "codec", "compression_ratio", "level")

    def __init__(
        self,
        topic: str,
        partition: int,
        limit_bytes: int,
        codec: int,
        created_ms: int,
        estimated_ratio: float = 1.0,
        level: int | None = None,
    ) -> None:
        factor = 1.0 if codec == CODEC_NONE else estimated_ratio * _ESTIMATION_FACTOR
        super().__init__(topic, partition, limit_bytes, factor, created_ms)
        self.codec = codec
        self.level = level
        self.compression_ratio = 1.0
        self._built: bytes | None = None

    def __repr__(self) -> str:
        state = "closed" if self.is_closed else "open"
        return (
            f"ProducerBatch({self.topic}-{self.partition}, {self.record_count} records, {self.size_bytes} bytes, "
            f"{state}, sequence {self.base_sequence} of {self.producer_id}/{self.producer_epoch}, "
            f"attempts {self.attempts})"
        )

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
            records: bytes | memoryview = self._packed()
            if self.codec != CODEC_NONE:
                records = compress(self.codec, records, self.level)
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
            record = timestamp_ms, key, value, headers, None
            if not parts or parts[-1].record_count == most or parts[-1].try_append(*record) is None:
                parts.append(
                    ProducerBatch(
                        self.topic, self.partition, limit_bytes, self.codec, self.created_ms, ratio, self.level
                    )
                )
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
