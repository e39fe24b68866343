"""internal-divergence: replicas of an internal topic, or of a group's output, differ.

Definition. The replicas of each partition of ``__transaction_state``, ``__consumer_offsets`` and ``gapless-output`` are
compared with the most advanced one. ``different``: two batches have the same leader epoch and base offset, anywhere in
the files; or, below the limit, an offset has another epoch, a batch that is damaged only in this replica, or another
record. ``missing`` and ``extra``: below the limit, one of the two lacks what the other one has. The limit is the
smaller of the two high watermarks that the brokers noted when they stopped cleanly. Without them, or if an election may
truncate committed records, only batches of the same epoch are compared. Each replica is compacted on its own. So if
records were removed from a batch, it is compared record by record. And once a log has several segments, only the newest
record of a key must be there, if it counts and is not a tombstone. Damage in the most advanced replica makes the run
unknown. Legal: above the limit, anything of another epoch; a log that ends earlier, since its broker may have stopped
earlier.

    b1, high watermark 9: [6 epoch 2, x: CompleteCommit]       b2, high watermark 8: [6 epoch 2, x: CompleteAbort]
"""

# From the bytes of all replicas, in this process. Pure.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from verifier.coordinators.internal_replicas import InternalPartition, ReplicaBatch, ReplicaLog, ReplicaRecord
from verifier.transactions.model import Anomalous

NAME = "internal-divergence"
DIFFERENT, MISSING, EXTRA = "different", "missing", "extra"


def internal_divergence(partitions: Iterable[InternalPartition]) -> Iterator[Anomalous]:
    """One anomaly per replica and batch, or per record if compaction changed the batch; ``offset`` is its first."""
    for partition in partitions:
        judged = partition.judged
        for other in partition.others:
            limit = min(judged.high_watermark, other.high_watermark) if partition.keeps_committed else 0
            detail = {"broker": other.broker, "judged": judged.broker, "limit": limit}
            for offset in _different(judged, other, limit):
                yield Anomalous(NAME, DIFFERENT, *partition.place, offset, detail)
            for cause, has, lacks in ((MISSING, judged, other), (EXTRA, other, judged)):
                for offset in _missing_offsets(partition, has, lacks, limit):
                    yield Anomalous(NAME, cause, *partition.place, offset, detail)


def _different(judged: ReplicaLog, other: ReplicaLog, limit: int) -> list[int]:
    """Base offsets of batches that differ, and offsets of records that differ in compacted batches."""
    known = {batch.base_offset: batch for batch in judged.batches}
    pairs = [(known[batch.base_offset], batch) for batch in other.batches if batch.base_offset in known]
    found = {batch.base_offset for mine, batch in pairs if _differ(mine, batch, limit)}
    rewritten = [
        (batch.base_offset, batch.last_offset)
        for mine, batch in pairs
        if batch.base_offset not in found and not (mine.is_whole and batch.is_whole)
    ]
    records = {record.offset: record for record in judged.records or ()}
    theirs = {record.offset: record for record in other.records or ()}
    for first, last in rewritten:
        for offset in range(first, min(last + 1, limit)):
            if offset in records and offset in theirs and _content(records[offset]) != _content(theirs[offset]):
                found.add(offset)
    return sorted(found)


def _differ(mine: ReplicaBatch, theirs: ReplicaBatch, limit: int) -> bool:
    """Whether two batches with the same base offset differ in a way that is not legal."""
    if not mine.is_sound:
        return False
    is_committed = max(mine.last_offset, theirs.last_offset) < limit
    if not theirs.is_sound:
        return is_committed
    if mine.leader_epoch != theirs.leader_epoch:
        return is_committed
    if mine.last_offset != theirs.last_offset:
        return True
    return mine.is_whole and theirs.is_whole and (mine.size_bytes, mine.crc) != (theirs.size_bytes, theirs.crc)


def _content(record: ReplicaRecord) -> tuple[bytes | None, bytes | None]:
    return record.key, record.value


def _missing_offsets(partition: InternalPartition, has: ReplicaLog, lacks: ReplicaLog, limit: int) -> Iterator[int]:
    """Offsets below the limit that one replica has and the other must have but lacks."""
    if partition.has_all:
        there = {batch.base_offset for batch in lacks.batches}
        for batch in has.batches:
            is_judged = batch.is_sound and batch.base_offset >= lacks.start and batch.last_offset < limit
            if is_judged and batch.base_offset not in there:
                yield batch.base_offset
    elif partition.keeps_newest and has.records is not None and lacks.records is not None:
        offsets = {record.offset for record in lacks.records}
        damaged = [(batch.base_offset, batch.last_offset) for batch in lacks.batches if not batch.is_sound]
        later = {key: record.offset for key, record in _newest(lacks.records).items()}
        for key, record in _newest(record for record in has.records if record.counts).items():
            is_judged = record.value is not None and record.offset < limit
            is_judged &= not any(first <= record.offset <= last for first, last in damaged)
            if is_judged and record.offset not in offsets and later.get(key, -1) < record.offset:
                yield record.offset


def _newest(records: Iterable[ReplicaRecord]) -> Mapping[bytes, ReplicaRecord]:
    """The newest record of each key. Records without a key are ignored."""
    found: dict[bytes, ReplicaRecord] = {}
    for record in sorted(records, key=lambda record: record.offset):
        if record.key is not None:
            found[record.key] = record
    return found
