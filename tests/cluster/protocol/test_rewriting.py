"""A batch in another codec: only what says how it is packed has changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.protocol.batch import (
    CODEC_GZIP,
    CODEC_MASK,
    CODEC_NONE,
    HEADER_BYTES,
    LOG_OVERHEAD,
    TRANSACTIONAL_BIT,
    parse_header,
)
from cluster.protocol.compression import CODEC_NAMES
from cluster.protocol.errors import CorruptBatch
from cluster.protocol.records import NewRecord, build_batch, decode_records
from cluster.protocol.rewriting import recompress_batch
from tests.cluster.protocol.strategies import RECORDS

CODECS = st.sampled_from(sorted(CODEC_NAMES))


@given(records=RECORDS, before=CODECS, after=CODECS, transactional=st.booleans())
def test_the_same_records_in_another_codec(
    records: list[NewRecord], before: int, after: int, transactional: bool
) -> None:
    """Offsets, times, producer, sequence and all other attributes stay; the checksum holds."""
    batch = build_batch(
        records, base_offset=7, leader_epoch=3, codec=before, producer_id=5, producer_epoch=1, base_sequence=9,
        transactional=transactional,
    )  # fmt: skip
    header = parse_header(batch)
    changed = recompress_batch(memoryview(batch + b"more"), header, after)
    assert decode_records(changed) == decode_records(batch)
    found = parse_header(changed)
    assert found.codec == after
    assert found.attributes & ~CODEC_MASK == (TRANSACTIONAL_BIT if transactional else 0)
    assert found.size_bytes == len(changed)
    same = {"attributes": header.attributes, "crc": header.crc, "batch_length": header.batch_length}
    assert found._replace(**same) == header


def test_what_cannot_be_unpacked_cannot_be_packed_again() -> None:
    """It says so, whatever the codec wanted."""
    batch = build_batch([NewRecord(1, value=b"v")], codec=CODEC_GZIP)[:HEADER_BYTES] + b"no gzip"
    header = parse_header(batch)._replace(batch_length=len(batch) - LOG_OVERHEAD)
    with pytest.raises(CorruptBatch, match="gzip"):
        recompress_batch(batch, header, CODEC_NONE)
