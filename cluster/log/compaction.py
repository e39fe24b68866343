"""Compaction, the decisions: what of a log is to be compacted, and which records of a batch stay. Pure.

Owns the rules of Kafka's LogCleaner. Does not own files (``cleaner.py``) or when one looks (the broker's timers).

* Offsets never change, and of each key the newest record stays. A tombstone stays until the delete horizon, which the
  first pass that sees it writes into its batch.
* Beyond Kafka, which keeps a producer's last batch in the whole log: of each producer that is known, the last five in
  what is compacted stay, as headers without records if need be. Whatever a power loss or a truncation takes from the
  end of the log later, a resend is still told apart from news.
* Records of aborted transactions go, and their keys shadow nothing; those of committed ones are like any others.
  Compaction ends before the first transaction that is not decided in what was read (``outcomes.py``): a tombstone that
  goes would bring back what the transaction wrote before it.
* Control batches are left whole. Kafka removes a marker some time after the last batch of its transaction.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence, Set
from hashlib import blake2b
from typing import NamedTuple

from cluster.log.config import LogConfig
from cluster.log.roll import INT32_MAX
from cluster.log.sequence import WINDOW
from cluster.protocol.batch import BatchHeader
from cluster.protocol.records import Record, decode_records
from cluster.protocol.rewriting import empty_batch, rebuild_batch

#: What one key costs in the map: its digest, the offset, and the dictionary's own.
KEY_BYTES = 150


class CleanableSegment(NamedTuple):
    """What is asked of a segment that is not active. ``first_ms`` and ``newest_ms`` are -1 if no record has a time."""

    base_offset: int
    end_offset: int
    size_bytes: int
    first_ms: int
    newest_ms: int


class Cleanable(NamedTuple):
    """``[first_dirty_offset, end_offset)`` may be compacted; ``ratio`` is its share of what would be read."""

    first_dirty_offset: int
    end_offset: int
    ratio: float
    is_due: bool


def cleanable(
    segments: Sequence[CleanableSegment],
    config: LogConfig,
    *,
    cleaned_to: int,
    log_start_offset: int,
    stable_offset: int,
    now_ms: int,
) -> Cleanable | None:
    """What can be compacted of a log with these inactive segments, None if nothing.

    Whole segments below ``stable_offset``, up to the first that ``min.compaction.lag.ms`` protects. It is due if the
    dirty share has reached ``min.cleanable.dirty.ratio``, or a dirty record is older than ``max.compaction.lag.ms``.
    ``now_ms`` is wall time.
    """
    first_dirty = max(cleaned_to, log_start_offset)
    clean_bytes = dirty_bytes = 0
    end_offset = first_dirty
    is_overdue = False
    for segment in segments:
        if segment.end_offset <= first_dirty:
            clean_bytes += segment.size_bytes
            continue
        is_young = config.min_compaction_lag_ms > 0 and segment.newest_ms > now_ms - config.min_compaction_lag_ms
        if segment.end_offset > stable_offset or is_young:
            break
        dirty_bytes += segment.size_bytes
        end_offset = segment.end_offset
        if 0 <= segment.first_ms < now_ms - config.max_compaction_lag_ms:
            is_overdue = True
    if not dirty_bytes:
        return None
    ratio = dirty_bytes / (clean_bytes + dirty_bytes)
    return Cleanable(first_dirty, end_offset, ratio, is_overdue or ratio >= config.min_cleanable_dirty_ratio)


def group_segments(segments: Iterable[tuple[CleanableSegment, int]], config: LogConfig) -> list[list[CleanableSegment]]:
    """Neighbors that together make one segment. With each comes the size of its larger index, in bytes."""
    groups: list[list[CleanableSegment]] = []
    size = index_bytes = 0
    for segment, larger_index_bytes in segments:
        fits = (
            bool(groups)
            and size + segment.size_bytes <= config.segment_bytes
            and index_bytes + larger_index_bytes <= config.segment_index_bytes
            and segment.end_offset - groups[-1][0].base_offset <= INT32_MAX
        )
        if not fits:
            groups.append([])
            size = index_bytes = 0
        groups[-1].append(segment)
        size += segment.size_bytes
        index_bytes += larger_index_bytes
    return groups


class LatestOffsets:
    """The newest offset of each key, as far as ``max_keys`` reach. Keys are kept as 16-byte digests."""

    def __init__(self, max_keys: int) -> None:
        self._max_keys = max(1, max_keys)
        self._offsets: dict[bytes, int] = {}

    def __repr__(self) -> str:
        return f"LatestOffsets({len(self)} keys)"

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def is_full(self) -> bool:
        return len(self._offsets) >= self._max_keys

    def note(self, batch: bytes, header: BatchHeader) -> None:
        """Take in a batch of no aborted transaction; they come in the order of the log. Raises ``CorruptBatch``."""
        if header.is_control or not header.record_count:
            return
        for record in decode_records(batch):
            if record.key is not None:
                self._offsets[_digest(record.key)] = record.offset

    def get(self, key: bytes) -> int:
        """-1 for a key that is not there."""
        return self._offsets.get(_digest(key), -1)


class NewestBatches:
    """The base offsets of the last five batches of each of ``producer_ids``, in what is compacted."""

    def __init__(self, producer_ids: Iterable[int]) -> None:
        self._offsets: dict[int, deque[int]] = {producer_id: deque(maxlen=WINDOW) for producer_id in producer_ids}

    def __repr__(self) -> str:
        return f"NewestBatches({len(self._offsets)} producers)"

    def note(self, header: BatchHeader) -> None:
        """Take in a batch; they come in the order of the log."""
        if header.base_sequence >= 0 and (offsets := self._offsets.get(header.producer_id)) is not None:
            offsets.append(header.base_offset)

    def base_offsets(self) -> frozenset[int]:
        return frozenset(offset for offsets in self._offsets.values() for offset in offsets)


def _digest(key: bytes) -> bytes:
    return blake2b(key, digest_size=16).digest()


def compacted(
    batch: bytes,
    header: BatchHeader,
    latest: LatestOffsets,
    *,
    is_aborted: bool,
    protected: Set[int],
    now_ms: int,
    delete_retention_ms: int,
) -> bytes:
    """What stays of a batch: itself, a smaller one, one without records, or nothing.

    ``is_aborted``: its transaction was. ``protected`` are base offsets of batches whose headers must stay, for their
    producers' sake. Raises ``CorruptBatch``.
    """
    if header.is_control:
        return batch
    records = decode_records(batch)
    horizon_ms = header.delete_horizon_ms
    staying = [] if is_aborted else [record for record in records if _stays(record, latest, horizon_ms, now_ms)]
    if not staying:
        if header.base_offset not in protected:
            return b""
        return batch if not records else empty_batch(header)
    meets_tombstones = horizon_ms is None and any(record.value is None for record in staying)
    if meets_tombstones:
        horizon_ms = now_ms + delete_retention_ms
    if len(staying) == len(records) and not meets_tombstones:
        return batch
    return rebuild_batch(header, staying, horizon_ms)


def _stays(record: Record, latest: LatestOffsets, horizon_ms: int | None, now_ms: int) -> bool:
    if record.key is None or record.offset < latest.get(record.key):
        return False
    return record.value is not None or horizon_ms is None or now_ms < horizon_ms
