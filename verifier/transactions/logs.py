"""Reads transactions from the log of one replica, and keyed records from a partition of a coordinator's topic.

Owns how a replica's directory is read (with the verifier's own readers), and whether the log is *whole*: it begins at
offset 0, has no gap, and is not damaged. Retention, DeleteRecords, compaction and damage all remove records. So if a
log is not whole, an absent record proves nothing. Judges nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from verifier.files.headers import Headers, read_headers
from verifier.files.transactions import Ended, FencedMarker, LateAppend, Opened, TransactionReplay
from verifier.segments import walk
from verifier.segments.keyed_records import DamagedRecords, keyed_records
from verifier.segments.markers import TRANSACTIONAL
from verifier.transactions.state_records import StateRecord, UnknownRecord, state_record

_SEGMENT = re.compile(r"^\d{20}\.log$")
#: The largest batch that is read. Coordinators write far smaller ones; a damaged size field can have any value.
_MOST_BATCH_BYTES = 128 << 20


class ReplicaEnd(NamedTuple):
    """How advanced a replica is: its highest leader epoch, then its log end offset."""

    leader_epoch: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class LogTransactions:
    """The transactions in one log.

    ``ended`` has every marker in order, and ``open`` the transactions that are open at the end, by producer id.
    ``late`` has appends under an old producer epoch, and ``fenced`` markers under an old coordinator epoch.
    """

    topic: str
    partition: int
    broker: int
    is_whole: bool
    ended: Sequence[Ended] = ()
    open: Mapping[int, Opened] = field(default_factory=dict)
    late: Sequence[LateAppend] = ()
    fenced: Sequence[FencedMarker] = ()


def replica_end(directory: Path) -> ReplicaEnd:
    """How advanced a replica is, by its last segment with batches; (-1, 0) if it has none. Raises ``OSError``."""
    for path in reversed(_segments(directory)):
        headers = read_headers(path)
        if headers.positions.size:
            return ReplicaEnd(int(headers.leader_epochs.max()), headers.end_offset)
    return ReplicaEnd(-1, 0)


def log_transactions(directory: Path, topic: str, partition: int, broker: int) -> LogTransactions:
    """The transactions in the log in a replica's directory. Raises ``OSError``."""
    replay = TransactionReplay()
    following, is_whole = 0, _begins_at_0(directory)
    for path in _segments(directory):
        headers = read_headers(path)
        count = headers.positions.size
        is_whole &= _follows(headers, following)
        following = headers.next_offset if count else following
        replay.advance(headers, 0, count)
    is_whole &= replay.unreadable < 0
    ended, late, fenced = tuple(replay.ended), tuple(replay.late), tuple(replay.fenced)
    return LogTransactions(topic, partition, broker, is_whole, ended, dict(replay.open), late, fenced)


def state_records(directory: Path, partition: int) -> tuple[list[StateRecord], bool]:
    """The records of a partition of ``__transaction_state``, and whether none is missing. Raises ``OSError``."""
    found: list[StateRecord] = []
    log = keyed_log(directory)
    is_whole = log.is_whole
    for record in log.records:
        try:
            told = state_record(partition, record.offset, record.key, record.value)
            found.append(told._replace(leader_epoch=record.leader_epoch))
        except UnknownRecord:
            is_whole = False
    return found, is_whole


class LoggedRecord(NamedTuple):
    """One record of a coordinator's log. ``producer_id`` is -1 if it is not part of a transaction."""

    offset: int
    producer_id: int
    key: bytes | None
    value: bytes | None
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class KeyedLog:
    """The readable records of a coordinator's log, and the markers in it."""

    records: Sequence[LoggedRecord]
    ended: Sequence[Ended]
    is_whole: bool


def keyed_log(directory: Path) -> KeyedLog:
    """The keyed log in a replica's directory. Raises ``OSError``."""
    records: list[LoggedRecord] = []
    replay = TransactionReplay()
    following, is_whole = 0, _begins_at_0(directory)
    for path in _segments(directory):
        headers = read_headers(path)
        count = headers.positions.size
        is_whole &= _follows(headers, following)
        following = headers.next_offset if count else following
        replay.advance(headers, 0, count)
        for record in _records(path, headers):
            if record is None:
                is_whole = False
            else:
                records.append(record)
    return KeyedLog(records, tuple(replay.ended), is_whole and replay.unreadable < 0)


def _segments(directory: Path) -> list[Path]:
    return sorted(path for path in directory.iterdir() if _SEGMENT.match(path.name))


def _begins_at_0(directory: Path) -> bool:
    """Whether the first segment is named after offset 0. A log whose records were all deleted has a later name."""
    return not any(int(path.stem) for path in _segments(directory)[:1])


def _follows(headers: Headers, following: int) -> bool:
    """Whether a segment's batches continue at ``following`` and have a record for every offset."""
    base, last = headers.base_offsets, headers.last_offsets
    expected = np.concatenate([[following], last + 1])[: base.size]
    return bool((base == expected).all() and (headers.record_counts == last - base + 1).all())


def _records(path: Path, headers: Headers) -> Iterator[LoggedRecord | None]:
    """Every record of a segment; None for each batch that cannot be read."""
    data = walk.open_segment(path)
    found = walk.walk(data)
    fields = walk.headers(data, found.positions)
    sound = walk.check_crcs(data, found.positions, found.sizes, fields["crc"])
    for at in range(found.positions.size):
        attributes = int(headers.attributes[at])
        if attributes & walk.CONTROL:
            continue
        start, size = int(found.positions[at]), int(found.sizes[at])
        try:
            if not sound[at] or size > _MOST_BATCH_BYTES:
                raise DamagedRecords("the CRC does not match the bytes, or there are too many of them")
            blob = data[start + walk.HEADER_BYTES : start + size].tobytes()
            records = keyed_records(blob, int(headers.record_counts[at]), attributes & walk.CODEC_MASK)
        except DamagedRecords:
            yield None
            continue
        base_offset, leader_epoch = int(headers.base_offsets[at]), int(headers.leader_epochs[at])
        producer_id = int(headers.producer_ids[at]) if attributes & TRANSACTIONAL else -1
        for each in records:
            yield LoggedRecord(base_offset + each.offset_delta, producer_id, each.key, each.value, leader_epoch)
