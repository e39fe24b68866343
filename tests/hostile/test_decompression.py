"""What unpacks to much, or takes long to unpack (H1)."""

from __future__ import annotations

import gzip
import time

import pytest

from cluster.protocol.batch import CODEC_GZIP, CODEC_LZ4, CODEC_ZSTD
from cluster.protocol.compression import compress, decompress
from cluster.protocol.errors import CorruptBatch


def test_many_members_of_gzip_take_no_longer_than_one() -> None:
    """40 KB of 800 members, 13 MB when they are unpacked: a fraction of a second, where it was many."""
    member = gzip.compress(bytes(16_000))
    data = member * (40_000 // len(member))
    begun = time.process_time()
    unpacked = decompress(CODEC_GZIP, data)
    assert time.process_time() - begun < 1
    assert unpacked == bytes(16_000 * (len(data) // len(member)))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_members_count_together(count: int) -> None:
    """The bound is on all that comes out, to the byte; a last member that is cut or damaged is no end."""
    data = gzip.compress(b"x" * 10) * count
    assert decompress(CODEC_GZIP, data, 10 * count) == b"x" * 10 * count
    for spoilt, limit_bytes in [(data, 10 * count - 1), (data[:-1], 100), (data + b"x", 100), (data + b"\0", 100)]:
        with pytest.raises(CorruptBatch):
            decompress(CODEC_GZIP, spoilt, limit_bytes)


@pytest.mark.parametrize("codec", [CODEC_GZIP, CODEC_LZ4, CODEC_ZSTD])
def test_nothing_is_more_than_nothing(codec: int) -> None:
    """A bound of zero bytes lets none out."""
    assert decompress(codec, compress(codec, b""), 0) == b""
    with pytest.raises(CorruptBatch):
        decompress(codec, compress(codec, b"x"), 0)
