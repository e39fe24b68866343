"""Every check once more, slow and obvious: plain loops over plain lists, no Spark, no numpy, no code of the reader.

``find_all`` reads a run directory by itself (``struct`` and the ``crc32c`` package) and returns what each check must
find. The tests compare it with Spark's answers on the same mutated runs.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import cramjam
import crc32c

from verifier.evidence.history import read_histories
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import FinalPartition, RunModel


class Anomaly(NamedTuple):
    """One anomaly; ``size`` is what it covers."""

    check: str
    cause: str | None
    partition: int
    stream: int | None
    sequence: int | None
    offset: int | None
    size: int = 1


Value = tuple[int, int]


class Slot(NamedTuple):
    """One value as it stands in a log. ``value`` None: it cannot be told whose it is."""

    offset: int
    value: Value | None
    problem: str | None  # "payload", "foreign", "run"
    sentinel: bool


@dataclass
class Batch:
    """One batch as it stands in a file."""

    segment: int
    base_offset: int
    next_offset: int
    size: int
    leader_epoch: int
    crc: int
    crc_ok: bool
    producer: tuple[int, int]
    problem: str | None
    slots: list[Slot] = field(default_factory=list)


@dataclass
class Replica:
    """One replica's files: batches in their order, and the unreadable tails as (next offset, what it is)."""

    batches: list[Batch]
    tails: list[tuple[int, str]]


@dataclass
class Evidence:
    """Everything about one judged partition."""

    final: FinalPartition
    replicas: dict[int, Replica]
    rows: list[dict[str, Any]]
    asked: int  # below this offset records were to be deleted
    begins: dict[int, int]  # where the log of each broker begins, by its own journal

    @property
    def judged_from(self) -> int:
        return min(self.final.log_start_offset, self.asked)

    def start(self, broker: int) -> int:
        """From this offset on a replica must have what its leader has."""
        return max(self.final.log_start_offset, min(self.asked, self.begins.get(broker, 0)))

    def limit(self, broker: int) -> int:
        """Below this offset a replica may be compared."""
        high_watermark = self.final.high_watermark
        return (
            high_watermark if broker == self.final.leader else min(high_watermark, self.final.log_end_offsets[broker])
        )

    @property
    def brokers(self) -> list[int]:
        return sorted({self.final.leader, *self.final.log_end_offsets})

    @property
    def leader(self) -> Replica:
        return self.replicas.get(self.final.leader, Replica([], []))

    def log(self) -> Iterator[tuple[Slot, Batch]]:
        """The values of the final leader's log that are judged."""
        for batch in self.leader.batches:
            for slot in batch.slots:
                if self.final.log_start_offset <= slot.offset < self.final.high_watermark:
                    yield slot, batch

    def claims(self, f: tuple[str, ...], outcome: str) -> Iterator[tuple[Value, int | None, dict[str, Any]]]:
        """Values that rows of the history speak of, one by one."""
        for row in self.rows:
            if row["f"] in f and row["type"] == outcome and row["stream"] >= 0 and makes_sense(row):
                for step in range(row["last_sequence"] - row["first_sequence"] + 1):
                    offset = row["first_offset"] + step if row["first_offset"] >= 0 and outcome == "ok" else None
                    if offset is None or offset >= self.judged_from:
                        yield (row["stream"], row["first_sequence"] + step), offset, row

    def acks(self) -> dict[Value, list[int | None]]:
        found = defaultdict(list)
        for value, offset, _ in self.claims(("send", "sentinel"), "ok"):
            found[value].append(offset)
        return found

    def reads(self) -> dict[Value, list[int]]:
        found = defaultdict(list)
        for value, offset, _ in self.claims(("poll",), "ok"):
            if offset is not None:
                found[value].append(offset)
        return found

    def copies(self) -> dict[Value, list[tuple[int, Batch]]]:
        found = defaultdict(list)
        for slot, batch in self.log():
            if slot.value is not None:
                found[slot.value].append((slot.offset, batch))
        return found


def makes_sense(row: dict[str, Any]) -> bool:
    """Both ranges of a row are as long as each other, and of a possible length."""
    sequences = row["last_sequence"] - row["first_sequence"]
    offsets = row["last_offset"] - row["first_offset"]
    same = row["first_offset"] < 0 or sequences == offsets
    return row["first_sequence"] >= 0 and 0 <= sequences <= 10_000_000 and same


