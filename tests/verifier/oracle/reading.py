"""The oracle's own way from a run directory to plain lists: ``struct`` and the ``crc32c`` package, no numpy."""

from __future__ import annotations

import gzip
import struct
import zlib
from datetime import datetime
from pathlib import Path
from typing import Any

import cramjam
import crc32c

from tests.support.histories import read_histories
from tests.verifier.oracle.model import Batch, Evidence, Replica, Slot
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import FinalPartition, RunModel


def read(directory: RunDirectory) -> tuple[RunModel, list[dict[str, Any]]]:
    """What a run says of itself, and the rows of all histories."""
    return RunModel.from_json(directory.read_run()), read_histories(directory.history_dir).table.to_pylist()


def load(directory: RunDirectory, run: RunModel, rows: list[dict[str, Any]]) -> list[Evidence]:
    """All judged partitions of a run."""
    found = []
    for final in run.final:
        if final.status != "ok" or any("compact" in topic.config.get("cleanup.policy", "") for topic in run.topics):
            continue
        name = f"{final.topic}-{final.partition}"
        replicas, homes = {}, {}
        for broker in directory.broker_ids():
            files = sorted(directory.node(broker).rglob(f"{name}/*.log"))
            if files:
                replicas[broker] = read_replica(files, run.run_id)
                homes[broker] = files[0].parent
        own = [row for row in rows if (row["topic"], row["partition"]) == (final.topic, final.partition)]
        deletions = read_deletions(directory, run, final, own)
        leaders, faults = read_looks(directory, final.topic), directory.read_faults()
        clock = read_clock(directory, run)
        evidence = Evidence(final, replicas, own, *deletions, run, leaders, faults, homes, rows, clock=clock)
        evidence.not_owed = not_owed(evidence)
        found.append(evidence)
    return found


def not_owed(evidence: Evidence) -> set[int]:
    """The offsets of what was aborted in the leader's log, but for what its client knows to be committed."""
    known = {(row["process"], row["op"]) for row in evidence.others if (row["f"], row["type"]) == ("commit", "ok")}
    ours = {value for value, _, row in evidence.claims(("send",), "ok") if (row["process"], row["op"]) in known}
    open_: dict[int, set[int]] = {}
    found: set[int] = set()
    for batch in evidence.leader.batches:
        producer = batch.producer[0]
        if batch.control:
            found |= open_.pop(producer, set()) if batch.is_abort else set()
            open_.pop(producer, None)
        elif batch.attributes & 0x10:
            open_.setdefault(producer, set()).update(slot.offset for slot in batch.slots if slot.value not in ours)
    return found


def read_looks(directory: RunDirectory, only: str) -> list[dict[str, Any]]:
    """What the conductor saw of leaders; nothing if its record cannot be.

    Only the first look at a partition has none before it, no epoch comes after a later one, and none has two leaders.
    """
    looks: list[dict[str, Any]] = directory.read_leaders()
    newest: dict[tuple[str, int], tuple[int, int | None]] = {}
    for look in looks:
        place, now = (look.get("topic", only), look["partition"]), (look["leader_epoch"], look.get("leader"))
        before = newest.get(place)
        if before is None or now[0] > before[0]:
            newest[place] = now
        if before is None:
            continue
        other = now[0] == before[0] and now[1] != before[1] and not {None, -1} & {now[1], before[1]}
        if look["before_ns"] is None or now[0] < before[0] or other:
            return []
    return looks


def read_clock(directory: RunDirectory, run: RunModel) -> tuple[float, float]:
    """By how much the wall clock went back and ahead, in ms."""
    then = datetime.fromisoformat(run.started).timestamp() * 1000 - run.started_ns / 1e6
    samples = [
        each["wall_minus_monotonic_ms"] for each in directory.read_resources() if "wall_minus_monotonic_ms" in each
    ]
    moved = [0, *(each - then for each in samples)]
    return -min(moved), max(moved)


def read_deletions(
    directory: RunDirectory, run: RunModel, final: FinalPartition, rows: list[dict[str, Any]]
) -> tuple[int, dict[int, int]]:
    """Up to where records of this partition were to be deleted, and where each broker says that its log begins."""
    (settings,) = [topic.config for topic in run.topics if topic.name == final.topic]
    keeps_all = settings.get("retention.ms", "-1") == settings.get("retention.bytes", "-1") == "-1"
    asked = max([0, *(row["first_offset"] for row in rows if row["f"] == "delete" and row["type"] != "fail")])
    begins: dict[int, int] = {}
    for broker in directory.broker_ids():
        for entry in directory.read_journal(broker):
            if entry["event"] == "log-start" and (entry["topic"], entry["partition"]) == (final.topic, final.partition):
                begins[broker] = max(begins.get(broker, 0), entry["log_start_offset"])
    return asked if keeps_all else 1 << 60, begins


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
            batch.position = position
            replica.batches.append(batch)
            next_offset = batch.next_offset
            position += 12 + length
    return replica


def read_batch(data: bytes, segment: int, run_id: int) -> Batch:
    """One batch; what is wrong with it is said in one word."""
    (
        base_offset,
        _,
        epoch,
        magic,
        crc,
        attributes,
        delta,
        first_time,
        newest_time,
        producer_id,
        producer_epoch,
        sequence,
        count,
    ) = struct.unpack_from(">qiibIhiqqqhii", data)
    crc_ok = crc32c.crc32c(data[21:]) == crc
    codec = attributes & 7
    problem = None
    if magic != 2 or not crc_ok or codec > 4 or delta < 0 or count != delta + 1:
        problem = "header"
    batch = Batch(
        segment, base_offset, base_offset + delta + 1, len(data), epoch, crc, crc_ok,
        (producer_id, producer_epoch), problem, (first_time, newest_time), sequence, bool(attributes & 0x20),
        attributes,
    )  # fmt: skip
    if magic == 2 and attributes & 0x20 and crc_ok:
        # the key of its record, behind length, attributes, time and offset, begins with its version and its kind
        batch.is_abort = data[61 + 5 : 61 + 9] == bytes(4)
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
        if delta < 0 or (found and delta <= found[-1][0]):
            raise ValueError("order")
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
    """What stands at an offset, by the table in ``verifier.evidence.sequenced_value``."""
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
