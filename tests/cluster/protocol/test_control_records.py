"""Markers and their batches against the bytes of Kafka 3.8.0."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.protocol.control_records import (
    ControlRecordType,
    EndTransactionMarker,
    MarkerBatch,
    build_marker_batch,
    control_key,
    end_marker_value,
    parse_control_type,
    parse_end_marker,
    parse_marker_batch,
)
from cluster.protocol.errors import CorruptBatch
from cluster.protocol.records import NewRecord, build_batch
from tests.cluster.protocol.vectors import ABORT_MARKER, COMMIT_MARKER, TRANSACTIONAL

COMMIT, ABORT = ControlRecordType.COMMIT, ControlRecordType.ABORT
TIMESTAMP = 0x18BCFE56802


@pytest.mark.parametrize(
    ("control_type", "offset", "stored"), [(COMMIT, 100, COMMIT_MARKER), (ABORT, 101, ABORT_MARKER)]
)
def test_a_marker_batch_is_kafkas(control_type, offset, stored):
    """The 78 bytes of Kafka are written, checksum included, and read."""
    marker = EndTransactionMarker(control_type, 9)
    written = build_marker_batch(
        marker, producer_id=1000, producer_epoch=5, timestamp=TIMESTAMP, base_offset=offset, leader_epoch=3
    )
    assert written.hex() == stored.hex()
    assert len(written) == 78
    assert parse_marker_batch(stored) == MarkerBatch(marker, 1000, 5, offset, TIMESTAMP)


@given(
    st.sampled_from([COMMIT, ABORT]),
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**63 - 1),
    st.integers(0, 2**15 - 1),
    st.integers(0, 2**42),
    st.integers(0, 2**62),
)
def test_a_marker_batch_comes_back(control_type, coordinator_epoch, producer_id, producer_epoch, timestamp, offset):
    """A marker's batch is read back as it was written."""
    marker = EndTransactionMarker(control_type, coordinator_epoch)
    batch = build_marker_batch(
        marker, producer_id=producer_id, producer_epoch=producer_epoch, timestamp=timestamp, base_offset=offset
    )
    assert parse_marker_batch(batch) == MarkerBatch(marker, producer_id, producer_epoch, offset, timestamp)


def test_later_versions_are_read_as_version_zero():
    """A later key or value may have more bytes, and its first ones mean the same; unknown types have no meaning."""
    assert parse_control_type(bytes.fromhex("0001 0001 ffff")) is COMMIT
    assert parse_end_marker(bytes.fromhex("00010000"), bytes.fromhex("0007 00000009 01")) == EndTransactionMarker(
        ABORT, 9
    )
    for number in (2, 6, 300):
        assert parse_control_type(b"\0\0" + number.to_bytes(2, "big")) is ControlRecordType.UNKNOWN


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0", bytes.fromhex("ffff0001")])
def test_a_corrupt_key(key):
    """No key, one that is too short, or a negative version."""
    with pytest.raises(CorruptBatch):
        parse_control_type(key)


@pytest.mark.parametrize("value", [None, b"", bytes(5), bytes.fromhex("ffff00000009")])
def test_a_corrupt_value(value):
    """No value, one that is too short, or a negative version."""
    with pytest.raises(CorruptBatch):
        parse_end_marker(control_key(COMMIT), value)


def test_what_is_not_the_batch_of_a_marker():
    """Records of a producer, a control record of another type, a control batch of two records, a wrong checksum."""
    two = build_batch([NewRecord(0, control_key(COMMIT), end_marker_value(1))] * 2, transactional=True, control=True)
    leader_change = build_batch([NewRecord(0, bytes.fromhex("00000002"), b"")], transactional=True, control=True)
    damaged = COMMIT_MARKER[:-2] + b"\x08\0"
    for batch in (TRANSACTIONAL, two, leader_change, damaged):
        with pytest.raises(CorruptBatch):
            parse_marker_batch(batch)


def test_an_unknown_type_is_not_written():
    """It stands for what others wrote."""
    with pytest.raises(ValueError, match="unknown"):
        control_key(ControlRecordType.UNKNOWN)