def find_all(directory: RunDirectory) -> list[Anomaly]:
    """What all checks must find in this run."""
    found: list[Anomaly] = []
    for evidence in load(directory):
        for check in (
            lost_write, unseen, duplicate, log_duplicate, inconsistent_offsets, nonmonotonic_send, log_reorder,
            log_gap, log_corrupt, log_divergence, phantom,
        ):  # fmt: skip
            found += check(evidence)
    return found


# ---------------------------------------------------------------------------------------------------- the checks


def known(offsets: list[int | None]) -> list[int]:
    return sorted(offset for offset in offsets if offset is not None)


def lost_values(evidence: Evidence) -> dict[Value, int | None]:
    """Acknowledged, and not in the log; with the lowest acknowledged offset."""
    copies = evidence.copies()
    lost = {}
    for value, offsets in evidence.acks().items():
        decidable = known(offsets) or evidence.judged_from == 0
        if value not in copies and decidable:
            lost[value] = min(known(offsets), default=None)
    return lost


def lost_write(evidence: Evidence) -> Iterator[Anomaly]:
    for value, offset in lost_values(evidence).items():
        yield Anomaly("lost-write", None, evidence.final.partition, *value, offset)


def unseen(evidence: Evidence) -> Iterator[Anomaly]:
    sentinel = evidence.final.sentinel_offset
    if sentinel is None:
        return
    handed = defaultdict(set)
    reached = defaultdict(lambda: -1)
    for row in evidence.rows:
        if row["f"] == "poll" and row["type"] == "ok" and row["phase"] == "final":
            reached[row["process"]] = max(reached[row["process"]], row["last_offset"])
    for value, _, row in evidence.claims(("poll",), "ok"):
        if row["phase"] == "final":
            handed[row["process"]].add(value)
    complete = [process for process, offset in reached.items() if offset >= sentinel]
    copies = evidence.copies()
    for value in evidence.acks():
        if value in copies:
            first = min(offset for offset, _ in copies[value])
            if first <= sentinel and any(value not in handed[process] for process in complete):
                yield Anomaly("unseen", None, evidence.final.partition, *value, first)


def cause_of_copies(evidence: Evidence, value: Value) -> str:
    copies = evidence.copies()[value]
    producers = {batch.producer for _, batch in copies}
    timed_out = any(
        row["f"] == "send" and row["type"] == "info" and row["stream"] == value[0]
        and (row["error"] or "").startswith("_MSG_TIMED_OUT")
        for row in evidence.rows
    )  # fmt: skip
    if len(copies) < 2:
        return "vanished"
    if any(producer_id < 0 for producer_id, _ in producers):
        return "unidentified"
    if len(producers) == 1:
        return "broker"
    if len(copies) > 2:
        return "mixed"
    return "client-resend-after-error" if timed_out else "client-resend"


def duplicate(evidence: Evidence) -> Iterator[Anomaly]:
    for value, offsets in evidence.reads().items():
        if len(set(offsets)) > 1:
            cause = cause_of_copies(evidence, value)
            yield Anomaly("duplicate", cause, evidence.final.partition, *value, min(offsets))


def log_duplicate(evidence: Evidence) -> Iterator[Anomaly]:
    for value, copies in evidence.copies().items():
        offsets = [offset for offset, _ in copies]
        if len(set(offsets)) > 1:
            cause = cause_of_copies(evidence, value)
            yield Anomaly("log-duplicate", cause, evidence.final.partition, *value, min(offsets), len(copies))


def inconsistent_offsets(evidence: Evidence) -> Iterator[Anomaly]:
    said: dict[int, set[tuple[str, Value | None]]] = defaultdict(set)
    for slot, _ in evidence.log():
        said[slot.offset].add(("log", slot.value))
    for value, offsets in evidence.acks().items():
        for offset in known(offsets):
            said[offset].add(("ack", value))
    for value, offsets in evidence.reads().items():
        for offset in offsets:
            said[offset].add(("read", value))
    copies = evidence.copies()
    for offset, claims in sorted(said.items()):
        values = {value for _, value in claims if value is not None}
        in_log = [value for who, value in claims if who == "log"]
        read = {value for who, value in claims if who == "read"}
        strays = [
            value
            for who, value in claims
            if who == "ack" and value in copies
            and offset in (min(known(evidence.acks()[value])), max(known(evidence.acks()[value])))
            and (offset < min(o for o, _ in copies[value]) or offset > max(o for o, _ in copies[value]))
        ]  # fmt: skip
        if len(values) > 1 or (read and not in_log) or strays:
            by_reader = bool(read) and read != {value for value in in_log if value is not None}
            # a place where only an acknowledgement is astray is not a reader's doing
            by_reader = by_reader and (len(values) > 1 or not in_log)
            cause = "read" if by_reader else "acknowledged"
            yield Anomaly("inconsistent-offsets", cause, evidence.final.partition, None, None, offset)


