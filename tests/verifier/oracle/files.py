"""The checks of files beside the log once more, slow and obvious: entry by entry, with ``struct`` and plain lists."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import crc32c

from tests.verifier.oracle.model import Anomaly, Batch, Evidence


def clean_stop(evidence: Evidence, broker: int) -> bool:
    marker = evidence.homes[broker].parent / ".kafka_cleanshutdown"
    return marker.exists() or noted_end(evidence, broker) == 0


def noted_end(evidence: Evidence, broker: int) -> int | None:
    noted = [child.exit_code for child in evidence.run.children if child.name == f"broker-{broker}"]
    return noted[-1] if noted else None


def each_replica(evidence: Evidence) -> Iterator[tuple[int, Path, bool]]:
    for broker in evidence.brokers:
        if broker in evidence.homes:
            yield broker, evidence.homes[broker], clean_stop(evidence, broker)


def read(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def segments(evidence: Evidence, broker: int) -> list[tuple[int, list[Batch], bool]]:
    """(base offset, its batches, whether it is the last) of each segment."""
    bases = sorted(int(path.stem) for path in evidence.homes[broker].glob("*.log"))
    batches = evidence.replicas[broker].batches
    return [(base, [batch for batch in batches if batch.segment == base], base == bases[-1]) for base in bases]


def log_end(evidence: Evidence, broker: int) -> int:
    base, batches, _ = segments(evidence, broker)[-1]
    return batches[-1].next_offset if batches else base


def entries(data: bytes, kind: str) -> tuple[list[tuple[int, int]], int]:
    size = struct.calcsize(kind)
    whole = [data[at : at + size] for at in range(0, len(data) - size + 1, size)]
    while len(whole) > 1 and not any(whole[-1]):
        whole.pop()
    return [struct.unpack(kind, each) for each in whole], len(data) % size


def index_mismatch(evidence: Evidence) -> Iterator[Anomaly]:
    for broker, home, clean in each_replica(evidence):
        for base, batches, is_last in segments(evidence, broker):
            if not clean and is_last:
                continue
            for suffix, judge in ((".index", offset_entries), (".timeindex", time_entries)):
                data = read(home / f"{base:020d}{suffix}")
                if data is None:
                    if clean:
                        yield Anomaly("index-mismatch", "missing", evidence.final.partition, None, None, None)
                    continue
                for cause, offset in judge(data, base, batches):
                    where = None if offset is None else max(offset, 0)
                    yield Anomaly("index-mismatch", cause, evidence.final.partition, None, None, where)


def offset_entries(data: bytes, base: int, batches: list[Batch]) -> Iterator[tuple[str, int | None]]:
    found, left_over = entries(data, ">ii")
    if left_over:
        yield "size", None
    end = max((batch.next_offset for batch in batches), default=base)
    size = batches[-1].position + batches[-1].size if batches else 0
    before = None
    for relative, position in found:
        offset = base + relative
        here = [batch for batch in batches if batch.position == position]
        if not base <= offset < end or not 0 <= position < size:
            yield "outside", offset
        elif not here or all(batch.next_offset - 1 != offset for batch in batches) or offset < here[0].base_offset:
            yield "batch", offset
        elif before is not None and (offset <= before[0] or position <= before[1]):
            yield "order", offset
        before = offset, position


def time_entries(data: bytes, base: int, batches: list[Batch]) -> Iterator[tuple[str, int | None]]:
    found, left_over = entries(data, ">qi")
    if left_over:
        yield "size", None
    before, last = None, -1
    for timestamp, relative in found:
        offset = base + relative
        at_or_below = [batch for batch in batches if batch.base_offset <= offset]
        top = max((batch.base_offset for batch in at_or_below), default=None)
        held = [index for index, batch in enumerate(batches) if batch.base_offset == top]
        if not held or offset >= batches[held[-1]].next_offset:
            yield "outside", offset
        elif not (
            batches[held[-1]].timestamps[1] == timestamp
            == max(batch.timestamps[1] for batch in batches[: held[-1] + 1])
        ):  # fmt: skip
            yield "timestamp", offset
        elif before is not None and (timestamp <= before[0] or offset < before[1]):
            yield "order", offset
        before, last = (timestamp, offset), timestamp
    newest = max((batch.timestamps[1] for batch in batches), default=-1)
    if newest >= 0 and last < newest:
        yield "newest", None


def lines(data: bytes, width: int) -> list[list[str]] | None:
    """The rows of a checkpoint, None if it is in no order."""
    if not data:
        return []
    try:
        version, *rest = data.decode().splitlines()
        rows = [line.split() for line in rest[1:]]
        numbers = [rest[0].strip(), *(field for row in rows for field in row[width == 3 :])]
        good = version.strip() == "0" and int(rest[0]) == len(rows) and all(len(row) == width for row in rows)
        good = good and all(number.isdigit() and number.isascii() for number in numbers)
        good = good and (width == 2 or len({(row[0], int(row[1])) for row in rows}) == len(rows))
    except (UnicodeDecodeError, ValueError, IndexError):
        return None
    return rows if good else None


def checkpoint_mismatch(evidence: Evidence) -> Iterator[Anomaly]:
    partition = evidence.final.partition

    def anomaly(cause: str, offset: int | None = None) -> Anomaly:
        return Anomaly("checkpoint-mismatch", cause, partition, None, None, offset)

    for broker, home, clean in each_replica(evidence):
        if noted_end(evidence, broker) == 0 and not (home.parent / ".kafka_cleanshutdown").exists():
            yield anomaly("marker")
        yield from (anomaly(cause, offset) for cause, offset in wrong_epochs(evidence, broker, home, clean))
        for name in ("recovery-point", "replication", "log-start"):
            data = read(home.parent / f"{name}-offset-checkpoint")
            if data is None:
                if clean:
                    yield anomaly("missing")
                continue
            rows = lines(data, 3)
            if rows is None:
                yield anomaly("unreadable")
            elif clean and (cause := wrong_offset(evidence, broker, name, rows)):
                yield anomaly(cause)


def wrong_offset(evidence: Evidence, broker: int, name: str, rows: list[list[str]]) -> str | None:
    final, end = evidence.final, log_end(evidence, broker)
    said = [int(row[2]) for row in rows if (row[0], int(row[1])) == (final.topic, final.partition)]
    offset = said[0] if said else 0
    leads = broker == final.leader
    if name == "recovery-point":
        return None if said == [end] else "recovery-point"
    if name == "replication":
        return "high-watermark" if offset > end or (leads and offset < final.high_watermark) else None
    begins = max(segments(evidence, broker)[0][0], offset)
    return "log-start" if offset > end or (leads and begins != final.log_start_offset) else None


def wrong_epochs(evidence: Evidence, broker: int, home: Path, clean: bool) -> Iterator[tuple[str, int | None]]:
    batches, end = evidence.replicas[broker].batches, log_end(evidence, broker)
    data = read(home / "leader-epoch-checkpoint")
    if data is None:
        if batches or clean:
            yield "missing", None
        return
    rows = lines(data, 2)
    if rows is None:
        yield "unreadable", None
        return
    said = [(int(epoch), int(start)) for epoch, start in rows]
    for index, (epoch, start) in enumerate(said):
        if index and (epoch <= said[index - 1][0] or start <= said[index - 1][1]):
            yield "epochs", start
        if clean and start > end:
            yield "epochs", start
    first = segments(evidence, broker)[0][0]
    noted = lines(read(home.parent / "log-start-offset-checkpoint") or b"", 3)
    if noted is not None:
        mine = [
            int(row[2]) for row in noted if (row[0], int(row[1])) == (evidence.final.topic, evidence.final.partition)
        ]
        first = max([first, *mine])
        if not clean:
            first = max(first, min((start for _, start in said), default=0))
    for batch in batches:
        if batch.base_offset >= first:
            held = [(start, epoch) for epoch, start in said if start <= batch.base_offset]
            if not held or max(held)[1] != batch.leader_epoch:
                yield "epochs", batch.base_offset


Producer = tuple[int, int, int, int, int, int]


def producers(path: Path) -> dict[int, Producer] | None:
    """By id: (id, epoch, last sequence, last offset, offset delta, timestamp); None: no snapshot."""
    data = path.read_bytes()
    if len(data) < 10 or data[:2] != b"\0\1" or crc32c.crc32c(data[6:]) != int.from_bytes(data[2:6], "big"):
        return None
    count = int.from_bytes(data[6:10], "big", signed=True)
    if len(data) != 10 + 46 * count:
        return None
    rows = [struct.unpack_from(">qhiqiq", data, 10 + 46 * index) for index in range(count)]
    found = {row[0]: row for row in rows}  # one that is there twice hides what it was
    return found if len(found) == len(rows) else None


def replay(batches: list[Batch], offset: int) -> dict[int, Producer]:
    state: dict[int, Producer] = {}
    for batch in batches:
        if batch.base_offset >= offset:
            break
        producer_id, epoch = batch.producer
        if producer_id < 0:
            continue
        newest, delta = batch.timestamps[1], batch.next_offset - 1 - batch.base_offset
        if batch.base_sequence >= 0:
            last = (batch.base_sequence + delta) % 2**31
            state[producer_id] = producer_id, epoch, last, batch.next_offset - 1, delta, newest
        elif producer_id in state and state[producer_id][1] == epoch:
            state[producer_id] = (*state[producer_id][:5], newest)
        else:
            state[producer_id] = producer_id, epoch, -1, -1, 0, newest
    return state


def forgotten_ms(evidence: Evidence) -> float:
    """Producers that were silent since then may have been forgotten."""
    run = evidence.run
    if not run.phases or any(phase.end_ns is None for phase in run.phases):
        return float("inf")
    over = max(phase.end_ns or 0 for phase in run.phases) - run.started_ns
    keeps = run.settings.producer_id_expiration_ms
    return datetime.fromisoformat(run.started).timestamp() * 1000 + over / 1e6 + 60_000 + evidence.clock[1] - keeps


def snapshot_mismatch(evidence: Evidence) -> Iterator[Anomaly]:
    for broker, home, clean in each_replica(evidence):
        batches, end = evidence.replicas[broker].batches, log_end(evidence, broker)
        first = segments(evidence, broker)[0][0]
        for path in sorted(home.glob("*.snapshot")):
            offset = int(path.stem)
            for cause, count in wrong_snapshot(evidence, path, offset, batches, first, end):
                for _ in range(count):
                    yield Anomaly("snapshot-mismatch", cause, evidence.final.partition, None, None, offset)
        if clean and end > 0 and not (home / f"{end:020d}.snapshot").exists():
            yield Anomaly("snapshot-mismatch", "missing", evidence.final.partition, None, None, end)


def wrong_snapshot(
    evidence: Evidence, path: Path, offset: int, batches: list[Batch], first: int, end: int
) -> Iterator[tuple[str, int]]:
    # one that the walk of the log came by is compared, whatever the end of the log is
    passed = any(batch.base_offset >= offset for batch in batches)
    if offset > end and not passed:
        yield "beyond", 1
        return
    found, expected = producers(path), replay(batches, offset)
    if found is None:
        yield "unreadable", 1
        return
    # of a producer whose newest batch was deleted, a marker may be left
    gone = [
        each
        for each in found
        if found[each][3] < first and expected.get(each) == (*found[each][:2], -1, -1, 0, found[each][5])
    ]
    wrong = [each for each in found if each in expected and found[each] != expected[each] and each not in gone]
    lacks = [each for each in expected if each not in found and expected[each][5] > forgotten_ms(evidence)]
    strange = [each for each in found if each not in expected and not (first > 0 and found[each][3] < first)]
    yield from (("entry", len(wrong)), ("lacks", len(lacks)), ("stranger", len(strange)))


def torn_tail(evidence: Evidence) -> Iterator[Anomaly]:
    for broker, _, clean in each_replica(evidence):
        for next_offset, _ in evidence.replicas[broker].tails if clean else []:
            yield Anomaly("torn-tail", None, evidence.final.partition, None, None, next_offset)


CHECKS = (index_mismatch, checkpoint_mismatch, snapshot_mismatch, torn_tail)
