"""Decompresses the records of one batch. Owns Kafka's four codecs and their framing (CompressionType;
docs/reference/kafka.md "Compression").
"""

from __future__ import annotations

import mmap
import struct
from types import ModuleType

import cramjam

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4

#: No honest batch comes near this (a broker refuses 100 MB); a damaged or malicious one must not take the memory.
MAX_DECOMPRESSED_BYTES = 128 << 20

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16


class DecompressionError(Exception):
    """The bytes are not what the codec bits say."""


def decompress(codec: int, blob: bytes) -> bytes:
    """The records of a batch in plain form.

    Raises ``DecompressionError``, also for an unknown codec and for more than ``MAX_DECOMPRESSED_BYTES``.
    """
    try:
        if codec == GZIP:
            return _bounded(cramjam.gzip, blob)
        if codec == SNAPPY:
            return _snappy(blob)
        if codec == LZ4:
            return _bounded(cramjam.lz4, blob)
        if codec == ZSTD:
            return _bounded(cramjam.zstd, blob)
    except (cramjam.DecompressionError, struct.error, ValueError) as error:
        raise DecompressionError(str(error)) from error
    raise DecompressionError(f"unknown compression codec {codec}")


def _bounded(codec: ModuleType, blob: bytes) -> bytes:
    """Anonymous pages cost memory only where they are written, however large the area is."""
    with mmap.mmap(-1, MAX_DECOMPRESSED_BYTES) as plain:
        return plain[: codec.decompress_into(blob, plain)]


def _snappy(blob: bytes) -> bytes:
    """Java's xerial framing (16 bytes, then length-prefixed raw blocks), or one raw block as librdkafka writes it."""
    if not blob.startswith(_XERIAL_MAGIC):
        return _snappy_block(blob)
    blocks: list[bytes] = []
    position, left = _XERIAL_HEADER_BYTES, MAX_DECOMPRESSED_BYTES
    while position < len(blob):
        (size,) = struct.unpack_from(">i", blob, position)
        position += 4
        if size < 0 or position + size > len(blob):
            raise DecompressionError(f"a snappy block of {size} bytes reaches outside the batch")
        blocks.append(_snappy_block(blob[position : position + size], left))
        left -= len(blocks[-1])
        position += size
    return b"".join(blocks)


def _snappy_block(block: bytes, most: int = MAX_DECOMPRESSED_BYTES) -> bytes:
    size = cramjam.snappy.decompress_raw_len(block)
    if size > most:
        raise DecompressionError(f"a snappy block claims {size} bytes")
    return bytes(cramjam.snappy.decompress_raw(block))