def late(placed: dict[tuple[int, int], list[tuple[int, int]]]) -> Iterator[tuple[int, int, int]]:
    """(stream, sequence, position) of values with a higher sequence before them, by stream and producer."""
    for (stream, _), values in placed.items():
        for position, sequence in values:
            before = [other for other in values if other < (position, sequence)]
            if any(earlier > sequence for _, earlier in before):
                yield stream, sequence, position


def by_producer(evidence: Evidence, position: dict[Value, int]) -> dict[tuple[int, int], list[tuple[int, int]]]:
    placed = defaultdict(list)
    for value, copies in evidence.copies().items():
        if value in position:
            first = min(copies, key=lambda copy: copy[0])
            placed[value[0], first[1].producer[0]].append((position[value], value[1]))
    return placed


def nonmonotonic_send(evidence: Evidence) -> Iterator[Anomaly]:
    position: dict[Value, int] = {}
    for offsets_of in (evidence.acks(), evidence.reads()):
        for value, offsets in offsets_of.items():
            for offset in known(list(offsets)):
                position[value] = min(offset, position.get(value, offset))
    for stream, sequence, at in late(by_producer(evidence, position)):
        yield Anomaly("nonmonotonic-send", None, evidence.final.partition, stream, sequence, at)


def log_reorder(evidence: Evidence) -> Iterator[Anomaly]:
    first = {value: min(offset for offset, _ in copies) for value, copies in evidence.copies().items()}
    for stream, sequence, at in late(by_producer(evidence, first)):
        yield Anomaly("log-reorder", "values", evidence.final.partition, stream, sequence, at)
    for broker in evidence.brokers:
        reached = None
        for batch in evidence.replicas.get(broker, Replica([], [])).batches:
            if batch.base_offset < evidence.limit(broker):
                if reached is not None and batch.base_offset < reached:
                    yield Anomaly("log-reorder", "offsets", evidence.final.partition, None, None, batch.base_offset)
                reached = max(batch.next_offset, reached or batch.next_offset)


def log_gap(evidence: Evidence) -> Iterator[Anomaly]:
    partition, end = evidence.final.partition, evidence.final.high_watermark
    expected = evidence.final.log_start_offset
    below = sorted((b.base_offset, b.next_offset) for b in evidence.leader.batches if b.base_offset < end)
    for base_offset, next_offset in [*below, (end, end)]:
        if base_offset > expected:
            yield Anomaly("log-gap", "offsets", partition, None, None, expected, base_offset - expected)
        expected = max(expected, next_offset)
    highest: dict[int, int] = {}
    for stream, sequence in evidence.copies():
        highest[stream] = max(sequence, highest.get(stream, sequence))
    lost = lost_values(evidence)
    missing = sorted(value for value in lost if value[1] < highest.get(value[0], -1))
    stretch: list[Value] = []
    for value in [*missing, None]:
        if stretch and (value is None or value != (stretch[-1][0], stretch[-1][1] + 1)):
            offsets = known([lost[each] for each in stretch])
            yield Anomaly("log-gap", "sequences", partition, *stretch[0], min(offsets, default=None), len(stretch))
            stretch = []
        if value is not None:
            stretch.append(value)


def log_corrupt(evidence: Evidence) -> Iterator[Anomaly]:
    partition = evidence.final.partition
    for broker in evidence.brokers:
        replica = evidence.replicas.get(broker, Replica([], []))
        for batch in replica.batches:
            if batch.problem and batch.base_offset < evidence.limit(broker):
                size = max(1, batch.next_offset - batch.base_offset)
                yield Anomaly("log-corrupt", "batch", partition, None, None, batch.base_offset, size)
        for next_offset, _ in replica.tails:
            if next_offset < evidence.limit(broker):
                yield Anomaly("log-corrupt", "tail", partition, None, None, next_offset)
    for slot, batch in evidence.log():
        if slot.problem == "payload" and batch.problem is None:
            yield Anomaly("log-corrupt", "value", partition, *(slot.value or (None, None)), slot.offset)


