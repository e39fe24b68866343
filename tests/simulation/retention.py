"""Retention, judged: whether a log was right to give up its head, by what stood on the disk just before.

Owns Kafka's rules (``UnifiedLog.deleteOldSegments``) a second time, over the bytes of the segments. Shares nothing with
``cluster.log.retention``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cluster.log.partition_log import PartitionLog
from cluster.protocol.batch import iter_batches
from cluster.seams.storage import Storage

#: Why a log start moves without anybody asking for it.
RETENTION = ("size", "time", "log-start")


class OnDisk(NamedTuple):
    """A segment: where it begins and ends, its size, and its newest timestamp in ms, -1 if it holds no batch."""

    base: int
    end: int
    size_bytes: int
    newest_ms: int


class Settings(NamedTuple):
    """The topic's, as the broker has them; -1 is no limit."""

    cleanup_policy: Sequence[str]
    retention_bytes: int
    retention_ms: int


class Moved(NamedTuple):
    """A log start that moved, and what the replica took for committed then."""

    before: int
    after: int
    high_watermark: int


def looked_at(
    log: PartitionLog, entry: Mapping[str, Any], high_watermark: int, storage: Storage, now_ms: int
) -> list[str]:
    """``wrongs`` of a log whose start has just moved, as the line of the journal says, with its files still there."""
    segments = segments_of(storage, log.directory, entry["log_end_offset"])
    settings = Settings(log.config.cleanup_policy, log.config.retention_bytes, log.config.retention_ms)
    return wrongs(segments, settings, Moved(entry["before"], entry["log_start_offset"], high_watermark), now_ms)


def segments_of(storage: Storage, directory: str, log_end: int) -> list[OnDisk]:
    """The segments of a log, in order."""
    names = sorted(name for name in storage.listdir(directory) if name.endswith(".log"))
    bases = [int(name.removesuffix(".log")) for name in names]
    found: list[OnDisk] = []
    for name, base, end in zip(names, bases, [*bases[1:], log_end], strict=True):
        data = storage.read(f"{directory}/{name}")
        newest_ms = max((header.max_timestamp for _, header in iter_batches(data)), default=-1)
        found.append(OnDisk(base, end, len(data), newest_ms))
    return found


def wrongs(segments: Sequence[OnDisk], settings: Settings, moved: Moved, now_ms: int) -> list[str]:
    """What is wrong with a log start that retention moved; ``now_ms`` is the broker's time of day."""
    found: list[str] = []
    if moved.after > moved.high_watermark:
        found.append(f"retention went to {moved.after}, and only what is below {moved.high_watermark} is committed")
    left = sum(segment.size_bytes for segment in segments)
    gone = [segment for segment in segments if segment.base < moved.after]
    if gone and gone[-1].end != moved.after:
        found.append(f"retention went to {moved.after}, within the segment {gone[-1]}")
    for segment in gone:
        left -= segment.size_bytes
        if segment.end <= moved.before:
            continue
        is_old = 0 <= settings.retention_ms < now_ms - segment.newest_ms
        is_too_much = 0 <= settings.retention_bytes <= left
        if "delete" not in settings.cleanup_policy or not (is_old or is_too_much):
            found.append(f"retention took {segment}, with {left} bytes left at {now_ms}, by {settings}")
    return found
