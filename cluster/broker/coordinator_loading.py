"""Reads a partition of an internal topic for the coordinator that takes it over.

Owns the walk from the start of its log to the end that it had when this broker became leader, that a walk that failed
begins again, and what is told of records that cannot be read. Does not own what records mean, nor which of them cannot
be read. Batches are decoded off the event loop, one partition at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from cluster.broker.coordinator_counters import GROUP, TRANSACTION
from cluster.broker.metrics import Counters
from cluster.broker.portions import Beside
from cluster.coordinator.unreadable import UnreadableRecords
from cluster.log.errors import LogError, OffsetOutsideLog, StorageFailed
from cluster.log.partition_log import PartitionLog
from cluster.protocol.batch import BatchHeader, iter_batches
from cluster.protocol.errors import CorruptBatch
from cluster.protocol.records import Record, decode_records
from cluster.seams.storage import Payload
from cluster.seams.units import whole_ms_of_ns

logger = logging.getLogger(__name__)

#: Reads that may fail in a row. One does if the cleaner has just replaced the segment.
ATTEMPTS = 3
#: The pause before a partition that could not be read is read again.
RETRY_S = 5.0

#: What each coordinator has.
_WHAT = {GROUP: "groups", TRANSACTION: "transactional ids"}

#: Takes one batch, with its records; batches come in the order of the log. It runs off the event loop.
TakeBatch = Callable[[BatchHeader, list[Record]], None]


async def read_partition(
    log: PartitionLog,
    begin: Callable[[], TakeBatch],
    beside: Beside,
    chunk_bytes: int,
    is_wanted: Callable[[], bool],
    storage_failed: Callable[[LogError], None],
) -> bool:
    """Let what ``begin`` returns have all there is now. False if it is no longer wanted before that is done.

    A batch that is damaged, or that the disk does not give, may hold what any id depends on: the partition stays
    without coordinator, and is read again from its start, until it can be read or another broker leads.
    """
    is_told = False
    while True:
        try:
            return await _read(log, begin(), beside, chunk_bytes, is_wanted)
        except (LogError, CorruptBatch) as error:
            level = logging.DEBUG if is_told else logging.CRITICAL
            logger.log(
                level,
                "%s-%d cannot be loaded, and has no coordinator; it is read again every %g s: %s",
                log.topic,
                log.partition,
                RETRY_S,
                error,
            )
            if isinstance(error, LogError):
                storage_failed(error)
        is_told = True
        await asyncio.sleep(RETRY_S)
        if not is_wanted():
            return False


def tell_loaded(log: PartitionLog, coordinator: str, count: int, took_ns: int, counters: Counters) -> None:
    """A partition was loaded, with ``count`` groups or transactional ids."""
    counters.coordinators.loaded(coordinator, took_ns)
    level, what = logging.INFO if count else logging.DEBUG, _WHAT[coordinator]
    logger.log(level, "%d %s of %s-%d, %d ms", count, what, log.topic, log.partition, whole_ms_of_ns(took_ns))


def tell_unreadable(log: PartitionLog, unreadable: UnreadableRecords, counters: Counters) -> None:
    """A partition was loaded but for these records."""
    if unreadable.count:
        counters.unreadable_records += unreadable.count
        logger.critical(
            "%d records of %s-%d cannot be read and are left out; what they are about is unavailable "
            "until a later record replaces them: %s",
            unreadable.count,
            log.topic,
            log.partition,
            unreadable,
        )


async def _read(
    log: PartitionLog, take: TakeBatch, beside: Beside, chunk_bytes: int, is_wanted: Callable[[], bool]
) -> bool:
    """Once from start to end. Raises ``LogError`` of the log, and ``CorruptBatch``."""
    offset, end, failures = log.log_start_offset, log.log_end_offset, 0
    while offset < end:
        if not is_wanted():
            return False
        try:
            records = log.read(offset, chunk_bytes, end).records
            if records is None:
                break
            offset = await beside.run(partial(_feed, take, records, offset))
            failures = 0
        except OffsetOutsideLog:
            # Records were deleted meanwhile.
            offset = max(offset + 1, log.log_start_offset)
        except OSError as error:
            failures += 1
            if failures == ATTEMPTS:
                raise StorageFailed(f"reading {log.directory} at offset {offset}: {error}") from error
            await asyncio.sleep(0)
        except CorruptBatch as error:
            raise CorruptBatch(f"beyond offset {offset}: {error}") from error
    return is_wanted()


def _feed(take: TakeBatch, records: Payload, offset: int) -> int:
    """The offset after the last batch. All of it is read before any is taken: a read that fails can be repeated."""
    data = records if isinstance(records, (bytes, bytearray, memoryview)) else records.read()
    view, after = memoryview(data), offset
    for position, header in iter_batches(view):
        take(header, decode_records(view[position : position + header.size_bytes]))
        after = header.next_offset
    if after <= offset:
        raise CorruptBatch("no whole batch")
    return after
