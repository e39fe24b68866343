"""Reads a partition of an internal topic for the coordinator that takes it over.

Owns the walk from the start of its log to the end that it had when this broker became leader, and what ends it early.
Does not own what records mean. Batches are decoded off the event loop, one partition at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from cluster.broker.portions import Beside
from cluster.log.errors import OffsetOutsideLog, StorageFailed
from cluster.log.partition_log import PartitionLog
from cluster.protocol.batch import BatchHeader, iter_batches
from cluster.protocol.errors import CorruptBatch
from cluster.protocol.records import Record, decode_records
from cluster.seams.storage import Payload

#: Reads that may fail in a row. One does if the cleaner has just replaced the segment.
ATTEMPTS = 3

#: Takes one batch, with its records; batches come in the order of the log. It runs off the event loop.
TakeBatch = Callable[[BatchHeader, list[Record]], None]


class LoadingFailed(Exception):
    """A partition cannot be read to its end. What is in it stays without coordinator until another broker leads."""


async def read_partition(
    log: PartitionLog,
    take: TakeBatch,
    corrupt: type[Exception],
    beside: Beside,
    chunk_bytes: int,
    is_wanted: Callable[[], bool],
) -> bool:
    """Let ``take`` have all there is now. False if it is no longer wanted before that is done.

    Raises ``LoadingFailed``, also when ``take`` raises ``corrupt``, and ``LogError`` of the log.
    """
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
        except (CorruptBatch, corrupt) as error:
            raise LoadingFailed(
                f"{log.topic}-{log.partition} cannot be read beyond offset {offset}: {error}"
            ) from error
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
