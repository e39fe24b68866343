"""Record batch v2: its 61-byte header, its checksum, and what may be changed in place.

Owns the layout of Kafka's DefaultRecordBatch (docs/reference/kafka.md "Record batch") and the checks 3 and 9-13 of
docs/produce-checks.md. Does not look at records: the hot path works on whole batches (``cluster.protocol.records`` is
the cold path), and knows no log, time or sequence state.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from crc32c import crc32c

from cluster.protocol.errors import CorruptBatch, ErrorCode, InvalidBatch
from cluster.protocol.primitives import INT32, INT64, Buffer

HEADER_BYTES = 61
#: Bytes before those that ``batch_length`` counts: base offset and batch length.
LOG_OVERHEAD = 12
MIN_BATCH_LENGTH = HEADER_BYTES - LOG_OVERHEAD
MAGIC = 2
INT32_MAX = 2_147_483_647

LEADER_EPOCH_AT = 12
MAGIC_AT = 16
CRC_AT = 17
#: The checksum covers everything from here to the end: not the offset, length and leader epoch before it.
CRC_FROM = 21
MAX_TIMESTAMP_AT = 35

CODEC_MASK = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

CODEC_NONE, CODEC_GZIP, CODEC_SNAPPY, CODEC_LZ4, CODEC_ZSTD = range(5)

_HEADER = struct.Struct(">qiibIhiqqqhii")
_UINT32 = struct.Struct(">I")
_INT16 = struct.Struct(">h")


class BatchHeader(NamedTuple):
    """The header of one batch. Times are milliseconds since the epoch; -1 means none for producer fields."""

    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        """The whole batch, with its header."""
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """-1 for a batch without a sequence."""
        if self.base_sequence < 0:
            return -1
        return increment_sequence(self.base_sequence, self.last_offset_delta)

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_log_append_time(self) -> bool:
        return self.attributes & LOG_APPEND_TIME_BIT != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """From when on compaction may drop the tombstones of this batch, None if it has not met them yet."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None


#: A header from its fields: as ``BatchHeader._make``, which costs two calls more for every batch.
_new_header: Callable[[tuple[int, ...]], BatchHeader] = partial(tuple.__new__, BatchHeader)


def increment_sequence(sequence: int, increment: int) -> int:
    """``sequence + increment``, where 2147483647 is followed by 0."""
    if sequence > INT32_MAX - increment:
        return increment - (INT32_MAX - sequence) - 1
    return sequence + increment


def decrement_sequence(sequence: int, decrement: int) -> int:
    """``sequence - decrement``, where 0 is preceded by 2147483647."""
    if sequence < decrement:
        return INT32_MAX - (decrement - sequence) + 1
    return sequence - decrement


def parse_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at ``position``. The bytes after it may be missing.

    Raises ``CorruptBatch`` if fewer than 61 bytes are left, the magic is not 2 or the length cannot be.
    """
    try:
        header = _new_header(_HEADER.unpack_from(buffer, position))
    except struct.error as error:
        raise CorruptBatch(f"no room for a batch header at byte {position} of {len(buffer)}") from error
    if header.magic != MAGIC:
        raise CorruptBatch(f"magic {header.magic} at byte {position}")
    if header.batch_length < MIN_BATCH_LENGTH:
        raise CorruptBatch(f"batch length {header.batch_length} at byte {position}")
    return header


def crc_ok(buffer: Buffer, position: int, size: int) -> bool:
    """Whether the checksum (CRC-32C) of the batch of ``size`` bytes at ``position`` holds."""
    if size < HEADER_BYTES or position < 0 or position + size > len(buffer):
        return False
    view = memoryview(buffer)
    (expected,) = _UINT32.unpack_from(view, position + CRC_AT)
    return bool(crc32c(view[position + CRC_FROM : position + size]) == expected)


def iter_batches(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each whole batch; stops at a partial one at the end. Checksums are not verified.

    Raises ``CorruptBatch`` where a header cannot be.
    """
    position = 0
    total = len(buffer)
    while position + HEADER_BYTES <= total:
        header = parse_header(buffer, position)
        end = position + header.batch_length + LOG_OVERHEAD
        if end > total:
            return
        yield position, header
        position = end


def set_offset_and_epoch(buffer: memoryview | bytearray, position: int, base_offset: int, leader_epoch: int) -> None:
    """Give the batch at ``position`` its place in the log. Both fields are outside the checksum."""
    INT64.pack_into(buffer, position, base_offset)
    INT32.pack_into(buffer, position + LEADER_EPOCH_AT, leader_epoch)


