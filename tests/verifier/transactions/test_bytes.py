"""Markers, records of ``__transaction_state`` and indexes of aborted transactions, byte for byte as Kafka has them."""

from __future__ import annotations

import contextlib
import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.coordinator.transaction.records import encode_key, encode_value
from cluster.coordinator.transaction.state import TransactionState, TransitMetadata
from tests.support.batches import BatchFields, Record, compress, encode_batch, encode_record
from tests.support.stories import Batch
from tests.support.transaction_bytes import COMMIT, marker, state_key, state_value
from verifier.files.formats import AbortedEntry, FormatError, aborted_entries
from verifier.segments.keyed_records import DamagedRecords, KeyedRecord, keyed_records
from verifier.segments.markers import MOST_MARKER_BYTES, Marker, marker_of
from verifier.transactions.state_records import (
    DEAD,
    EMPTY,
    ONGOING,
    StateRecord,
    UnknownRecord,
    state_record,
)

ID = "aio-e06fd4"
#: As Kafka 3.8.0 wrote them.
KEY = bytes.fromhex("0000 000a 61696f2d653036666434")
EMPTY_VALUE = bytes.fromhex("0000 000000000000000d 0000 0000ea60 00 ffffffff 000001a1fd9d1181 ffffffffffffffff")
ONGOING_VALUE = bytes.fromhex(
    "0000 000000000000000d 0000 0000ea60 01 00000001 000a 61696f2d653036666434 00000001 00000001"
    "000001a1fd9d1184 000001a1fd9d1184"
)
COMMIT_BATCH = bytes.fromhex(
    "0000000000000064 00000042 00000003 02 1335b965 0030 00000000 0000018bcfe56802 0000018bcfe56802 00000000000003e8"
    "0005 ffffffff 00000001 20000000 0800000001 0c000000000009 00"
)
BEGUN = 0x1A1FD9D1184


def test_kafkas_records_are_read() -> None:
    """An id without a transaction, one with a partition, and one that is forgotten."""
    nothing = StateRecord(3, 7, ID, 13, 0, 60_000, EMPTY, frozenset(), 0x1A1FD9D1181, -1)
    assert state_record(3, 7, KEY, EMPTY_VALUE) == nothing
    assert state_record(3, 8, KEY, ONGOING_VALUE) == StateRecord(
        3, 8, ID, 13, 0, 60_000, ONGOING, frozenset({(ID, 1)}), BEGUN, BEGUN
    )
    assert state_record(3, 9, KEY, None).state == DEAD


@given(
    st.text(max_size=8), st.integers(1, 5), st.integers(0, 2**62), st.integers(0, 32766),
    st.frozensets(st.tuples(st.sampled_from(["t", "long-name"]), st.integers(0, 9)), max_size=5),
)  # fmt: skip
def test_what_the_broker_writes_is_read(
    name: str, state: int, producer_id: int, epoch: int, places: frozenset[tuple[str, int]]
) -> None:
    """Every state with any partitions, as the coordinator's own code encodes it."""
    transit = TransitMetadata(producer_id, -1, epoch, -1, 5_000, TransactionState(state), places, BEGUN, BEGUN + 1)
    key, value = encode_key(name), encode_value(transit)
    found = state_record(0, 1, key, value)
    assert found == StateRecord(0, 1, name, producer_id, epoch, 5_000, state, places, BEGUN + 1, BEGUN)
    assert (state_key(name), state_value(state, producer_id, epoch, places, 5_000, BEGUN + 1, BEGUN)) == (key, value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, EMPTY_VALUE), (b"", EMPTY_VALUE), (KEY[:-1], EMPTY_VALUE), (KEY + b"x", EMPTY_VALUE),
        (b"\0\1" + KEY[2:], EMPTY_VALUE), (b"\0\0\xff\xff", EMPTY_VALUE), (KEY[:-1] + b"\xff", EMPTY_VALUE),
        (KEY, b""), (KEY, EMPTY_VALUE[:-1]), (KEY, EMPTY_VALUE + b"x"), (KEY, b"\0\1" + EMPTY_VALUE[2:]),
        (KEY, EMPTY_VALUE[:16] + b"\6" + EMPTY_VALUE[17:]), (KEY, ONGOING_VALUE[:-20]),
    ],
)  # fmt: skip
def test_what_is_no_record_is_refused(key: bytes | None, value: bytes) -> None:
    """Another version, a state that is never stored, too few bytes or too many."""
    with pytest.raises(UnknownRecord):
        state_record(0, 0, key, value)


