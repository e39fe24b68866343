"""Control records: the marker that ends a transaction in a partition, and the batch that carries it.

Owns the layouts of Kafka's ControlRecordType and EndTransactionMarker, and the whole control batch
(docs/reference/kafka.md "Control records"). Does not own who writes a marker, nor what a log or a reader makes of it.

A reader is as tolerant as Kafka's: a key or value of a later version is read as version 0, whatever follows, and a type
that is not known is no error. Bytes that are too short, and negative versions, are ``CorruptBatch``.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from cluster.protocol.batch import parse_header
from cluster.protocol.errors import CorruptBatch
from cluster.protocol.primitives import Buffer
from cluster.protocol.records import NewRecord, build_batch, decode_records

_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")
_VERSION = 0


class ControlRecordType(IntEnum):
    """What a control record is for. ``UNKNOWN`` is any type that this code does not know."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1


class EndTransactionMarker(NamedTuple):
    """The end of one transaction in one partition: ``control_type`` is ABORT or COMMIT."""

    control_type: ControlRecordType
    coordinator_epoch: int


class MarkerBatch(NamedTuple):
    """A marker and the fields of its batch that say whose transaction it ends, and where."""

    marker: EndTransactionMarker
    producer_id: int
    producer_epoch: int
    offset: int
    timestamp: int


def control_key(control_type: ControlRecordType) -> bytes:
    """The key of a control record. Raises ``ValueError`` for the unknown type."""
    if control_type is ControlRecordType.UNKNOWN:
        raise ValueError("a control record of an unknown type cannot be written")
    return _KEY.pack(_VERSION, control_type)


def parse_control_type(key: Buffer | None) -> ControlRecordType:
    """The type of a control record by its key. Raises ``CorruptBatch``."""
    if key is None or len(key) < _KEY.size:
        raise CorruptBatch(f"the key of a control record has {0 if key is None else len(key)} bytes")
    version, number = _KEY.unpack_from(key)
    if version < 0:
        raise CorruptBatch(f"the key of a control record has version {version}")
    try:
        return ControlRecordType(number)
    except ValueError:
        return ControlRecordType.UNKNOWN


def end_marker_value(coordinator_epoch: int) -> bytes:
    """The value of a marker."""
    return _VALUE.pack(_VERSION, coordinator_epoch)


def parse_end_marker(key: Buffer | None, value: Buffer | None) -> EndTransactionMarker:
    """A marker by its record. Raises ``CorruptBatch``, also for a control record that ends no transaction."""
    control_type = parse_control_type(key)
    if control_type is ControlRecordType.UNKNOWN:
        raise CorruptBatch("a control record that does not end a transaction")
    if value is None or len(value) < _VALUE.size:
        raise CorruptBatch(f"the value of a marker has {0 if value is None else len(value)} bytes")
    version, coordinator_epoch = _VALUE.unpack_from(value)
    if version < 0:
        raise CorruptBatch(f"the value of a marker has version {version}")
    return EndTransactionMarker(control_type, coordinator_epoch)


def build_marker_batch(
    marker: EndTransactionMarker,
    *,
    producer_id: int,
    producer_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytes:
    """The control batch of one marker: transactional, without a sequence, one record."""
    record = NewRecord(timestamp, control_key(marker.control_type), end_marker_value(marker.coordinator_epoch))
    return build_batch(
        [record],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )


def parse_marker_batch(batch: Buffer) -> MarkerBatch:
    """The marker in one whole control batch. Raises ``CorruptBatch``, also for a batch that is anything else."""
    header = parse_header(batch)
    if not (header.is_control and header.is_transactional) or header.record_count != 1:
        raise CorruptBatch(
            f"attributes {header.attributes:#x}, {header.record_count} records: not the batch of a marker"
        )
    [record] = decode_records(batch)
    marker = parse_end_marker(record.key, record.value)
    return MarkerBatch(marker, header.producer_id, header.producer_epoch, record.offset, record.timestamp)
