"""What an internal topic may be given by a client that may write to it: the row after 15 of docs/produce-checks.md.

Owns that every record is one that the topic's coordinator can read: it would lose what such a record replaces. Does not
own who may write (``produce_checks``), nor the layouts (``cluster.coordinator``). All of a batch is decoded, so this is
to run off the event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from cluster.broker.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from cluster.broker.replicas.produce_checks import NAMED, Looked, look_inside
from cluster.coordinator.group.group_values import parse_group_value
from cluster.coordinator.group.records import CorruptGroupRecord, OffsetKey, UnknownKey, parse_key, parse_offset_value
from cluster.coordinator.transaction.records import (
    CorruptTransactionRecord,
    UnknownKeyVersion,
    decode_key,
    decode_value,
)
from cluster.log.config import LogConfig
from cluster.protocol.batch import BatchHeader
from cluster.protocol.errors import CorruptBatch, ErrorCode, InvalidBatch
from cluster.protocol.record_checks import Effort
from cluster.protocol.records import decode_records

#: Records of one batch. Decoded, each takes far more memory than on the wire.
MOST_RECORDS = 10_000


def look_for(topic: str) -> Callable[[memoryview, BatchHeader, LogConfig, Effort], Looked]:
    """What looks inside a batch of a topic."""
    return partial(_look_inside_internal, topic) if topic in _CHECKS else look_inside


def _look_inside_internal(
    topic: str, records: memoryview, header: BatchHeader, config: LogConfig, effort: Effort
) -> Looked:
    """As ``produce_checks.look_inside``, for a batch of a topic of the coordinators whose header was checked.

    Raises ``InvalidBatch``: INVALID_RECORD with the first records that the topic's coordinator could not read.
    """
    if header.record_count > MOST_RECORDS:
        raise InvalidBatch(
            ErrorCode.INVALID_RECORD, f"{header.record_count} records for {topic}, at most {MOST_RECORDS}"
        )
    looked = look_inside(records, header, config, effort)
    try:
        decoded = decode_records(records)
    except CorruptBatch as error:
        raise InvalidBatch(ErrorCode.INVALID_RECORD, str(error)) from error
    check, problems = _CHECKS[topic], []
    for index, record in enumerate(decoded):
        try:
            check(record.key or b"", record.value)
        except (CorruptGroupRecord, CorruptTransactionRecord, UnknownKeyVersion) as error:
            problems.append((index, f"no record of {topic}: {error}"))
            if len(problems) == NAMED:
                break
    if problems:
        raise InvalidBatch(ErrorCode.INVALID_RECORD, "records that cannot be accepted", problems)
    return looked


def _check_group_record(key_bytes: bytes, value: bytes | None) -> None:
    """Raises ``CorruptGroupRecord``."""
    key = parse_key(key_bytes)
    if isinstance(key, UnknownKey):
        raise CorruptGroupRecord(f"a key of version {key.version}")
    if value is None:
        return
    if isinstance(key, OffsetKey):
        parse_offset_value(value)
    else:
        parse_group_value(value)


def _check_transaction_record(key: bytes, value: bytes | None) -> None:
    """Raises ``CorruptTransactionRecord`` and ``UnknownKeyVersion``."""
    transactional_id = decode_key(key)
    if value is not None:
        decode_value(transactional_id, value)


_CHECKS: Mapping[str, Callable[[bytes, bytes | None], None]] = {
    OFFSETS_TOPIC: _check_group_record,
    TRANSACTIONS_TOPIC: _check_transaction_record,
}
