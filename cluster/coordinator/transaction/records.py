"""Keys and values of ``__transaction_state``, byte for byte as Kafka writes them.

Owns the layouts of TransactionLogKey 0 and TransactionLogValue 0, which is written, and 1, which is read too
(docs/reference/kafka.md "Records of a transaction"). A value of None is a tombstone: the id is forgotten. Does not own
what a coordinator makes of the records of a partition (``loading.py``).

Bytes that do not follow the layout to the last one are ``CorruptTransactionRecord``: a decision that cannot be read
must not be guessed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from cluster.coordinator.transaction.state import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    TransactionMetadata,
    TransactionState,
    TransitMetadata,
)
from cluster.protocol.by_topic import by_topic
from cluster.protocol.errors import MalformedRequest
from cluster.protocol.primitives import (
    INT16,
    INT32,
    INT64,
    READ_ERRORS,
    Buffer,
    check_count,
    read_compact_count,
    read_compact_string,
    read_count,
    read_string,
    read_tags,
    read_uvarint,
    skip_tags,
    write_nullable_string,
)
from cluster.topic_partition import TopicPartition

KEY_VERSION = 0
#: The version that is written, and the greatest that is read.
VALUE_VERSION = 0
_FLEXIBLE_VERSION = 1
_NULL_ARRAY = INT32.pack(-1)

#: Producer id, producer epoch, timeout, state.
_HEAD = struct.Struct(">qhib")
#: Last update, start.
_TIMES = struct.Struct(">qq")
#: Of version 1's tagged fields the one that means something here.
_PREVIOUS_PRODUCER_ID_TAG = 0
#: No record has these: a fence is in memory alone, and what is dead has a tombstone.
_NEVER_STORED = (TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE)

_ReadCount = Callable[[Buffer, int, int], tuple[int, int]]
_ReadText = Callable[[Buffer, int], tuple[str, int]]


class CorruptTransactionRecord(Exception):
    """A record of ``__transaction_state`` that does not follow its layout."""


class UnknownKeyVersion(Exception):
    """A key of a later version, which a load passes over: it is about something that this code does not have."""


def encode_key(transactional_id: str) -> bytes:
    """The key of all records of one id."""
    return INT16.pack(KEY_VERSION) + write_nullable_string(transactional_id)


def decode_key(key: Buffer | None) -> str:
    """The transactional id. Raises ``CorruptTransactionRecord`` and ``UnknownKeyVersion``."""
    if key is None:
        raise CorruptTransactionRecord("a record of the transaction log without a key")
    try:
        (version,) = INT16.unpack_from(key)
        if version > KEY_VERSION:
            raise UnknownKeyVersion(f"a key of version {version}")
        transactional_id, position = read_string(key, 2)
    except (*READ_ERRORS, MalformedRequest) as error:
        raise CorruptTransactionRecord(f"a key of the transaction log: {error}") from error
    if version < 0 or position != len(key):
        raise CorruptTransactionRecord(f"a key of version {version} and {len(key)} bytes, {position} read")
    return transactional_id


def encode_value(transit: TransitMetadata) -> bytes | None:
    """The value of one transition; None for the one to DEAD."""
    if transit.state is TransactionState.DEAD:
        return None
    if transit.state in _NEVER_STORED:
        raise ValueError(f"{transit.state.name} is never stored")
    head = _HEAD.pack(transit.producer_id, transit.producer_epoch, transit.timeout_ms, transit.state)
    partitions = _encode_partitions(transit)
    times = _TIMES.pack(transit.last_update_timestamp_ms, transit.start_timestamp_ms)
    return b"".join((INT16.pack(VALUE_VERSION), head, partitions, times))


def _encode_partitions(transit: TransitMetadata) -> bytes:
    """An array of topics with their partitions, in order; null, which is not the same as empty, in EMPTY alone."""
    if transit.state is TransactionState.EMPTY:
        return _NULL_ARRAY
    topics = []
    for topic, unordered in sorted(by_topic(transit.topic_partitions).items()):
        numbers = sorted(unordered)
        topics.append(write_nullable_string(topic) + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers))
    return INT32.pack(len(topics)) + b"".join(topics)


def decode_value(transactional_id: str, value: Buffer) -> TransactionMetadata:
    """What is known of an id by its last record. Raises ``CorruptTransactionRecord``."""
    try:
        return _decode_value(transactional_id, value)
    except (*READ_ERRORS, MalformedRequest) as error:
        raise CorruptTransactionRecord(f"the value of {transactional_id!r}: {error}") from error


def _decode_value(transactional_id: str, value: Buffer) -> TransactionMetadata:
    (version,) = INT16.unpack_from(value)
    if version not in (VALUE_VERSION, _FLEXIBLE_VERSION):
        raise CorruptTransactionRecord(f"the value of {transactional_id!r} has version {version}")
    is_flexible = version == _FLEXIBLE_VERSION
    producer_id, producer_epoch, timeout_ms, status = _HEAD.unpack_from(value, 2)
    partitions, position = _read_partitions(value, 2 + _HEAD.size, is_flexible=is_flexible)
    last_update_timestamp_ms, start_timestamp_ms = _TIMES.unpack_from(value, position)
    position += _TIMES.size
    last_producer_id = NO_PRODUCER_ID
    if is_flexible:
        tags, position = read_tags(value, position, (_PREVIOUS_PRODUCER_ID_TAG,))
        for _, data in tags:
            if len(data) != INT64.size:
                raise CorruptTransactionRecord(f"a producer id of {len(data)} bytes")
            (last_producer_id,) = INT64.unpack(data)
    if position != len(value):
        raise CorruptTransactionRecord(
            f"the value of {transactional_id!r}: {len(value) - position} bytes after its end"
        )
    state = _checked_state(transactional_id, status, partitions, start_timestamp_ms)
    if producer_id < 0 or producer_epoch < 0:
        raise CorruptTransactionRecord(f"the value of {transactional_id!r}: producer {producer_id}/{producer_epoch}")
    return TransactionMetadata(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        timeout_ms=timeout_ms,
        last_update_timestamp_ms=last_update_timestamp_ms,
        state=state,
        topic_partitions=partitions or frozenset(),
        start_timestamp_ms=start_timestamp_ms,
        last_producer_id=last_producer_id,
        # Not stored: a retried InitProducerId that spans a failover is fenced.
        last_producer_epoch=NO_PRODUCER_EPOCH,
    )


def _checked_state(
    transactional_id: str, status: int, partitions: frozenset[TopicPartition] | None, start_timestamp_ms: int
) -> TransactionState:
    """The state, if the rest of the value fits it: EMPTY, and EMPTY alone, has neither partitions nor a start."""
    try:
        state = TransactionState(status)
    except ValueError as error:
        raise CorruptTransactionRecord(f"the value of {transactional_id!r}: state {status}") from error
    is_empty = state is TransactionState.EMPTY
    fits = (not partitions) if is_empty else partitions is not None
    if state in _NEVER_STORED or not fits or is_empty != (start_timestamp_ms == NO_TIMESTAMP):
        values = f"{state.name} with partitions {partitions}, started at {start_timestamp_ms}"
        raise CorruptTransactionRecord(f"the value of {transactional_id!r}: {values}")
    return state


def _read_partitions(
    value: Buffer, position: int, *, is_flexible: bool
) -> tuple[frozenset[TopicPartition] | None, int]:
    read_length: _ReadCount = read_compact_count if is_flexible else read_count
    read_name: _ReadText = read_compact_string if is_flexible else read_string
    topic_count, position = _read_nullable_count(value, position, is_flexible=is_flexible)
    if topic_count is None:
        return None, position
    found: list[TopicPartition] = []
    for _ in range(topic_count):
        topic, position = read_name(value, position)
        count, position = read_length(value, position, INT32.size)
        numbers = struct.unpack_from(f">{count}i", value, position)
        position += count * INT32.size
        if is_flexible:
            position = skip_tags(value, position)
        found += [(topic, number) for number in numbers]
    partitions = frozenset(found)
    if len(partitions) != len(found) or any(number < 0 for _, number in found):
        raise CorruptTransactionRecord(f"partitions that cannot be: {found}")
    return partitions, position


def _read_nullable_count(value: Buffer, position: int, *, is_flexible: bool) -> tuple[int | None, int]:
    """The length of the array of topics, None for null. A topic takes at least its name's length and a count."""
    if is_flexible:
        size, position = read_uvarint(value, position)
        return (None if size == 0 else check_count(value, position, size - 1, 3)), position
    (count,) = INT32.unpack_from(value, position)
    position += INT32.size
    return (None if count == -1 else check_count(value, position, count, 6)), position