def test_kafkas_marker_is_read() -> None:
    """COMMIT of coordinator epoch 9; the other kind is ABORT."""
    assert marker_of(COMMIT_BATCH) == Marker(COMMIT, 9)
    assert [marker_of(marker(0, kind, 7, 0, 4).encode()) for kind in (0, 1)] == [Marker(0, 4), Marker(1, 4)]


def test_a_later_version_of_a_marker_is_read() -> None:
    """As version 0, with more bytes after it."""
    later = replace(
        marker(0, COMMIT, 7), keys=(struct.pack(">hhi", 1, 1, 5),), raw_values=(struct.pack(">hiq", 3, 6, 1),)
    )
    assert marker_of(later.encode()) == Marker(COMMIT, 6)


@pytest.mark.parametrize(
    "batch",
    [
        replace(marker(0, COMMIT, 7), spoil=lambda data: data[:-1] + b"x"),
        replace(marker(0, COMMIT, 7), keys=(b"\0\0\0\2",)),
        replace(marker(0, COMMIT, 7), keys=(b"\0\0\0",)),
        replace(marker(0, COMMIT, 7), raw_values=(b"\0\0\0",)),
        replace(marker(0, COMMIT, 7), raw_values=(b"\xff\xff\0\0\0\0",)),
        replace(marker(0, COMMIT, 7), keys=(b"\0\0\0\1",) * 2, raw_values=(bytes(6),) * 2),
        replace(marker(0, COMMIT, 7), raw_values=(bytes(MOST_MARKER_BYTES),)),
        Batch(0, (), raw_values=(bytes(6),), attributes=0x30),
    ],
)
def test_what_is_no_marker_is_none(batch: Batch) -> None:
    """A wrong CRC, another type, too few bytes, a negative version, two records, far too many bytes, no key."""
    assert marker_of(batch.encode()) is None


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_with_keys_are_read(codec: str) -> None:
    """Keys, values, nulls and headers, in any compression."""
    records = [Record(b"v" * 300, b"k"), Record(None, b""), Record(b"", None, [("h", b"x"), ("n", None)], -5)]
    data = encode_batch(records, BatchFields(codec=codec))
    codec_bits = data[22] & 7
    assert keyed_records(data[61:], 3, codec_bits) == [
        KeyedRecord(0, b"k", b"v" * 300), KeyedRecord(1, b"", None), KeyedRecord(2, None, b""),
    ]  # fmt: skip


@given(st.data())
def test_damaged_records_are_refused(data: st.DataObject) -> None:
    """Whatever becomes of the bytes, they are read as records or refused; cut short, they are refused."""
    plain = encode_record(Record(b"value", b"key", [("h", b"x")]), 0)
    with pytest.raises(DamagedRecords):
        keyed_records(plain[: data.draw(st.integers(0, len(plain) - 1))], 1)
    damaged = bytearray(plain)
    damaged[data.draw(st.integers(0, len(plain) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(DamagedRecords):
        assert len(keyed_records(bytes(damaged), 1)) == 1
    with pytest.raises(DamagedRecords):
        keyed_records(compress("gzip", plain)[:-9], 1, 1)


def test_an_index_of_aborted_transactions_is_read() -> None:
    """Entries of 34 bytes; anything else is refused."""
    entry = struct.pack(">hqqqq", 0, 7, 3, 9, 10)
    assert aborted_entries(entry * 2) == [AbortedEntry(7, 3, 9, 10)] * 2
    for data in (entry[:-1], b"\0\1" + entry[2:]):
        with pytest.raises(FormatError):
            aborted_entries(data)
