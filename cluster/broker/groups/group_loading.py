"""Reads a partition of ``__consumer_offsets`` for the coordinator that takes it over.

Owns the walk from the start of its log to the end that it had when this broker became leader, and what ends it early.
Does not own what records mean (``GroupLoader``). Batches are decoded off the event loop, one partition at a time.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Callable
from functools import partial

from cluster.broker.portions import Beside
from cluster.coordinator.group.loading import GroupLoader, LoadedBatch
from cluster.coordinator.group.records import CorruptGroupRecord
from cluster.log.errors import OffsetOutsideLog, StorageFailed
from cluster.log.partition_log import PartitionLog
from cluster.protocol.batch import BatchHeader, iter_batches
from cluster.protocol.errors import CorruptBatch
from cluster.protocol.records import Record, decode_records
from cluster.seams.storage import Payload

logger = logging.getLogger(__name__)

#: Reads that may fail in a row. One does if the cleaner has just replaced the segment.
ATTEMPTS = 3

_MARKER_KEY = struct.Struct(">hh")
_ABORT, _COMMIT = 0, 1


class LoadingFailed(Exception):
    """A partition cannot be read to its end. Its groups stay without coordinator until another broker leads."""


async def read_partition(
    log: PartitionLog, loader: GroupLoader, beside: Beside, chunk_bytes: int, is_wanted: Callable[[], bool]
) -> bool:
    """Feed ``loader`` with all there is now. False if it is no longer wanted before that is done.

    Raises ``LoadingFailed``, and ``LogError`` of the log.
    """
    offset, end, failures = log.log_start_offset, log.log_end_offset, 0
    while offset < end:
        if not is_wanted():
            return False
        try:
            records = log.read(offset, chunk_bytes, end).records
            if records is None:
                break
            offset = await beside.run(partial(_feed, loader, records, offset))
            failures = 0
        except OffsetOutsideLog:
            # Records were deleted meanwhile.
            offset = max(offset + 1, log.log_start_offset)
        except OSError as error:
            failures += 1
            if failures == ATTEMPTS:
                raise StorageFailed(f"reading {log.directory} at offset {offset}: {error}") from error
            await asyncio.sleep(0)
        except (CorruptBatch, CorruptGroupRecord) as error:
            raise LoadingFailed(
                f"{log.topic}-{log.partition} cannot be read beyond offset {offset}: {error}"
            ) from error
    return is_wanted()


def _feed(loader: GroupLoader, records: Payload, offset: int) -> int:
    """The offset after the last batch. All of it is read before any is taken: a read that fails can be repeated."""
    data = records if isinstance(records, (bytes, bytearray, memoryview)) else records.read()
    view, after = memoryview(data), offset
    for position, header in iter_batches(view):
        batch = view[position : position + header.size_bytes]
        loader.feed(_loaded(header, decode_records(batch)))
        after = header.next_offset
    if after <= offset:
        raise CorruptBatch("no whole batch")
    return after


def _loaded(header: BatchHeader, records: list[Record]) -> LoadedBatch:
    if header.is_control:
        is_committed = _marker(records)
        if is_committed is not None:
            return LoadedBatch(header.base_offset, (), header.producer_id, True, is_committed)
        return LoadedBatch(header.base_offset)
    pairs = tuple((record.key or b"", record.value) for record in records)
    return LoadedBatch(header.base_offset, pairs, header.producer_id, header.is_transactional)


def _marker(records: list[Record]) -> bool | None:
    """Whether a control batch commits; None if it is of another kind."""
    key = records[0].key if records else None
    if key is None or len(key) < _MARKER_KEY.size:
        return None
    _version, kind = _MARKER_KEY.unpack_from(key)
    return kind == _COMMIT if kind in (_ABORT, _COMMIT) else None
