"""Reading a segment's file batch by batch: from one to the next, and where the next one is lost behind damage.

Owns the reading in chunks: small batches share one read, and of large ones only the headers are read. Owns too how a
torn tail is told from damage in the middle of a log, where no recovery point says what was synced: a crash tears the
end, and behind the batch that was being written there is nothing that was ever whole. So if a sound batch follows a bad
one, something has damaged what was written before. Does not own what is made of the headers, nor what is done about
damage (``recovery.py``).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from cluster.log.roll import INT32_MAX
from cluster.protocol.batch import (
    HEADER_BYTES,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    MIN_BATCH_LENGTH,
    BatchHeader,
    crc_ok,
    parse_header,
)
from cluster.protocol.errors import CorruptBatch
from cluster.seams.storage import File

LOOKUP_CHUNK_BYTES = 16_384
SCAN_CHUNK_BYTES = 65_536
CRC_CHUNK_BYTES = 1_048_576
#: After a batch of this size only the next header is read, not the bytes that follow it.
LARGE_BATCH_BYTES = 4096

_BASE_OFFSET_AND_LENGTH = struct.Struct(">qi")


def scan_batches(
    file: File, position: int, end: int, *, check_crc: bool = False, chunk_bytes: int = SCAN_CHUNK_BYTES
) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each batch in ``[position, end)``.

    Raises ``CorruptBatch`` at the first that is torn or cannot be, or whose checksum fails if that is asked for; all
    batches yielded before are good.
    """
    buffer = b""
    start = position
    want = CRC_CHUNK_BYTES if check_crc else chunk_bytes
    while position < end:
        at = position - start
        if at + HEADER_BYTES > len(buffer):
            buffer = file.pread(min(want, end - position), position)
            start, at = position, 0
        header = parse_header(buffer, at)
        size = header.batch_length + LOG_OVERHEAD
        if position + size > end:
            raise CorruptBatch(f"a batch of {size} bytes at {position} where {end - position} are left")
        if check_crc:
            if at + size > len(buffer):
                buffer = file.pread(min(max(size, want), end - position), position)
                start, at = position, 0
            if not crc_ok(buffer, at, size):
                raise CorruptBatch(f"the checksum of the batch at {position} does not hold")
        else:
            want = HEADER_BYTES if size >= LARGE_BATCH_BYTES else chunk_bytes
        yield position, header
        position += size


def sound_batch_behind(file: File, position: int, at_least: int) -> int | None:
    """Where the first whole batch ends, as an offset, that begins anywhere from byte ``position`` on with an offset of
    ``at_least`` or not far above; None if no batch was found. Raises ``OSError``.
    """
    size = file.size_bytes
    while position + HEADER_BYTES <= size:
        data = file.pread(min(CRC_CHUNK_BYTES, size - position), position)
        at = data.find(MAGIC, MAGIC_AT) - MAGIC_AT
        while at >= 0 and at + HEADER_BYTES <= len(data):
            base_offset, length = _BASE_OFFSET_AND_LENGTH.unpack_from(data, at)
            if at_least <= base_offset <= at_least + INT32_MAX and length >= MIN_BATCH_LENGTH:
                header = parse_header(data, at)
                batch = file.pread(min(header.size_bytes, size - position - at), position + at)
                if header.last_offset_delta >= 0 and crc_ok(batch, 0, header.size_bytes):
                    return header.next_offset
            at = data.find(MAGIC, at + MAGIC_AT + 1) - MAGIC_AT
        if len(data) < HEADER_BYTES:
            break
        position += len(data) - HEADER_BYTES + 1
    return None