def log_divergence(evidence: Evidence) -> Iterator[Anomaly]:
    def batches(broker: int, start: int, limit: int) -> dict[int, list[Batch]]:
        found = defaultdict(list)
        for batch in evidence.replicas.get(broker, Replica([], [])).batches:
            if batch.base_offset < limit and batch.next_offset > start:
                found[batch.base_offset].append(batch)
        return found

    def outline(found: list[Batch]) -> list[tuple[int, int]]:
        columns = [[b.crc for b in found], [b.leader_epoch for b in found]]
        columns += [[b.next_offset for b in found], [b.size for b in found]]
        return [(min(column), max(column)) for column in columns]

    for broker in evidence.brokers:
        if broker == evidence.final.leader:
            continue
        theirs = batches(broker, evidence.start(broker), evidence.limit(broker))
        ours = batches(evidence.final.leader, evidence.start(broker), evidence.limit(broker))
        for base_offset in sorted({*theirs, *ours}):
            cause = None
            if base_offset not in theirs:
                cause = "missing"
            elif base_offset not in ours:
                cause = "extra"
            elif not any(b.problem for b in theirs[base_offset] + ours[base_offset]):
                cause = "different" if outline(theirs[base_offset]) != outline(ours[base_offset]) else None
            if cause:
                yield Anomaly("log-divergence", cause, evidence.final.partition, None, None, base_offset)


def phantom(evidence: Evidence) -> Iterator[Anomaly]:
    partition = evidence.final.partition
    reserved = set()
    for row in evidence.rows:
        if row["f"] in ("reserve", "sentinel") and row["first_sequence"] >= 0:
            reserved |= {(row["stream"], s) for s in range(row["first_sequence"], row["last_sequence"] + 1)}
    acks, reads, copies = evidence.acks(), evidence.reads(), evidence.copies()
    failed = {value for value, _, _ in evidence.claims(("send", "sentinel"), "fail")}
    present = {*copies, *(value for value, _, _ in evidence.claims(("poll",), "ok"))}
    for value in present:
        cause = None
        if value not in reserved:
            cause = "never-reserved"
        elif value in failed and value not in acks:
            cause = "failed"
        if cause:
            offset = min((o for o, _ in copies[value]), default=None) if value in copies else None
            offset = min(reads[value], default=None) if offset is None else offset
            yield Anomaly("phantom", cause, partition, *value, offset)
    unreadable = {slot.offset for slot, _ in evidence.log() if slot.problem is not None}
    for slot, batch in evidence.log():
        if slot.problem in ("foreign", "run") and batch.crc_ok:
            yield Anomaly("phantom", "foreign", partition, None, None, slot.offset)
    undecodable = set()
    for row in evidence.rows:
        if row["f"] == "poll" and row["type"] == "ok" and row["stream"] < 0 and row["error"]:
            undecodable |= set(range(row["first_offset"], row["last_offset"] + 1))
    for offset in undecodable - unreadable:
        yield Anomaly("phantom", "undecodable", partition, None, None, offset)


# --------------------------------------------------------------------------------------------------- the reading


def load(directory: RunDirectory) -> list[Evidence]:
    """All judged partitions of a run."""
    run = RunModel.from_json(directory.read_run())
    rows = read_histories(directory.history_dir).table.to_pylist()
    found = []
    for final in run.final:
        if final.status != "ok" or any("compact" in topic.config.get("cleanup.policy", "") for topic in run.topics):
            continue
        name = f"{final.topic}-{final.partition}"
        replicas = {}
        for broker in directory.broker_ids():
            files = sorted(directory.node(broker).rglob(f"{name}/*.log"))
            if files:
                replicas[broker] = read_replica(files, run.run_id)
        own = [row for row in rows if (row["topic"], row["partition"]) == (final.topic, final.partition)]
        found.append(Evidence(final, replicas, own, *read_journals(directory, run, final)))
    return found


def read_journals(directory: RunDirectory, run: RunModel, final: FinalPartition) -> tuple[int, dict[int, int]]:
    """Up to where records of this partition were to be deleted, and where each broker says that its log begins."""
    (settings,) = [topic.config for topic in run.topics if topic.name == final.topic]
    asked, begins = [0], {}
    for broker in directory.broker_ids():
        for entry in directory.read_journal(broker):
            if (entry["topic"], entry["partition"]) != (final.topic, final.partition):
                continue
            if entry["event"] == "delete-records":
                asked.append(entry["to_offset"])
            else:
                begins[broker] = max(begins.get(broker, 0), entry["log_start_offset"])
                if entry["reason"] == "time" and settings.get("retention.ms") != "-1":
                    asked.append(entry["log_start_offset"])
                if entry["reason"] == "size" and settings.get("retention.bytes", "-1") != "-1":
                    asked.append(entry["log_start_offset"])
    return max(asked), begins


