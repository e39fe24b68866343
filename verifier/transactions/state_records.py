"""Decodes the records of ``__transaction_state`` into plain values.

Owns the layouts of TransactionLogKey 0 and TransactionLogValue 0 (docs/reference/kafka.md "Records of a transaction").
Judges nothing.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

#: The states of a transaction, by the numbers that are stored.
EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT = range(6)
#: The state of a tombstone: the transactional id was removed. It is never stored as a number.
DEAD = 6
STATE_NAMES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead")

_VERSION = struct.Struct(">h")
_HEAD = struct.Struct(">hqhib")
_SHORT, _INT, _TIMES = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">qq")

TopicPartition = tuple[str, int]


class UnknownRecord(ValueError):
    """A key or value does not have a known layout. The message is one line."""


class StateRecord(NamedTuple):
    """One record of a transactional id, at ``offset`` of the topic's ``partition``. Times are in ms, -1 for none.

    A tombstone has the state DEAD and only default values. ``leader_epoch`` is the epoch in which the coordinator wrote
    the record, -1 if it is unknown.
    """

    partition: int
    offset: int
    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: int
    topic_partitions: frozenset[TopicPartition]
    updated_ms: int
    started_ms: int
    leader_epoch: int = -1


def state_record(partition: int, offset: int, key: bytes | None, value: bytes | None) -> StateRecord:
    """Decodes one record. Raises ``UnknownRecord``."""
    try:
        transactional_id = _decode_key(key or b"")
        if value is None:
            return StateRecord(partition, offset, transactional_id, -1, -1, -1, DEAD, frozenset(), -1, -1)
        return _decode_value(
            StateRecord(partition, offset, transactional_id, -1, -1, -1, 0, frozenset(), -1, -1), value
        )
    except (struct.error, UnicodeDecodeError) as error:
        raise UnknownRecord(f"{error}") from None


def _decode_key(key: bytes) -> str:
    (version,) = _VERSION.unpack_from(key)
    if version != 0:
        raise UnknownRecord(f"a key of version {version}, only 0 is known")
    transactional_id, at = text_at(key, _VERSION.size)
    if at != len(key):
        raise UnknownRecord(f"{len(key) - at} bytes follow the transactional id")
    return transactional_id


def _decode_value(empty: StateRecord, value: bytes) -> StateRecord:
    version, producer_id, producer_epoch, timeout_ms, state = _HEAD.unpack_from(value)
    if version != 0:
        raise UnknownRecord(f"a value of version {version}, only 0 is known")
    if not EMPTY <= state <= COMPLETE_ABORT:
        raise UnknownRecord(f"state {state} is never stored")
    topic_partitions, at = _topic_partitions(value, _HEAD.size)
    updated_ms, started_ms = _TIMES.unpack_from(value, at)
    if at + _TIMES.size != len(value):
        raise UnknownRecord(f"{len(value) - at - _TIMES.size} bytes follow the value")
    return empty._replace(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        timeout_ms=timeout_ms,
        state=state,
        topic_partitions=frozenset(topic_partitions),
        updated_ms=updated_ms,
        started_ms=started_ms,
    )


def _topic_partitions(value: bytes, at: int) -> tuple[list[TopicPartition], int]:
    """The partitions at ``at``, and where they end. A null array, which the state Empty has, gives none."""
    found: list[TopicPartition] = []
    (topics,) = _INT.unpack_from(value, at)
    at += _INT.size
    for _ in range(topics):
        topic, at = text_at(value, at)
        (count,) = _INT.unpack_from(value, at)
        at += _INT.size
        for _ in range(count):
            found.append((topic, _INT.unpack_from(value, at)[0]))
            at += _INT.size
    return found, at


def text_at(data: bytes, at: int) -> tuple[str, int]:
    """The Kafka string at ``at``, and where it ends. Raises UnknownRecord, struct.error or UnicodeDecodeError."""
    (size,) = _SHORT.unpack_from(data, at)
    end = at + _SHORT.size + size
    if size < 0 or end > len(data):
        raise UnknownRecord(f"a text of {size} bytes reaches outside")
    return data[at + _SHORT.size : end].decode(), end
