"""The replicas of the topics that no run creates itself, for comparing them: their batches, and if needed, records.

Owns reading them, how far a replica's bytes are known to be committed, and when records are needed. Judges nothing
(``verifier.checks.internal_divergence``). A replica's own high watermark is the last one that its broker noted before a
clean stop. It is never ahead of the leader's, so everything below it is committed. After any other stop, nothing is
known to be committed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from verifier.coordinators.logs import TOPICS
from verifier.coordinators.topics import STATE_TOPIC, broker_settings, may_lose_offsets
from verifier.evidence.output import OUTPUT_TOPIC
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel
from verifier.files.formats import FormatError, offsets, read
from verifier.files.model import CLEAN_SHUTDOWN, HIGH_WATERMARK
from verifier.segments import walk
from verifier.segments.markers import COMMIT
from verifier.transactions.evidence import copies_of, most_advanced
from verifier.transactions.logs import KeyedLog, keyed_log
from verifier.transactions.state_records import TopicPartition

#: The attribute of a batch in which compaction found a tombstone, and which it therefore rewrote.
DELETE_HORIZON = 0x40
_TOMBSTONES_MS = "log.cleaner.delete.retention.ms"
#: All brokers stop within this time. Tombstones kept for less may be gone only from the broker that stopped last.
_STOPPED_WITHIN_MS = 600_000


class ReplicaBatch(NamedTuple):
    """``is_sound``: its CRC matches its bytes. ``is_whole``: compaction removed no record from it."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    size_bytes: int
    crc: int
    is_sound: bool
    is_whole: bool


class ReplicaRecord(NamedTuple):
    """``counts``: it is outside of transactions, or in one that was committed."""

    offset: int
    key: bytes | None
    value: bytes | None
    counts: bool


@dataclass(frozen=True, slots=True)
class ReplicaLog:
    """One replica. Everything below ``high_watermark`` is known to be committed; 0 if nothing is known.

    ``records`` is None if comparing batches is enough.
    """

    broker: int
    batches: Sequence[ReplicaBatch]
    start: int = 0
    segments: int = 1
    high_watermark: int = 0
    records: Sequence[ReplicaRecord] | None = None


@dataclass(frozen=True, slots=True)
class InternalPartition:
    """A partition of such a topic. ``judged`` is the most advanced replica, which the other checks read.

    ``has_all``: nothing was compacted, so every replica has every batch. ``keeps_newest``: every replica has the newest
    record of every key. ``keeps_committed``: no election cuts off committed records.
    """

    place: TopicPartition
    judged: ReplicaLog
    others: Sequence[ReplicaLog]
    has_all: bool = True
    keeps_newest: bool = True
    keeps_committed: bool = True


def internal_partitions(directory: RunDirectory, run: RunModel) -> Iterator[InternalPartition]:
    """Every partition of a run that has several replicas. Raises ``OSError``."""
    retention_ms = broker_settings(run).get(_TOMBSTONES_MS)
    keeps_newest = isinstance(retention_ms, int) and retention_ms >= _STOPPED_WITHIN_MS
    for place, homes in sorted(copies_of(directory).items()):
        if place[0] not in TOPICS or len(homes) < 2:
            continue
        logs = {broker: replica_log(home, broker, _high_watermark(home, place)) for broker, home in homes.items()}
        has_all = _has_all(run, place[0], logs.values())
        if not has_all or not all(batch.is_whole for log in logs.values() for batch in log.batches):
            logs = {broker: _with_records(log, homes[broker]) for broker, log in logs.items()}
        judged = most_advanced(homes)
        yield InternalPartition(
            place,
            logs[judged],
            [log for broker, log in sorted(logs.items()) if broker != judged],
            has_all=has_all,
            keeps_newest=keeps_newest,
            keeps_committed=_keeps_committed(run, place[0]),
        )


def _keeps_committed(run: RunModel, topic: str) -> bool:
    """``__transaction_state`` never has unclean elections."""
    may_lose = may_lose_offsets(run) or (topic == OUTPUT_TOPIC and run.settings.unclean_leader_election)
    return topic == STATE_TOPIC or not may_lose


def replica_log(home: Path, broker: int, high_watermark: int = 0) -> ReplicaLog:
    """The batches of a replica's directory, in the order of its files. Raises ``OSError``."""
    paths = sorted(home.glob("*.log"))
    batches = [batch for path in paths for batch in _batches(path)]
    start = int(paths[0].stem) if paths else 0
    return ReplicaLog(broker, batches, start, len(paths), high_watermark)


def _batches(path: Path) -> Iterator[ReplicaBatch]:
    data = walk.open_segment(path)
    found = walk.walk(data)
    fields = walk.headers(data, found.positions)
    sound = walk.check_crcs(data, found.positions, found.sizes, fields["crc"])
    names = ("base_offset", "last_offset_delta", "leader_epoch", "crc", "attributes", "record_count")
    columns = [fields[name].tolist() for name in names]
    for size, is_sound, base_offset, delta, epoch, crc, attributes, count in zip(
        found.sizes.tolist(), sound.tolist(), *columns, strict=True
    ):
        is_whole = count == delta + 1 and not attributes & DELETE_HORIZON
        yield ReplicaBatch(base_offset, base_offset + delta, epoch, size, crc, is_sound, is_whole)


def _high_watermark(home: Path, place: TopicPartition) -> int:
    data = home.parent
    if not (data / CLEAN_SHUTDOWN).exists():
        return 0
    try:
        return offsets(read(data / HIGH_WATERMARK) or b"").get(place, 0)
    except FormatError:
        return 0


def _has_all(run: RunModel, topic: str, logs: Iterable[ReplicaLog]) -> bool:
    """Whether nothing was compacted. The coordinators' topics are compacted, except for the newest segment of a log.
    The topic that a group writes to is not, unless the brokers' own policy says so.
    """
    if topic != OUTPUT_TOPIC:
        return all(log.segments == 1 and log.start == 0 for log in logs)
    is_compacted = "compact" in str(broker_settings(run).get("log.cleanup.policy"))
    return not is_compacted and not any(spec.is_compacted for spec in run.topics)


def _with_records(log: ReplicaLog, home: Path) -> ReplicaLog:
    return replace(log, records=replica_records(keyed_log(home)))


def replica_records(log: KeyedLog) -> list[ReplicaRecord]:
    """The records of a log, each with whether it counts. Pure."""
    commits: dict[int, list[tuple[int, bool]]] = defaultdict(list)
    for ended in log.ended:
        commits[ended.producer_id].append((ended.marker_offset, ended.kind == COMMIT))
    return [
        ReplicaRecord(
            each.offset,
            each.key,
            each.value,
            each.producer_id < 0
            or next((is_commit for at, is_commit in commits[each.producer_id] if at > each.offset), False),
        )
        for each in log.records
    ]
