"""Markers and records of ``__transaction_state`` for tests: obvious, and sharing no line with any reader."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import groupby

from tests.support.stories import MADE_MS, Batch

ABORT, COMMIT = 0, 1
EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT = range(6)
TRANSACTIONAL, CONTROL = 0x10, 0x20


def marker(offset: int, kind: int, producer_id: int, producer_epoch: int = 0, coordinator_epoch: int = 1) -> Batch:
    """The batch that ends a transaction at ``offset``."""
    return Batch(
        offset,
        (),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        raw_values=(struct.pack(">hi", 0, coordinator_epoch),),
        keys=(struct.pack(">hh", 0, kind),),
        attributes=TRANSACTIONAL | CONTROL,
    )


def state_key(transactional_id: str) -> bytes:
    """TransactionLogKey 0."""
    return struct.pack(">h", 0) + _text(transactional_id)


def state_value(
    state: int,
    producer_id: int,
    producer_epoch: int = 0,
    topic_partitions: Iterable[tuple[str, int]] = (),
    timeout_ms: int = 60_000,
    updated_ms: int = MADE_MS,
    started_ms: int = MADE_MS,
) -> bytes:
    """TransactionLogValue 0."""
    head = struct.pack(">hqhib", 0, producer_id, producer_epoch, timeout_ms, state)
    if state == EMPTY:
        return head + struct.pack(">iqq", -1, updated_ms, -1)
    topics = [
        (topic, [partition for _, partition in pairs])
        for topic, pairs in groupby(sorted(topic_partitions), key=lambda pair: pair[0])
    ]
    body = struct.pack(">i", len(topics))
    for topic, partitions in topics:
        body += _text(topic) + struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)
    return head + body + struct.pack(">qq", updated_ms, started_ms)


def state_log(records: Sequence[tuple[str, bytes]]) -> list[Batch]:
    """The batches of one partition: (transactional id, value), one each."""
    return [
        Batch(offset, (), keys=(state_key(transactional_id),), raw_values=(value,))
        for offset, (transactional_id, value) in enumerate(records)
    ]


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()
