"""The marker that a control batch carries: which way a transaction ended here, and by which coordinator.

Owns the layout of Kafka's ControlRecordType and EndTransactionMarker (docs/reference/kafka.md "Control records").
Judges nothing: what is no marker, or is damaged, is None.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import google_crc32c

from verifier.segments.keyed_records import DamagedRecords, keyed_records
from verifier.segments.walk import CODEC_MASK, CRC_START, HEADER_BYTES

#: The type in a marker's key.
ABORT, COMMIT = 0, 1
#: By which word people know it.
KIND_NAMES = {ABORT: "ABORT", COMMIT: "COMMIT"}

TRANSACTIONAL = 0x10

_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")
_CRC = struct.Struct(">I")
_ATTRIBUTES = struct.Struct(">h")
_COUNT = struct.Struct(">i")
#: A larger batch is not read: a marker has some 80 bytes.
MOST_MARKER_BYTES = 1 << 16


class Marker(NamedTuple):
    """``kind`` is ABORT or COMMIT."""

    kind: int
    coordinator_epoch: int


def marker_of(batch: bytes) -> Marker | None:
    """The marker in the bytes of one control batch; None where it has no readable one, or its CRC is wrong."""
    if len(batch) > MOST_MARKER_BYTES:
        return None
    (crc,) = _CRC.unpack_from(batch, CRC_START - _CRC.size)
    if google_crc32c.value(batch[CRC_START:]) != crc:
        return None
    (attributes,) = _ATTRIBUTES.unpack_from(batch, CRC_START)
    (count,) = _COUNT.unpack_from(batch, HEADER_BYTES - _COUNT.size)
    try:
        found = keyed_records(batch[HEADER_BYTES:], count, attributes & CODEC_MASK)
    except DamagedRecords:
        return None
    if len(found) != 1:
        return None
    (record,) = found
    if len(record.key or b"") < _KEY.size or len(record.value or b"") < _VALUE.size:
        return None
    key_version, kind = _KEY.unpack_from(record.key or b"")
    value_version, coordinator_epoch = _VALUE.unpack_from(record.value or b"")
    if kind not in KIND_NAMES or min(key_version, value_version) < 0:
        return None
    return Marker(kind, coordinator_epoch)
