"""What a leader checks inside a producer's batch before it appends it: rows 14-17 of docs/produce-checks.md.

Owns what is wrong with which record, and the batch that is stored instead of one whose offsets are not in order or
whose codec is not the topic's (``compression.type``). Does not own the walk (``cluster.protocol.record_checks``).
Compressed or not, every batch of a producer comes here, as in Kafka's ``LogValidator``; unlike its
``assignOffsetsNonCompressed`` this looks at the offset deltas of uncompressed records too: they would be read as sent.
"""

from __future__ import annotations

from itertools import islice

from cluster.log.config import LogConfig
from cluster.log.partition_log import PartitionLog
from cluster.log.sequence import VerdictKind, check_sequence
from cluster.protocol.batch import BatchHeader, parse_header
from cluster.protocol.errors import CorruptBatch, ErrorCode, InvalidBatch
from cluster.protocol.record_checks import Effort, Postponed, RecordFacts, walk_records
from cluster.protocol.records import NewRecord, build_batch, decode_records
from cluster.protocol.rewriting import recompress_batch

INT64_MAX = 2**63 - 1
#: The timestamp of a record that has none.
NO_TIMESTAMP = -1
#: Records that are built again, and bytes that are packed again, without leaving the event loop.
BUILT_AT_ONCE = 1000
PACKED_AT_ONCE = 262_144
#: Of the records with something wrong as many are named: in a bad batch that is all of them, and each costs a text.
NAMED = 20


#: What a look inside a batch found: of its records, which times cannot be, and the batch to store instead, if any.
Looked = tuple[RecordFacts, list[tuple[int, str]], bytes | None]


def look_inside(records: memoryview, header: BatchHeader, config: LogConfig, effort: Effort) -> Looked:
    """What ``check_inside`` judges by. It may take long, and depends on its arguments alone: another thread may do it.

    Raises ``InvalidBatch``, and ``Postponed`` for more than ``effort`` lets be looked at here.
    """
    bytes_left = effort.bytes_left
    facts = walk_records(records, header, effort)
    least, greatest = facts.bounds
    if least < NO_TIMESTAMP or greatest >= INT64_MAX or header.base_timestamp < NO_TIMESTAMP:
        return facts, _impossible_times(facts.timestamps, header.base_timestamp), None
    codec = header.codec if config.codec is None else config.codec
    if not facts.has_offsets_in_order or greatest != header.max_timestamp:
        if header.record_count > BUILT_AT_ONCE and not effort.is_all:
            raise Postponed
        return facts, [], _rebuilt(records, header, codec)
    if codec == header.codec:
        return facts, [], None
    if bytes_left - effort.bytes_left > PACKED_AT_ONCE and not effort.is_all:
        raise Postponed
    return facts, [], recompress_batch(records, header, codec)


def check_inside(
    records: memoryview,
    header: BatchHeader,
    log: PartitionLog,
    wall_ms: int,
    effort: Effort,
    looked: Looked | None = None,
) -> tuple[memoryview, BatchHeader]:
    """The batch to store, with its header: the one that was sent, or a copy whose offsets, greatest time and codec are
    right. ``looked``: what was found, if that was looked for before.

    Raises as ``look_inside`` does. The first records with something wrong are named; if it is the time of any, the code
    is INVALID_TIMESTAMP. A batch that the log has is no longer judged by its time: Kafka refuses a retry that has grown
    too old, and its client takes for lost what is stored.
    """
    config = log.config
    facts, wrong_times, instead = look_inside(records, header, config, effort) if looked is None else looked
    if config.bounds_timestamps and not wrong_times:
        wrong_times = _wrong_times(facts.timestamps, config, wall_ms)
        if wrong_times and _is_stored(header, log):
            return records, header
    problems: list[tuple[int, str]] = []
    if config.is_compacted:
        without_key = facts.without_key[:NAMED]
        problems += [(index, "a record of a compacted topic needs a key") for index in without_key]
    if problems or wrong_times:
        code = ErrorCode.INVALID_TIMESTAMP if wrong_times else ErrorCode.INVALID_RECORD
        raise InvalidBatch(code, "records that cannot be accepted", sorted(problems + wrong_times)[:NAMED])
    return (records, header) if instead is None else _instead(instead, config)


def _is_stored(header: BatchHeader, log: PartitionLog) -> bool:
    if header.producer_id < 0:
        return False
    entry = log.producers.get(header.producer_id)
    verdict = check_sequence(entry, header, log.log_start_offset, log.config.unknown_producer)
    return verdict.kind in (VerdictKind.DUPLICATE, VerdictKind.DUPLICATE_BELOW_WINDOW)


def _impossible_times(timestamps: list[int], base_timestamp: int) -> list[tuple[int, str]]:
    """Those whose distance from each other, or from the base, may not fit into 64 bits: they could not be packed again,
    neither here nor by compaction. (The greatest of all is left out too: it is one too far from no timestamp.)"""
    if base_timestamp < NO_TIMESTAMP:
        return [(0, f"base timestamp {base_timestamp}")]
    wrong = (
        (index, f"timestamp {timestamp} cannot be")
        for index, timestamp in enumerate(timestamps)
        if not NO_TIMESTAMP <= timestamp < INT64_MAX
    )
    return [*islice(wrong, NAMED)]


def _wrong_times(timestamps: list[int], config: LogConfig, wall_ms: int) -> list[tuple[int, str]]:
    earliest = wall_ms - config.message_timestamp_before_max_ms
    latest = wall_ms + config.message_timestamp_after_max_ms
    wrong = (
        (index, f"timestamp {timestamp} is not between {earliest} and {latest}")
        for index, timestamp in enumerate(timestamps)
        if timestamp >= 0 and not earliest <= timestamp <= latest
    )
    return [*islice(wrong, NAMED)]


def _rebuilt(records: memoryview, header: BatchHeader, codec: int) -> bytes:
    """As Kafka does: the same records with offsets 0, 1, 2, ... and the greatest time of them in the header."""
    try:
        decoded = decode_records(records)
    except CorruptBatch as error:
        raise InvalidBatch(ErrorCode.INVALID_RECORD, str(error)) from error
    return build_batch(
        [NewRecord(record.timestamp, record.key, record.value, record.headers) for record in decoded],
        codec=codec,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
    )


def _instead(batch: bytes, config: LogConfig) -> tuple[memoryview, BatchHeader]:
    """A batch of our making, as it is appended."""
    if len(batch) > config.max_message_bytes:
        raise InvalidBatch(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"{len(batch)} bytes after recompression, more than max.message.bytes {config.max_message_bytes}",
        )
    return memoryview(bytearray(batch)), parse_header(batch)
