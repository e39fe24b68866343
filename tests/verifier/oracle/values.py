"""The checks of values once more, slow and obvious."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator

from tests.verifier.oracle.elections import OUT_OF_ORDER
from tests.verifier.oracle.excuses import Excuse, more_than_lost, of_lost
from tests.verifier.oracle.model import Anomaly, Batch, Evidence, Replica, Value, makes_sense


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
    isolated = {row["process"] for row in evidence.others if row["f"] == "isolation"}
    copies = evidence.copies()
    for value in evidence.acks():
        if value in copies:
            first = min(offset for offset, _ in copies[value])
            owed = [each for each in complete if first not in evidence.not_owed or each not in isolated]
            if first <= sentinel and any(value not in handed[process] for process in owed):
                yield Anomaly("unseen", None, evidence.final.partition, *value, first)


def cause_of_copies(evidence: Evidence, value: Value) -> str:
    copies = evidence.copies()[value]
    producers = {batch.producer for _, batch in copies}
    timed_out = any(
        row["f"] == "send" and row["type"] == "info" and row["stream"] == value[0]
        and (row["error"] or "").startswith("_MSG_TIMED_OUT")
        for row in evidence.rows
    )  # fmt: skip
    refused = any(
        row["f"] == "retry" and row["stream"] == value[0] and row["error"] == f"retry: {OUT_OF_ORDER}"
        for row in evidence.rows
    )
    if len(copies) < 2:
        return "vanished"
    if any(producer_id < 0 for producer_id, _ in producers):
        return "unidentified"
    if len(producers) == 1:
        return "broker"
    if len(copies) > 2:
        return "mixed"
    (_, earlier), (_, later) = sorted(copies, key=lambda copy: copy[0])
    same_id, (_, epoch), (_, then) = earlier.producer[0] == later.producer[0], earlier.producer, later.producer
    stale, raised = same_id and epoch > then, same_id and epoch < then
    after_error = (timed_out and not stale) or (refused and raised)
    return "client-resend-after-error" if after_error else "client-resend"


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
            stored = {value for value in in_log if value is not None}
            # readers cannot agree with a log that holds two values there
            by_reader = bool(read) and (read != stored or len(stored) > 1)
            # a place where only an acknowledgement is astray is not a reader's doing
            by_reader = by_reader and (len(values) > 1 or not in_log)
            cause = "read" if by_reader else "acknowledged"
            yield Anomaly("inconsistent-offsets", cause, evidence.final.partition, None, None, offset)
    yield from inconsistent_and_deleted(evidence)


def inconsistent_and_deleted(evidence: Evidence) -> Iterator[Anomaly]:
    """Two values at a deleted offset, by acks=all: nothing there was ever cut off."""
    settings = evidence.run.settings
    if settings.acks in ("0", "1") or evidence.run.may_elect_uncleanly:
        return
    said: dict[int, set[Value]] = defaultdict(set)
    read: dict[int, set[Value]] = defaultdict(set)
    for row in evidence.rows:
        told = row["f"] in ("send", "sentinel", "poll") and row["type"] == "ok" and row["stream"] >= 0
        if told and makes_sense(row) and row["first_offset"] >= 0:
            for step in range(row["last_sequence"] - row["first_sequence"] + 1):
                offset, value = row["first_offset"] + step, (row["stream"], row["first_sequence"] + step)
                if offset < evidence.judged_from:
                    said[offset].add(value)
                    if row["f"] == "poll":
                        read[offset].add(value)
    for offset, values in said.items():
        if len(values) > 1:
            cause = "read" if len(read[offset]) > 1 else "acknowledged"
            yield Anomaly("inconsistent-offsets", cause, evidence.final.partition, None, None, offset)


def late(
    placed: dict[tuple[int, int], list[tuple[int, int]]], acked: Container[Value] = ()
) -> Iterator[tuple[int, int, int]]:
    """(stream, sequence, position) of values with a higher sequence before them, by stream and producer.

    Those of ``acked`` are late behind any producer's.
    """
    for (stream, producer_id), values in placed.items():
        for position, sequence in values:
            rivals = [
                other for (whose, by), others in placed.items() for other in others
                if whose == stream and (by == producer_id or (stream, sequence) in acked)
            ]  # fmt: skip
            before = [other for other in rivals if other < (position, sequence)]
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
    for stream, sequence, at in late(by_producer(evidence, position), evidence.acks()):
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
    excused = {value: of_lost(evidence, value) for value in missing}
    by_connection = [value for value, excuse in excused.items() if excuse and excuse.kind == "disconnect"]
    excused |= dict.fromkeys(more_than_lost(evidence, by_connection))
    stretch: list[Value] = []
    for value in [*missing, None]:
        if stretch and (value is None or value != (stretch[-1][0], stretch[-1][1] + 1)):
            yield from gap_parts(evidence, stretch, lost, excused)
            stretch = []
        if value is not None:
            stretch.append(value)


def gap_parts(
    evidence: Evidence, stretch: list[Value], lost: dict[Value, int | None], excused: dict[Value, Excuse | None]
) -> Iterator[Anomaly]:
    """A stretch of missing sequences, or one for what is excused of it and one for what is not."""
    offset = min(known([lost[each] for each in stretch]), default=None)
    parts: dict[Excuse | None, list[Value]] = defaultdict(list)
    whole = [excused[value] for value in stretch]
    for value, excuse in zip(stretch, whole, strict=True):
        parts[excuse and Excuse(excuse.kind)].append(value)
    for excuse, values in parts.items():
        step = values[0][1] - stretch[0][1]
        at = None if offset is None else offset + step
        epoch = (whole[step] or Excuse("")).epoch
        kind = excuse and excuse.kind
        yield Anomaly("log-gap", "sequences", evidence.final.partition, *values[0], at, len(values), kind, epoch)


def log_corrupt(evidence: Evidence) -> Iterator[Anomaly]:
    partition = evidence.final.partition
    for broker in evidence.brokers:
        replica = evidence.replicas.get(broker, Replica([], []))
        for batch in replica.batches:
            if batch.base_offset < evidence.limit(broker) and (batch.problem or batch.base_offset < batch.segment):
                size = max(1, batch.next_offset - batch.base_offset)
                cause = "batch" if batch.problem else "segment"
                yield Anomaly("log-corrupt", cause, partition, None, None, batch.base_offset, size)
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
    failed = {value for value, _, _ in evidence.claims(("send", "sentinel", "unsent"), "fail")}
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
    final = evidence.final
    legal = {*range(16)}
    if any([*home.parent.glob("__transaction_state-*")] for home in evidence.homes.values()):
        legal |= {bits | low for bits in (0x10, 0x30) for low in range(16)}
    for batch in evidence.leader.batches:
        judged = batch.next_offset > final.log_start_offset and batch.base_offset < final.high_watermark
        if judged and batch.problem is None and batch.attributes not in legal:
            size = batch.next_offset - batch.base_offset
            yield Anomaly("phantom", "attributes", partition, None, None, batch.base_offset, size)
    undecodable = set()
    for row in evidence.rows:
        if row["f"] == "poll" and row["type"] == "ok" and row["stream"] < 0 and row["error"]:
            undecodable |= set(range(row["first_offset"], row["last_offset"] + 1))
    for offset in undecodable - unreadable:
        yield Anomaly("phantom", "undecodable", partition, None, None, offset)


CHECKS = (
    lost_write, unseen, duplicate, log_duplicate, inconsistent_offsets, nonmonotonic_send, log_reorder, log_gap,
    log_corrupt, log_divergence, phantom,
)  # fmt: skip
