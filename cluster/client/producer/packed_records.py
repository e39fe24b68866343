"""PackedRecords: the records of one batch, taken one by one as fast as Python can, and packed for the wire.

Owns which record still fits (batch.size, and the estimate of what compression leaves), the bytes of the
records and the futures that are given for them. Does not own the header of the batch, compression, nor what becomes of
the batch: ``batch.py`` and ``batch_life.py``.

Not thread-safe: who appends and who builds hold one lock. A signal may end an append with an exception after any call,
and the batch is still sent: a record is taken in steps without a call between them, or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence

from cluster.client.producer.batch_life import BatchLife
from cluster.client.producer.encoding import (
    NO_HEADERS,
    NULL,
    OFFSETS,
    RECORD_OVERHEAD_BYTES,
    as_bytes,
    record_parts,
    size_upper_bound,
    sized,
    time_part,
)
from cluster.client.producer.futures import OnDelivery, RecordFuture
from cluster.protocol.batch import HEADER_BYTES
from cluster.protocol.records import Header


class PackedRecords(BatchLife):
    """``limit_bytes`` is batch.size, header included; a first record that is larger is taken anyway.

    ``factor`` is what a byte is expected to take when it is compressed. ``memory_bytes`` is what the batch holds of
    buffer.memory.
    """

    __slots__ = (
        "_base_timestamp_ms",
        "_factor",
        "_head",
        "_key_bytes",
        "_key_head",
        "_keys",
        "_last_timestamp_ms",
        "_max_timestamp_ms",
        "_middle",
        "_packed_bytes",
        "_parts",
        "_room",
        "_size",
        "_surely_bytes",
        "_time_part",
        "_value_bytes",
        "_values",
        "limit_bytes",
        "memory_bytes",
    )

    def __init__(self, topic: str, partition: int, limit_bytes: int, factor: float, created_ms: int) -> None:
        super().__init__(topic, partition, created_ms)
        self.limit_bytes = limit_bytes
        self.memory_bytes = limit_bytes
        self._factor = factor
        self._room = self._surely_bytes = limit_bytes - HEADER_BYTES
        self._parts: list[bytes] = []
        self._packed_bytes = 0
        self._base_timestamp_ms = self._max_timestamp_ms = -1
        # The time of the last record, what that is on the wire, and the sizes; -1 is null.
        self._last_timestamp_ms: int | None = None
        self._time_part = b""
        self._key_bytes = self._value_bytes = -1
        # A span: records that are like the last, and are packed later; each of _size bytes.
        self._keys: list[bytes] = []
        self._values: list[bytes] = []
        self._head = self._key_head = self._middle = b""
        self._size = 0

    def try_append(
        self,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
        on_delivery: OnDelivery | None,
    ) -> RecordFuture | None:
        """Take a record, unless it does not fit anymore or the batch is closed: then None. The first always fits.

        ``timestamp_ms`` is milliseconds since the epoch. Raises ``TypeError`` if key or value is no bytes.
        """
        count = self.record_count
        # Nearly every record is of the same millisecond and sizes as the one before: nothing is packed of it now.
        if (
            count < self._span_end
            and timestamp_ms == self._last_timestamp_ms
            and type(value) is bytes
            and len(value) == self._value_bytes
            and not headers
        ):
            if key is None and self._key_bytes < 0:
                key_bytes = -1
            elif type(key) is bytes and len(key) == self._key_bytes:
                key_bytes = self._key_bytes
                self._keys += (key,)
            else:
                return self._append_unlike(timestamp_ms, key, value, headers, on_delivery)
            self._values += (value,)
            self.record_count = count + 1
            future = RecordFuture((self.delivery, count, timestamp_ms, key_bytes, self._value_bytes))
            if on_delivery is not None:
                self.delivery.wanted.append((future, on_delivery))
            return future
        return self._append_unlike(timestamp_ms, key, value, headers, on_delivery)

    def _append_unlike(
        self,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
        on_delivery: OnDelivery | None,
    ) -> RecordFuture | None:
        if self.is_closed:
            return None
        if self._span_end or self._values:
            self._pack_span()
        key, value = as_bytes(key, "key"), as_bytes(value, "value")
        key_bytes, value_bytes = -1 if key is None else len(key), -1 if value is None else len(value)
        count = self.record_count
        if timestamp_ms == self._last_timestamp_ms and value is not None and not headers and count < len(OFFSETS):
            is_taken = self._append_at_once(key, value)
        else:
            is_taken = self._append_any(timestamp_ms, key, value, headers)
        if not is_taken:
            return None
        self._key_bytes, self._value_bytes = key_bytes, value_bytes
        future = RecordFuture((self.delivery, count, timestamp_ms, key_bytes, value_bytes))
        if on_delivery is not None:
            self.delivery.wanted.append((future, on_delivery))
        return future

    def _append_at_once(self, key: bytes | None, value: bytes) -> bool:
        """A record of the same millisecond; perhaps the first of a span."""
        count = self.record_count
        offset = OFFSETS[count]
        value_bytes = len(value)
        middle, value_size = sized(value_bytes)
        if key is None:
            key_bytes, key_head, key_size = -1, b"", len(NULL)
            middle = NULL + middle
        else:
            key_bytes = len(key)
            key_head, key_size = sized(key_bytes)
        length, size = sized(len(self._time_part) + len(offset) + key_size + value_size + len(NO_HEADERS))
        packed_bytes = self._packed_bytes + size
        if packed_bytes > self._surely_bytes and not self._has_room(size):
            return False
        head = length + self._time_part
        # Those that follow may be packed together, as long as nothing of them changes but the offset, whose varint may
        # not become longer, and all of them fit.
        fit = (self._surely_bytes - packed_bytes) // size
        span_end = min(1 << (7 * len(offset) - 1), len(OFFSETS), count + 1 + fit)
        if key is None:
            self._parts += (head, offset, middle, value, NO_HEADERS)
        else:
            self._parts += (head, offset, key_head, key, middle, value, NO_HEADERS)
        self._packed_bytes = packed_bytes
        self.record_count = count + 1
        if key_bytes == self._key_bytes and value_bytes == self._value_bytes:
            self._head, self._key_head, self._middle, self._size = head, key_head, middle, size
            self._span_end = span_end
        return True

    def _append_any(self, timestamp_ms: int, key: bytes | None, value: bytes | None, headers: Sequence[Header]) -> bool:
        """Any record, among them the first of a millisecond."""
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
            return False
        self._max_timestamp_ms = max(self._max_timestamp_ms, timestamp_ms)
        self._last_timestamp_ms = timestamp_ms
        self._time_part = before_offset
        self._parts += parts
        self._packed_bytes += size
        self.record_count = count + 1
        return True

    def _pack_span(self) -> None:
        """Pack the records that were taken without."""
        self._span_end = 0
        values, keys = self._values, self._keys
        if not values:
            return
        count = len(values)
        offsets = OFFSETS[self.record_count - count : self.record_count]
        # What ends a record and begins the next, whose parts are laid out by the stride: no step of Python for each.
        between = [NO_HEADERS + self._head] * count
        if keys:
            parts = [self._middle] * (6 * count + 1)
            parts[1::6], parts[3::6], parts[5::6], parts[6::6] = offsets, keys, values, between
            parts[2::6] = [self._key_head] * count
        else:
            parts = [self._middle] * (4 * count + 1)
            parts[1::4], parts[3::4], parts[4::4] = offsets, values, between
        parts[0], parts[-1] = self._head, NO_HEADERS
        self._parts += parts
        self._packed_bytes += self._size * count
        self._keys = []
        self._values = []

    @property
    def record_bytes(self) -> int:
        """All records, uncompressed."""
        return self._packed_bytes + self._size * len(self._values)

    def _has_room(self, size_bytes: int) -> bool:
        # What was taken is estimated as it is compressed; a further record is counted in full, as in Kafka.
        return self.record_bytes * self._factor + size_bytes <= self._room

    def _packed(self) -> bytes:
        """All records as they are on the wire, uncompressed. They are not kept: this is for once."""
        self._pack_span()
        records = b"".join(self._parts)
        self._parts = []
        return records
