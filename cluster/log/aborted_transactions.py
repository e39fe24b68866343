"""The bytes of a ``.txnindex``: one entry for each aborted transaction of a segment.

Owns the layout of Kafka's AbortedTxn (docs/reference/kafka.md "Files of a log"). Does not own the file
(``aborted_index.py``). A ``read_committed`` reader is told about the entries whose records it is given, and skips
those.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from cluster.log.errors import CheckpointError
from cluster.protocol.primitives import Buffer

_ENTRY = struct.Struct(">hqqqq")
ABORTED_TRANSACTION_BYTES = _ENTRY.size
_VERSION = 0


class AbortedTransaction(NamedTuple):
    """``last_offset`` is the marker's; ``last_stable_offset`` the partition's as soon as the marker is written."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def aborted_transactions_bytes(entries: Iterable[AbortedTransaction]) -> bytes:
    """The bytes of entries; those of a file are in the order of their markers."""
    return b"".join(_ENTRY.pack(_VERSION, *entry) for entry in entries)


def aborted_transaction_at(data: Buffer, number: int) -> AbortedTransaction:
    """One of the entries of a file that is known to be good."""
    _, *fields = _ENTRY.unpack_from(data, number * ABORTED_TRANSACTION_BYTES)
    return AbortedTransaction(*fields)


def parse_aborted_transactions(data: bytes) -> list[AbortedTransaction]:
    """The entries of a file. Raises ``CheckpointError``."""
    if len(data) % _ENTRY.size:
        raise CheckpointError(f"an index of aborted transactions of {len(data)} bytes")
    entries = []
    for version, *fields in _ENTRY.iter_unpack(data):
        if version != _VERSION:
            raise CheckpointError(f"an aborted transaction of version {version}, only {_VERSION} is known")
        entry = AbortedTransaction(*fields)
        if entry.first_offset > entry.last_offset:
            raise CheckpointError(f"an aborted transaction that ends before it begins: {entry}")
        entries.append(entry)
    for one, after in pairwise(entries):
        if after.last_offset <= one.last_offset:
            raise CheckpointError(f"aborted transactions out of order: {after} after {one}")
    return entries
