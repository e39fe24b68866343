"""The checks of a produce request in Kafka's order, which is the order of this module: docs/produce-checks.md.

* 2-6: ``admit``; ``Writes`` passes over it for a batch that is plainly right
* 4, after them: ``transaction_checks``
* 7, 8: ``check_leadership``
* 9-17: ``check_batch``: what the header tells (``cluster/protocol/batch.py``), what is inside (``check_inside``)
* 16-22: the log, through the broker's ``Rules`` (``cluster/log/appending.py``): what is left of 16 and 17,
  then what the sequence says
* 23: ``Writes``, through the broker's ``Rules``

Owns rows 2 to 17 but 4, and the batch that is stored instead of one whose offsets are not in order or whose codec is
not the topic's (``compression.type``). Does not own the walk over records (``cluster.protocol.record_checks``).
Compressed or not, every batch of a producer is looked inside, as in Kafka's ``LogValidator``; unlike its
``assignOffsetsNonCompressed`` this looks at the offset deltas of uncompressed records too: they would be read as sent.
"""

from __future__ import annotations

from itertools import islice

from cluster.broker.internal_topics import INTERNAL_TOPICS
from cluster.broker.replicas.host import RequestRefused
from cluster.log.config import LogConfig
from cluster.log.errors import LogError
from cluster.log.partition_log import PartitionLog
from cluster.log.sequence import VerdictKind
from cluster.protocol.batch import (
    CODEC_MASK,
    BatchHeader,
    only_batch,
    parse_header,
    validate_from_client,
)
from cluster.protocol.errors import CorruptBatch, ErrorCode, InvalidBatch
from cluster.protocol.produce import ProducePartition, ProduceResult
from cluster.protocol.record_checks import Effort, Postponed, RecordFacts, walk_records
from cluster.protocol.records import NewRecord, build_batch, decode_records
from cluster.protocol.rewriting import recompress_batch, with_max_timestamp
from cluster.replication.leader import LeaderState

#: The one client that may write to internal topics nevertheless (Kafka's AdminUtils.AdminClientId).
ADMIN_CLIENT_ID = "__admin_client"
VALID_ACKS = frozenset({-1, 0, 1})
INT64_MAX = 2**63 - 1
#: The timestamp of a record that has none.
NO_TIMESTAMP = -1
#: Records that are built again, and bytes that are packed again, without leaving the event loop.
BUILT_AT_ONCE = 1000
PACKED_AT_ONCE = 262_144
#: A record takes as long to examine as this many bytes take to be unpacked.
RECORD_WEIGHT = 1000
#: Of the records with something wrong as many are named: in a bad batch that is all of them, and each costs a text.
NAMED = 20
#: The verdicts on a batch that the log has already.
STORED = (VerdictKind.DUPLICATE, VerdictKind.DUPLICATE_BELOW_WINDOW)


#: What a look inside a batch found: of its records, which times cannot be, and the batch to store instead, if any.
Looked = tuple[RecordFacts, list[tuple[int, str]], bytes | None]


def admit(
    wanted: ProducePartition, acks: int, client_id: str | None, *, exists: bool, zstd_allowed: bool
) -> memoryview:
    """The batch that was sent, as far as rows 2 to 6 go. ``exists``: there is such a partition, here or elsewhere.

    Raises ``RequestRefused`` and ``InvalidBatch``.
    """
    topic, number, records = wanted
    if not exists:
        raise RequestRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no partition {topic}-{number}")
    if records is None:
        raise RequestRefused(ErrorCode.INVALID_RECORD, "no records")
    only_batch(records, zstd_allowed)
    if acks not in VALID_ACKS:
        raise RequestRefused(ErrorCode.INVALID_REQUIRED_ACKS, f"acks {acks}")
    if topic in INTERNAL_TOPICS and client_id != ADMIN_CLIENT_ID:
        raise RequestRefused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is internal")
    return records


