"""What a partition of ``__transaction_state`` holds, read into a ``TransactionTable``.

Owns that each record outside of a control batch is taken, and that a walk that begins again begins with an empty table.
Does not own the walk (``coordinator_loading``), nor what records mean.
"""

from __future__ import annotations

from collections.abc import Callable

from cluster.broker.coordinator_loading import TakeBatch, read_partition
from cluster.broker.portions import Beside
from cluster.coordinator.transaction.loading import TransactionTable
from cluster.log.errors import LogError
from cluster.log.partition_log import PartitionLog
from cluster.protocol.batch import BatchHeader
from cluster.protocol.records import Record


async def read_transactions(
    log: PartitionLog,
    beside: Beside,
    chunk_bytes: int,
    is_wanted: Callable[[], bool],
    storage_failed: Callable[[LogError], None],
) -> TransactionTable | None:
    """All there is now; None if it is no longer wanted before that is read."""
    table = TransactionTable()

    def begin() -> TakeBatch:
        nonlocal table
        table = TransactionTable()
        return take

    def take(header: BatchHeader, records: list[Record]) -> None:
        for record in () if header.is_control else records:
            table.take(record.offset, record.key, record.value)

    return table if await read_partition(log, begin, beside, chunk_bytes, is_wanted, storage_failed) else None
