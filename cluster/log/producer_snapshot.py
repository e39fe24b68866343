"""The bytes of ``%020d.snapshot``: of each producer the newest batch, and its open transaction if there is one.

Owns the layout of Kafka's ProducerStateManager (docs/reference/kafka.md "Files of a log"). Does not own the files
(``snapshots.py``) or the entries (``producers.py``).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from crc32c import crc32c

from cluster.log.errors import CheckpointError
from cluster.log.sequence import BatchMetadata, ProducerEntry
from cluster.protocol.batch import decrement_sequence

_SNAPSHOT_VERSION = 1
_SNAPSHOT_HEAD = struct.Struct(">hIi")
_SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")
#: The checksum covers everything after itself.
_SNAPSHOT_CRC_FROM = 6


def snapshot_bytes(entries: Iterable[ProducerEntry]) -> bytes:
    """version int16, CRC-32C of what follows it, count int32, then 46 bytes per producer (ProducerStateManager)."""
    rows = []
    for entry in entries:
        last = entry.batches[-1] if entry.batches else None
        rows.append(
            _SNAPSHOT_ENTRY.pack(
                entry.producer_id,
                entry.producer_epoch,
                last.last_sequence if last else -1,
                last.last_offset if last else -1,
                last.last_offset - last.base_offset if last else 0,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.txn_first_offset,
            )
        )
    data = bytearray(_SNAPSHOT_HEAD.pack(_SNAPSHOT_VERSION, 0, len(rows)) + b"".join(rows))
    struct.pack_into(">I", data, 2, crc32c(data[_SNAPSHOT_CRC_FROM:]))
    return bytes(data)


def parse_snapshot(data: bytes) -> list[ProducerEntry]:
    """The inverse of ``snapshot_bytes``, as far as the format goes. Raises ``CheckpointError``."""
    if len(data) < _SNAPSHOT_HEAD.size:
        raise CheckpointError(f"a producer snapshot of {len(data)} bytes")
    version, crc, count = _SNAPSHOT_HEAD.unpack_from(data)
    if version != _SNAPSHOT_VERSION:
        raise CheckpointError(f"a producer snapshot of version {version}, only {_SNAPSHOT_VERSION} is known")
    if crc32c(data[_SNAPSHOT_CRC_FROM:]) != crc:
        raise CheckpointError("the checksum of a producer snapshot does not hold")
    if len(data) != _SNAPSHOT_HEAD.size + count * _SNAPSHOT_ENTRY.size:
        raise CheckpointError(f"a producer snapshot of {len(data)} bytes for {count} producers")
    return [_snapshot_entry(row) for row in _SNAPSHOT_ENTRY.iter_unpack(data[_SNAPSHOT_HEAD.size :])]


def _snapshot_entry(row: tuple[int, ...]) -> ProducerEntry:
    (
        producer_id,
        producer_epoch,
        last_sequence,
        last_offset,
        offset_delta,
        timestamp,
        coordinator_epoch,
        txn_first_offset,
    ) = row
    batches: tuple[BatchMetadata, ...] = ()
    if last_sequence >= 0:
        base_sequence = decrement_sequence(last_sequence, offset_delta)
        batches = (BatchMetadata(base_sequence, last_sequence, last_offset - offset_delta, last_offset, timestamp),)
    return ProducerEntry(
        producer_id, producer_epoch, batches, False, timestamp, False, coordinator_epoch, txn_first_offset
    )
