"""TxnLog: what the transactions of one log are, by its batches and markers alone, as any reader must understand them.

Owns that reading, written a second time: it shares nothing with ``cluster.log`` but the decoding of batches. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from cluster.protocol.batch import iter_batches
from cluster.protocol.control_records import ControlRecordType, parse_marker_batch
from cluster.protocol.records import Record, decode_records

#: (producer id, its epoch)
Producer = tuple[int, int]


class Marker(NamedTuple):
    """A transaction's end. ``first_offset`` is where its records begin, -1 for one that had none here."""

    producer: Producer
    is_commit: bool
    offset: int
    first_offset: int


@dataclass
class Stood:
    """A record. ``decided_at`` is the offset of its marker; both are None while its transaction is open. One outside of
    transactions is committed where it stands."""

    record: Record
    producer: Producer
    base_offset: int
    leader_epoch: int
    is_committed: bool | None = None
    decided_at: int | None = None


@dataclass
class TxnLog:
    """``open`` are the producers whose transactions have no end, with the offsets at which they begin;
    ``epochs_back`` are (producer id, epoch, the one before, offset) of epochs that go back."""

    stood: list[Stood] = field(default_factory=list)
    markers: list[Marker] = field(default_factory=list)
    open: dict[int, int] = field(default_factory=dict)
    epochs_back: list[tuple[int, int, int, int]] = field(default_factory=list)
    end: int = 0


def read(log: bytes) -> TxnLog:
    """All of one replica's log."""
    found = TxnLog()
    undecided: dict[int, list[Stood]] = {}
    epochs: dict[int, int] = {}
    for position, header in iter_batches(log):
        batch = log[position : position + header.size_bytes]
        producer = (header.producer_id, header.producer_epoch)
        found.end = header.next_offset
        if header.producer_id >= 0:
            if header.producer_epoch < epochs.get(header.producer_id, 0):
                back = (*producer, epochs[header.producer_id], header.base_offset)
                found.epochs_back.append(back)
            epochs[header.producer_id] = max(header.producer_epoch, epochs.get(header.producer_id, 0))
        if header.is_control:
            marker = parse_marker_batch(batch).marker
            is_commit = marker.control_type is ControlRecordType.COMMIT
            first_offset = found.open.pop(header.producer_id, -1)
            found.markers.append(Marker(producer, is_commit, header.base_offset, first_offset))
            for stood in undecided.pop(header.producer_id, []):
                stood.is_committed, stood.decided_at = is_commit, header.base_offset
            continue
        for record in decode_records(batch):
            stood = Stood(record, producer, header.base_offset, header.leader_epoch)
            found.stood.append(stood)
            if header.is_transactional:
                found.open.setdefault(header.producer_id, header.base_offset)
                undecided.setdefault(header.producer_id, []).append(stood)
            else:
                stood.is_committed, stood.decided_at = True, record.offset
    return found