def check_leadership(leader: LeaderState | None, leader_id: int, acks: int) -> LeaderState:
    """The leadership that takes a batch: rows 7 and 8. ``leader_id`` is who leads, as far as we know.

    Raises ``RequestRefused``.
    """
    if leader is None:
        raise RequestRefused(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {leader_id} leads")
    if acks == -1 and len(leader.isr.committed) < leader.min_insync_replicas:
        raise RequestRefused(
            ErrorCode.NOT_ENOUGH_REPLICAS, f"{len(leader.isr.committed)} in sync, {leader.min_insync_replicas} wanted"
        )
    return leader


def check_coordinators_size(header: BatchHeader, config: LogConfig) -> None:
    """Row 17, of what a coordinator writes for a producer. A marker is always small enough, and must be written.

    Raises ``RequestRefused``.
    """
    if header.is_control:
        return
    if header.size_bytes > config.max_message_bytes:
        raise RequestRefused(ErrorCode.MESSAGE_TOO_LARGE, f"a batch of {header.size_bytes} bytes")
    if header.size_bytes > config.segment_bytes:
        raise RequestRefused(ErrorCode.RECORD_LIST_TOO_LARGE, f"a batch of {header.size_bytes} bytes")


def check_batch(
    records: memoryview,
    header: BatchHeader,
    log: PartitionLog,
    wall_ms: int,
    effort: Effort,
    looked: Looked | None = None,
) -> tuple[memoryview, BatchHeader]:
    """The batch to store, with its header: rows 9 to 17. ``looked``: what ``look_inside`` found before.

    Raises ``InvalidBatch`` and ``RequestRefused``, and ``Postponed`` for more than ``effort`` lets be examined here.
    """
    config = log.config
    validate_from_client(records, header, config.max_message_bytes)
    return check_inside(records, header, log, config, wall_ms, effort, looked)


def weight_of(header: BatchHeader) -> int:
    """How long ``look_inside`` may take, in bytes that take as long to be unpacked: half a million records may be
    packed into hundreds of bytes."""
    return header.size_bytes + header.record_count * RECORD_WEIGHT


def look_inside(records: memoryview, header: BatchHeader, config: LogConfig, effort: Effort) -> Looked:
    """What ``check_inside`` judges by. It may take long, and depends on its arguments alone: another thread may do it.

    Raises ``InvalidBatch``, and ``Postponed`` for more than ``effort`` lets be examined here.
    """
    bytes_left = effort.bytes_left
    facts = walk_records(records, header, effort)
    has_offsets_in_order, _, deltas, base_timestamp = facts
    # There is one at least, and often no more.
    least = greatest = base_timestamp + deltas[0]
    if len(deltas) > 1:
        least, greatest = base_timestamp + min(deltas), base_timestamp + max(deltas)
    if least < NO_TIMESTAMP or greatest >= INT64_MAX or base_timestamp < NO_TIMESTAMP:
        return facts, _impossible_times(facts.timestamps, base_timestamp), None
    sent_codec = header.attributes & CODEC_MASK
    codec = sent_codec if config.codec is None else config.codec
    if not has_offsets_in_order:
        if header.record_count > BUILT_AT_ONCE and not effort.is_all:
            raise Postponed
        return facts, [], _rebuilt(records, header, codec)
    if codec == sent_codec:
        is_right = greatest == header.max_timestamp
        return facts, [], None if is_right else with_max_timestamp(records, header, greatest)
    if bytes_left - effort.bytes_left > PACKED_AT_ONCE and not effort.is_all:
        raise Postponed
    return facts, [], recompress_batch(records, header._replace(max_timestamp=greatest), codec)


def check_inside(
    records: memoryview,
    header: BatchHeader,
    log: PartitionLog,
    config: LogConfig,
    wall_ms: int,
    effort: Effort,
    looked: Looked | None = None,
) -> tuple[memoryview, BatchHeader]:
    """The batch to store, with its header: the one that was sent, or a copy whose offsets, greatest time and codec are
    right. ``config`` is the log's; ``looked``: what was found, if that was looked for before.

    Raises as ``look_inside`` does. The first records with something wrong are named; if it is the time of any, the code
    is INVALID_TIMESTAMP. A batch that the log has is no longer judged by its time: Kafka refuses a retry that has grown
    too old, and its client takes for lost what is stored.
    """
    facts, wrong_times, instead = look_inside(records, header, config, effort) if looked is None else looked
    if config.bounds_timestamps and not wrong_times:
        wrong_times = _wrong_times(facts.timestamps, config, wall_ms)
        if wrong_times and log.verdict_on(header).kind in STORED:
            return records, header
    if wrong_times or config.is_compacted:
        _refuse_wrong(facts, wrong_times, config)
    return (records, header) if instead is None else _instead(instead, config)


def _refuse_wrong(facts: RecordFacts, wrong_times: list[tuple[int, str]], config: LogConfig) -> None:
    problems: list[tuple[int, str]] = []
    if config.is_compacted:
        without_key = facts.without_key[:NAMED]
        problems += [(index, "a record of a compacted topic needs a key") for index in without_key]
    if problems or wrong_times:
        code = ErrorCode.INVALID_TIMESTAMP if wrong_times else ErrorCode.INVALID_RECORD
        raise InvalidBatch(code, "records that cannot be accepted", sorted(problems + wrong_times)[:NAMED])


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
    """As Kafka does: the same records with offsets 0, 1, 2, ..."""
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


def refused(wanted: ProducePartition, error: RequestRefused | InvalidBatch | LogError) -> ProduceResult:
    """The answer for a part that is not stored."""
    return ProduceResult(
        wanted.topic,
        wanted.partition,
        error.error_code,
        error_message=error.message,
        record_errors=error.record_errors if isinstance(error, InvalidBatch) else (),
    )


def kept(wanted: ProducePartition) -> ProducePartition:
    """The same for longer than the frame is valid."""
    return wanted if wanted.records is None else wanted._replace(records=memoryview(bytearray(wanted.records)))