def read_replica(files: list[Path], run_id: int) -> Replica:
    """Batch after batch, file after file."""
    replica = Replica([], [])
    for path in files:
        data = path.read_bytes()
        position, next_offset = 0, int(path.stem)
        while position < len(data):
            left = len(data) - position
            base_offset, length = struct.unpack_from(">qi", data, position) if left >= 12 else (0, left)
            if left >= 12 and (length < 49 or base_offset < 0):
                replica.tails.append((next_offset, "garbage"))
                break
            if left < 12 or left < 12 + length:
                replica.tails.append((next_offset, "torn"))
                break
            batch = read_batch(data[position : position + 12 + length], int(path.stem), run_id)
            replica.batches.append(batch)
            next_offset = batch.next_offset
            position += 12 + length
    return replica


def read_batch(data: bytes, segment: int, run_id: int) -> Batch:
    """One batch; what is wrong with it is said in one word."""
    base_offset, _, epoch, magic, crc, attributes, delta, _, _, producer_id, producer_epoch, _, count = (
        struct.unpack_from(">qiibIhiqqqhii", data)
    )
    crc_ok = crc32c.crc32c(data[21:]) == crc
    codec = attributes & 7
    problem = None
    if magic != 2 or not crc_ok or codec > 4 or delta < 0 or count != delta + 1:
        problem = "header"
    batch = Batch(
        segment, base_offset, base_offset + delta + 1, len(data), epoch, crc, crc_ok,
        (producer_id, producer_epoch), problem,
    )  # fmt: skip
    if magic != 2 or attributes & 0x20 or (codec and not crc_ok):
        return batch
    try:
        records = read_records(decompress(codec, data[61:]), count)
    except (ValueError, IndexError, cramjam.DecompressionError, OSError, EOFError, zlib.error):
        batch.problem = batch.problem or "records"
        return batch
    batch.slots = [read_value(base_offset + delta, value, run_id) for delta, value in records]
    return batch


def decompress(codec: int, data: bytes) -> bytes:
    if codec == 1:
        return gzip.decompress(data)
    if codec == 2:
        plain, position = b"", 16
        while position < len(data):
            (size,) = struct.unpack_from(">i", data, position)
            plain += bytes(cramjam.snappy.decompress_raw(data[position + 4 : position + 4 + size]))
            position += 4 + size
        return plain
    if codec == 3:
        return bytes(cramjam.lz4.decompress(data))
    if codec == 4:
        return bytes(cramjam.zstd.decompress(data))
    if codec:
        raise ValueError(f"codec {codec}")
    return data


def read_records(data: bytes, count: int) -> list[tuple[int, bytes | None]]:
    """(offset delta, value) of ``count`` records that fill the data exactly, else ValueError or IndexError."""
    if count < 1 or count * 7 > len(data):
        raise ValueError("too few bytes")
    position, found = 0, []
    for _ in range(count):
        length, position = varint(data, position, 5)
        end = position + length
        if length < 6 or end > len(data):
            raise ValueError("record length")
        _, at = varint(data, position + 1, 10)
        delta, at = varint(data, at, 5)
        key_size, at = varint(data, at, 5)
        value_size, at = varint(data, at + max(key_size, 0), 5)
        value = data[at : at + value_size] if value_size >= 0 else None
        headers, at = varint(data, at + max(value_size, 0), 5)
        if key_size < -1 or value_size < -1 or headers < 0 or at > end or (headers == 0 and at != end):
            raise ValueError("record")
        found.append((delta, value))
        position = end
    if position != len(data):
        raise ValueError("bytes are left over")
    return found


def varint(data: bytes, position: int, width: int) -> tuple[int, int]:
    number = 0
    for index in range(width):
        byte = data[position + index]
        number |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            number &= 0xFFFFFFFFFFFFFFFF
            return (number >> 1) ^ -(number & 1), position + index + 1
    raise ValueError("varint")


def read_value(offset: int, value: bytes | None, run_id: int) -> Slot:
    """What stands at an offset, by the table in ``verifier.evidence.values``."""
    if value is None or value[:4] != b"GPLS":
        return Slot(offset, None, "foreign", False)
    if len(value) < 48 or zlib.crc32(value[:44]) != int.from_bytes(value[44:48], "big"):
        return Slot(offset, None, "payload", False)
    stream, sequence = int.from_bytes(value[16:20], "big"), int.from_bytes(value[24:32], "big")
    sentinel = bool(value[5] & 1)
    if zlib.crc32(value[48:]) != int.from_bytes(value[40:44], "big"):
        return Slot(offset, (stream, sequence), "payload", sentinel)
    if int.from_bytes(value[8:16], "big") != run_id:
        return Slot(offset, None, "run", sentinel)
    return Slot(offset, (stream, sequence), None, sentinel)
