"""Entries of a ``.txnindex``, byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.log.aborted_transactions import (
    ABORTED_TRANSACTION_BYTES,
    AbortedTransaction,
    aborted_transactions_bytes,
    parse_aborted_transactions,
)
from cluster.log.errors import CheckpointError

ENTRY = AbortedTransaction(1000, 90, 101, 102)
BYTES = bytes.fromhex("0000 00000000000003e8 000000000000005a 0000000000000065 0000000000000066")

OFFSETS = st.integers(0, 2**63 - 1)


def test_the_layout_is_kafkas():
    """Version, producer id, first, last and last stable offset: 34 bytes."""
    assert ABORTED_TRANSACTION_BYTES == 34
    assert aborted_transactions_bytes([ENTRY]) == BYTES
    assert parse_aborted_transactions(BYTES) == [ENTRY]
    assert parse_aborted_transactions(b"") == []


@given(st.lists(st.tuples(OFFSETS, OFFSETS, OFFSETS, OFFSETS), unique_by=lambda fields: fields[2]))
def test_entries_come_back(drawn):
    """Any number of entries, in the order of their markers."""
    entries = [
        AbortedTransaction(producer_id, min(first, last), last, stable)
        for producer_id, first, last, stable in sorted(drawn, key=lambda fields: fields[2])
    ]
    assert parse_aborted_transactions(aborted_transactions_bytes(entries)) == entries


@pytest.mark.parametrize(
    "data",
    [BYTES[:-1], BYTES + b"\0", b"\0\1" + BYTES[2:], b"\xff\xff" + BYTES[2:], BYTES + BYTES],
    ids=["short", "long", "a later version", "a negative version", "the same marker twice"],
)
def test_corrupt_files(data):
    """A file that is not in the format is refused whole."""
    with pytest.raises(CheckpointError):
        parse_aborted_transactions(data)


def test_a_transaction_does_not_end_before_it_begins():
    """The marker is after the first record."""
    with pytest.raises(CheckpointError):
        parse_aborted_transactions(aborted_transactions_bytes([ENTRY._replace(first_offset=102)]))
