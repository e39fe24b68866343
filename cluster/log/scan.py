"""Walking the batches of a segment file, by their headers alone or with their checksums.

Owns the reading in chunks: small batches share one read, and of large ones only the headers are read. Does not own
what is made of the headers.
"""

from __future__ import annotations

from collections.abc import Iterator

from cluster.protocol.batch import HEADER_BYTES, LOG_OVERHEAD, BatchHeader, crc_ok, parse_header
from cluster.protocol.errors import CorruptBatch
from cluster.seams.storage import File

LOOKUP_CHUNK_BYTES = 16_384
SCAN_CHUNK_BYTES = 65_536
CRC_CHUNK_BYTES = 1_048_576
#: After a batch of this size only the next header is read, not the bytes that follow it.
LARGE_BATCH_BYTES = 4096


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
