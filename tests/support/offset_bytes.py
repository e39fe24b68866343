"""Records of ``__consumer_offsets`` for tests: obvious, and sharing no line with any reader."""

from __future__ import annotations

import struct
from dataclasses import replace

from tests.support.stories import MADE_MS, Batch
from tests.support.transaction_bytes import TRANSACTIONAL


def offset_key(group: str, topic: str, partition: int) -> bytes:
    """OffsetCommitKey 1."""
    return struct.pack(">h", 1) + _text(group) + _text(topic) + struct.pack(">i", partition)


def offset_value(offset: int) -> bytes:
    """OffsetCommitValue 3, without metadata."""
    return struct.pack(">hqi", 3, offset, 0) + _text("") + struct.pack(">q", MADE_MS)


def group_key(group: str) -> bytes:
    """GroupMetadataKey 2."""
    return struct.pack(">h", 2) + _text(group)


def committed(base: int, group: str, topic: str, partition: int, *offsets: int | None) -> Batch:
    """One batch: a record for each offset, and a tombstone for None."""
    values = tuple(None if offset is None else offset_value(offset) for offset in offsets)
    keys = (offset_key(group, topic, partition),) * len(offsets)
    return Batch(base, (), keys=keys, raw_values=values)  # type: ignore[arg-type]


def in_transaction(batch: Batch, producer_id: int) -> Batch:
    """The same of TxnOffsetCommit."""
    return replace(batch, producer_id=producer_id, base_sequence=0, attributes=TRANSACTIONAL)


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()
