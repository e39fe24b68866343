"""The four codecs as Kafka frames them (CompressionType; docs/reference/kafka.md "Compression"), with a bound on what
comes out.

Owns the framing of snappy (xerial) and lz4, and the bound. Does not own batches: only the records of a batch are
compressed, as one blob. The codecs themselves are cramjam's, and zlib for gzip.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from collections.abc import Callable

import cramjam

from cluster.protocol.batch import CODEC_GZIP, CODEC_LZ4, CODEC_NONE, CODEC_SNAPPY, CODEC_ZSTD
from cluster.protocol.errors import CorruptBatch
from cluster.protocol.primitives import Buffer

#: No batch may unpack to more than the largest frame that could have brought it unpacked.
MAX_UNCOMPRESSED_BYTES = 104_857_600

CODEC_NAMES = {
    CODEC_NONE: "none",
    CODEC_GZIP: "gzip",
    CODEC_SNAPPY: "snappy",
    CODEC_LZ4: "lz4",
    CODEC_ZSTD: "zstd",
}

_INT32 = struct.Struct(">i")
_UINT32_LE = struct.Struct("<I")

#: snappy-java: magic, version 1, compatible with version 1; then blocks of an int32 length and raw snappy.
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32_768

#: LZ4 frame: independent blocks (Java clients read no others), 64 KiB each, no checksums; descriptor checksum 0x82.
_LZ4_HEADER = bytes.fromhex("04224d18604082")
_LZ4_BLOCK_BYTES = 65_536
_LZ4_STORED = 1 << 31
_LZ4_END = b"\x00\x00\x00\x00"
#: No LZ4 block expands more than this many times.
_LZ4_MAX_RATIO = 255

#: Kafka's defaults: gzip's own level, and for lz4 the fast compressor, which has no levels.
_GZIP_DEFAULT_LEVEL = -1
_LZ4_DEFAULT_LEVEL = 9
_LZ4_HIGHEST_LEVEL = 12


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """Compress the records of a batch. Raises ``ValueError`` for an unknown codec.

    ``level`` is KIP-390's, of that codec; None is its default. Snappy has none.
    """
    if codec == CODEC_NONE:
        return bytes(data)
    if codec == CODEC_GZIP:
        return bytes(cramjam.gzip.compress(bytes(data), level=None if level == _GZIP_DEFAULT_LEVEL else level))
    if codec == CODEC_SNAPPY:
        return _compress_snappy(bytes(data))
    if codec == CODEC_LZ4:
        if level is None or level == _LZ4_DEFAULT_LEVEL:
            return _compress_lz4(bytes(data))
        return _compress_lz4_high(data, level)
    if codec == CODEC_ZSTD:
        return bytes(cramjam.zstd.compress(bytes(data), level=level))
    raise ValueError(f"unknown codec {codec}")


def decompress(codec: int, data: Buffer, limit_bytes: int = MAX_UNCOMPRESSED_BYTES) -> bytes:
    """Unpack the records of a batch.

    Raises ``CorruptBatch`` if the data is not of this codec, is cut short, or would unpack to more than
    ``limit_bytes``; no more memory than that is touched. ``MemoryError`` if there is not that much room.
    """
    if codec == CODEC_NONE:
        return bytes(data)
    unpack = _DECOMPRESSORS.get(codec)
    if unpack is None:
        raise CorruptBatch(f"unknown codec {codec}")
    try:
        return unpack(bytes(data), limit_bytes)
    except (cramjam.DecompressionError, zlib.error, struct.error, OSError) as error:
        raise CorruptBatch(f"{CODEC_NAMES[codec]} data: {error}") from error


def _compress_snappy(data: bytes) -> bytes:
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        parts.append(_INT32.pack(len(block)) + block)
    return b"".join(parts)


def _compress_lz4(data: bytes) -> bytes:
    parts = [_LZ4_HEADER]
    for start in range(0, len(data), _LZ4_BLOCK_BYTES):
        block = data[start : start + _LZ4_BLOCK_BYTES]
        packed = bytes(cramjam.lz4.compress_block(block, store_size=False))
        if len(packed) < len(block):
            parts.append(_UINT32_LE.pack(len(packed)) + packed)
        else:
            parts.append(_UINT32_LE.pack(len(block) | _LZ4_STORED) + block)
    return b"".join((*parts, _LZ4_END))


def _compress_lz4_high(data: Buffer, level: int) -> bytes:
    """A frame of independent 64 KiB blocks by the slower compressor, which ends at level 12."""
    compressor = cramjam.lz4.Compressor(
        level=min(level, _LZ4_HIGHEST_LEVEL), content_checksum=False, block_linked=False
    )
    compressor.compress(bytes(data))
    return bytes(compressor.finish())


def _decompress_gzip(data: bytes, limit_bytes: int) -> bytes:
    inflate = zlib.decompressobj(wbits=31)
    out = inflate.decompress(data, limit_bytes + 1)
    if len(out) > limit_bytes:
        raise CorruptBatch(f"gzip data of more than {limit_bytes} bytes")
    if not inflate.eof:
        raise CorruptBatch("gzip data cut short")
    if rest := inflate.unused_data:
        # A gzip stream may have several members, though no client makes them. With an object for each, and a copy of
        # what is left, their number would count twice; cramjam takes them in one go, and costs more to begin with.
        out += _unpack_into(cramjam.gzip.decompress_into, rest, limit_bytes - len(out))
    return out


def _decompress_snappy(data: bytes, limit_bytes: int) -> bytes:
    if not data.startswith(_XERIAL_MAGIC):
        # librdkafka sends one raw block without framing.
        return _snappy_block(data, limit_bytes)
    position = len(_XERIAL_HEADER)
    if len(data) < position:
        raise CorruptBatch("a snappy header cut short")
    parts: list[bytes] = []
    while position < len(data):
        (size,) = _INT32.unpack_from(data, position)
        position += _INT32.size
        if size < 0 or position + size > len(data):
            raise CorruptBatch(f"a snappy block of {size} bytes where {len(data) - position} are left")
        block = _snappy_block(data[position : position + size], limit_bytes)
        limit_bytes -= len(block)
        parts.append(block)
        position += size
    return b"".join(parts)


def _snappy_block(block: bytes, limit_bytes: int) -> bytes:
    if not block:
        raise CorruptBatch("an empty snappy block")
    size = cramjam.snappy.decompress_raw_len(block)
    if size > limit_bytes:
        raise CorruptBatch(f"a snappy block of {size} bytes, more than the {limit_bytes} that are allowed")
    return bytes(cramjam.snappy.decompress_raw(block))


def _decompress_lz4(data: bytes, limit_bytes: int) -> bytes:
    return _unpack_into(cramjam.lz4.decompress_into, data, min(limit_bytes, len(data) * _LZ4_MAX_RATIO))


def _decompress_zstd(data: bytes, limit_bytes: int) -> bytes:
    return _unpack_into(cramjam.zstd.decompress_into, data, limit_bytes)


def _unpack_into(unpack: Callable[[bytes, mmap.mmap], int], data: bytes, limit_bytes: int) -> bytes:
    try:
        # Anonymous pages: only those that are written cost memory or time, whatever the limit.
        out = mmap.mmap(-1, max(1, limit_bytes))
    except OSError as error:
        # the data is not to blame
        raise MemoryError(f"no room for {limit_bytes} bytes") from error
    with out:
        size = unpack(data, out)
        if size > limit_bytes:
            raise CorruptBatch(f"more than the {limit_bytes} bytes that are allowed")
        return out[:size]


_DECOMPRESSORS: dict[int, Callable[[bytes, int], bytes]] = {
    CODEC_GZIP: _decompress_gzip,
    CODEC_SNAPPY: _decompress_snappy,
    CODEC_LZ4: _decompress_lz4,
    CODEC_ZSTD: _decompress_zstd,
}
