"""What becomes due by time alone: transactions that are open too long, and ids that no one has used for long.

Owns the conditions and the transitions that follow. Does not own when they are checked (Kafka: every 10 s, and every
hour), nor the records (``coordinator.py``).
"""

from __future__ import annotations

from collections.abc import Set

from cluster.coordinator.transaction.state import IDLE, TransactionMetadata, TransactionState
from cluster.coordinator.transaction.transitions import abort_fenced, prepare_dead, prepare_fence_producer_epoch


def abort_if_timed_out(metadata: TransactionMetadata, now_ms: int) -> TransactionMetadata | None:
    """The abort of a transaction that is open longer than its producer asked for, under an epoch that fences the
    producer; None where none is due."""
    is_open = metadata.state is TransactionState.ONGOING and metadata.pending is None
    if not is_open or metadata.start_timestamp_ms + metadata.timeout_ms >= now_ms:
        return None
    return abort_fenced(prepare_fence_producer_epoch(metadata), now_ms)


def expire_if_idle(metadata: TransactionMetadata, expiration_ms: int, now_ms: int) -> TransactionMetadata | None:
    """The end of an id without a transaction that has not changed for ``expiration_ms``; None where none is due."""
    is_idle = metadata.state in IDLE and metadata.pending is None
    if not is_idle or metadata.last_update_timestamp_ms > now_ms - expiration_ms:
        return None
    return prepare_dead(metadata)


def make_room(
    metadata: TransactionMetadata, idle_ms: int, now_ms: int, of_hosts: Set[str] | None, *, only_unused: bool
) -> TransactionMetadata | None:
    """The same for an id that makes room for another one: only those of these hosts do, and those of which no host is
    known; None: all. With ``only_unused`` only those that never had a transaction."""
    is_spared = of_hosts is not None and metadata.client_host and metadata.client_host not in of_hosts
    if is_spared or (only_unused and metadata.has_had_transactions):
        return None
    return expire_if_idle(metadata, idle_ms, now_ms)
