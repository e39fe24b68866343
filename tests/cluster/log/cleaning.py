"""A log that is compacted: its settings, what is put into it, and what is left."""

from __future__ import annotations

from hypothesis import strategies as st

from cluster.log.config import LogConfig
from cluster.log.partition_log import PartitionLog
from cluster.protocol.batch import parse_header
from cluster.protocol.records import NewRecord, Record, build_batch, decode_records
from tests.cluster.log.builders import DIRECTORY, NOW_MS, Bench, append, read_all

RETENTION_MS = 1000
CONFIG = LogConfig(
    segment_bytes=300,
    index_interval_bytes=100,
    cleanup_policy=("compact",),
    delete_retention_ms=RETENTION_MS,
    min_cleanable_dirty_ratio=0.0,
)
KEYS = (b"a", b"b", b"c", b"d")
PAIRS = st.tuples(st.sampled_from(KEYS), st.sampled_from([None, b"1", b"2" * 60]))


def put(log: PartitionLog, *pairs: tuple[bytes | None, bytes | None], now_ms: int = NOW_MS, **fields) -> None:
    batch = bytearray(build_batch([NewRecord(now_ms, key, value) for key, value in pairs], **fields))
    append(log, batch)


def clean(log: PartitionLog, now_ms: int = NOW_MS, max_keys: int = 1000, stable_offset: int | None = None) -> bool:
    """One compaction of all that can be, due or not: what is synced."""
    log.flush()
    what = log.cleanable(log.log_end_offset if stable_offset is None else stable_offset, now_ms)
    if what is None:
        return False
    cleaning = log.begin_cleaning(what, max_keys, now_ms)
    cleaning.run()
    return log.finish_cleaning(cleaning)


def batches(log: PartitionLog) -> list[bytes]:
    data = read_all(log)
    found, position = [], 0
    while position < len(data):
        size = parse_header(data, position).size_bytes
        found.append(data[position : position + size])
        position += size
    return found


def records(log: PartitionLog) -> list[Record]:
    return [record for batch in batches(log) for record in decode_records(batch)]


def reopen(on: Bench, cleaned_to: int = 0, **fields) -> PartitionLog:
    return PartitionLog.open(
        DIRECTORY, "t", 0, CONFIG, on.storage, on.clock, clean=False, cleaned_to=cleaned_to, **fields
    )
