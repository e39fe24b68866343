"""Decompresses the records of one batch. Owns Kafka's four codecs and their framing (CompressionType)."""

from __future__ import annotations

import struct

import cramjam

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4

#: No honest batch comes near this; a damaged length must not take the machine's memory.
MAX_DECOMPRESSED_BYTES = 1 << 30

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16


class DecompressionError(Exception):
    """The bytes are not what the codec bits say."""


def decompress(codec: int, blob: bytes) -> bytes:
    """The records of a batch in plain form. Raises ``DecompressionError``, also for an unknown codec."""
    try:
        if codec == GZIP:
            return bytes(cramjam.gzip.decompress(blob))
        if codec == SNAPPY:
            return _snappy(blob)
        if codec == LZ4:
            return bytes(cramjam.lz4.decompress(blob))
        if codec == ZSTD:
            return bytes(cramjam.zstd.decompress(blob))
    except (cramjam.DecompressionError, struct.error, ValueError) as error:
        raise DecompressionError(str(error)) from error
    raise DecompressionError(f"unknown compression codec {codec}")


def _snappy(blob: bytes) -> bytes:
    """Java's xerial framing (16 bytes, then length-prefixed raw blocks), or one raw block as librdkafka writes it."""
    if not blob.startswith(_XERIAL_MAGIC):
        return _snappy_block(blob)
    blocks: list[bytes] = []
    position = _XERIAL_HEADER_BYTES
    while position < len(blob):
        (size,) = struct.unpack_from(">i", blob, position)
        position += 4
        if size < 0 or position + size > len(blob):
            raise DecompressionError(f"a snappy block of {size} bytes reaches outside the batch")
        blocks.append(_snappy_block(blob[position : position + size]))
        position += size
    return b"".join(blocks)


def _snappy_block(block: bytes) -> bytes:
    size = cramjam.snappy.decompress_raw_len(block)
    if size > MAX_DECOMPRESSED_BYTES:
        raise DecompressionError(f"a snappy block claims {size} bytes")
    return bytes(cramjam.snappy.decompress_raw(block))
