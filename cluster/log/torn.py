"""Telling a torn tail from damage in the middle of a log, where no recovery point says what was synced.

A crash tears the end: behind the batch that was being written there is nothing that was ever whole. So if a sound batch
follows a bad one, something has damaged what was written before. Owns the search for such a batch. Does not own what is
done then (``recovery.py``).
"""

from __future__ import annotations

import struct

from cluster.log.roll import INT32_MAX
from cluster.log.scan import CRC_CHUNK_BYTES
from cluster.protocol.batch import HEADER_BYTES, MAGIC, MAGIC_AT, MIN_BATCH_LENGTH, crc_ok, parse_header
from cluster.seams.storage import File

_BASE_OFFSET_AND_LENGTH = struct.Struct(">qi")


def sound_batch_behind(file: File, position: int, at_least: int) -> int | None:
    """Where the first whole batch ends, as an offset, that begins anywhere from byte ``position`` on with an offset of
    ``at_least`` or not far above; None if there is none. Raises ``OSError``.
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