def set_log_append_time(buffer: memoryview | bytearray, position: int, timestamp_ms: int) -> None:
    """Stamp the batch at ``position`` with the broker's time, and recompute its checksum.

    Raises ``CorruptBatch`` if the batch is not wholly there.
    """
    header = parse_header(buffer, position)
    end = position + header.size_bytes
    if end > len(buffer):
        raise CorruptBatch(f"a partial batch at byte {position}")
    _INT16.pack_into(buffer, position + CRC_FROM, header.attributes | LOG_APPEND_TIME_BIT)
    INT64.pack_into(buffer, position + MAX_TIMESTAMP_AT, timestamp_ms)
    _UINT32.pack_into(buffer, position + CRC_AT, crc32c(memoryview(buffer)[position + CRC_FROM : end]))


def only_batch(batch: memoryview, zstd_allowed: bool = True) -> BatchHeader:
    """The header of the only batch that a producer sent for a partition: row 3 of docs/produce-checks.md.

    ``zstd_allowed`` is False for Produce below version 7. Raises ``InvalidBatch`` with the code Kafka answers.
    """
    total = len(batch)
    if total >= HEADER_BYTES:
        # Nearly every batch is as it should be, and that takes one look; the rest is told what is wrong, in order.
        header = _new_header(_HEADER.unpack_from(batch))
        _, batch_length, _, magic, _, attributes, _, _, _, _, _, _, _ = header
        if (
            magic == MAGIC
            and batch_length == total - LOG_OVERHEAD
            and (zstd_allowed or attributes & CODEC_MASK != CODEC_ZSTD)
        ):
            return header
    return only_batch_in_order(batch, zstd_allowed=zstd_allowed)


def only_batch_in_order(batch: memoryview, *, zstd_allowed: bool) -> BatchHeader:
    """``only_batch``, one condition after the other."""
    header = _framed_batch(batch)
    if header.codec == CODEC_ZSTD and not zstd_allowed:
        raise InvalidBatch(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Produce version 7 or newer")
    return header


def validate_from_client(batch: memoryview, header: BatchHeader, max_message_bytes: int) -> None:
    """Check what the header of a producer's batch tells: rows 9-13 of docs/produce-checks.md, in this order.

    Raises ``InvalidBatch`` with the code Kafka answers.
    """
    base_offset, _, _, _, crc, attributes, last_offset_delta, _, _, producer_id, _, base_sequence, record_count = header
    if not (
        base_offset == 0
        and len(batch) <= max_message_bytes
        and record_count == last_offset_delta + 1 > 0
        and (base_sequence >= 0 or producer_id < 0)
        and attributes & (CODEC_MASK | CONTROL_BIT) <= CODEC_ZSTD
        and crc32c(batch[CRC_FROM:]) == crc
    ):
        validate_in_order(batch, header, max_message_bytes)


def validate_in_order(batch: memoryview, header: BatchHeader, max_message_bytes: int) -> None:
    """``validate_from_client``, one condition after the other."""
    if header.base_offset != 0:
        raise InvalidBatch(ErrorCode.INVALID_RECORD, f"base offset {header.base_offset} from a producer, not 0")
    if len(batch) > max_message_bytes:
        raise InvalidBatch(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a batch of {len(batch)} bytes, more than max.message.bytes {max_message_bytes}",
        )
    if not crc_ok(batch, 0, len(batch)):
        raise InvalidBatch(ErrorCode.CORRUPT_MESSAGE, "the checksum of the batch is wrong")
    if header.last_offset_delta < 0 or header.record_count <= 0 or header.record_count != header.last_offset_delta + 1:
        raise InvalidBatch(
            ErrorCode.INVALID_RECORD,
            f"{header.record_count} records but a last offset delta of {header.last_offset_delta}",
        )
    if header.is_control:
        raise InvalidBatch(ErrorCode.INVALID_RECORD, "a control batch from a producer")
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise InvalidBatch(ErrorCode.INVALID_RECORD, "a producer id without a sequence")
    if header.codec > CODEC_ZSTD:
        raise InvalidBatch(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"unknown codec {header.codec}")


def _framed_batch(batch: memoryview) -> BatchHeader:
    """Row 3: exactly one whole batch of magic 2, and nothing after it; a length that cannot be is row 11."""
    total = len(batch)
    if total <= MAGIC_AT:
        raise InvalidBatch(ErrorCode.INVALID_RECORD, f"{total} bytes are no record batch")
    if batch[MAGIC_AT] != MAGIC:
        raise InvalidBatch(ErrorCode.INVALID_RECORD, f"record batch of magic {batch[MAGIC_AT]}, only 2 is accepted")
    (batch_length,) = INT32.unpack_from(batch, 8)
    if batch_length < MIN_BATCH_LENGTH:
        raise InvalidBatch(ErrorCode.CORRUPT_MESSAGE, f"a batch length of {batch_length}")
    size = batch_length + LOG_OVERHEAD
    if size > total:
        raise InvalidBatch(ErrorCode.INVALID_RECORD, f"a batch of {size} bytes of which {total} were sent")
    if size < total:
        raise InvalidBatch(ErrorCode.INVALID_RECORD, f"{total - size} bytes after the only batch that is allowed")
    return parse_header(batch)
