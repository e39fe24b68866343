"""The checks of consumer groups once more: offset by offset, every pair of commits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.verifier.oracle.model import Anomaly, Value
from tests.verifier.oracle.reading import read_replica
from tests.verifier.oracle.transaction_logs import read_rows
from verifier.evidence.output import OUTPUT_TOPIC
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel

Row = dict[str, Any]
Place = tuple[str, str, int]
FOREVER = float("inf")


def find_all(directory: RunDirectory, run: RunModel, rows: list[Row]) -> list[Anomaly]:
    """What the checks must find in a run."""
    members = {process.name for process in run.evidence.processes if process.role == "members"}
    logs = {}
    for final in run.final:
        home = directory.node(final.leader) / "data" / f"{final.topic}-{final.partition}"
        if final.status == "ok" and home.is_dir():
            known = range(final.log_start_offset, final.high_watermark)
            logs[final.topic, final.partition] = (final.log_start_offset, {o for o in records(home) if o in known})
    own = [row for row in rows if row["process"] in members]
    found = list(judge(own, logs))
    if not run.experiment["resolved"]["broker"]["unclean.leader.election.enable"]:
        found += lost(own, offset_logs(directory), everything=all_there(directory, run))
    for final in run.final:
        homes = sorted(directory.nodes_dir.glob(f"*/data/{OUTPUT_TOPIC}-{final.partition}"))
        if homes and (final.topic, final.partition) in logs:
            home = directory.node(final.leader) / "data" / f"{final.topic}-{final.partition}"
            mine = [row for row in own if row["partition"] == final.partition]
            inputs, outputs = values(home, run), values(homes[0], run)
            found += exactly_once(mine, inputs, outputs, final.partition)
            if final.log_start_offset == 0 and not run.may_elect_uncleanly:
                found += from_nowhere(inputs, outputs, final.partition)
    return found


def values(home: Path, run: RunModel) -> list[tuple[int, Value]]:
    """Offset and value of every record for a reader of committed ones."""
    committed = set(records(home))
    slots = [slot for batch in read_replica(sorted(home.glob("*.log")), run.run_id).batches for slot in batch.slots]
    return [(slot.offset, slot.value) for slot in slots if slot.offset in committed and slot.value is not None]


def exactly_once(
    rows: list[Row], inputs: list[tuple[int, Value]], outputs: list[tuple[int, Value]], partition: int
) -> Iterator[Anomaly]:
    commits = [row for row in rows if row["f"] == "offset-commit" and row["type"] != "fail"]
    certain = max((row["first_offset"] for row in commits if row["type"] == "ok"), default=0)
    possible = max((row["first_offset"] for row in commits), default=0)
    began = min((row["first_offset"] for row in rows if row["f"] == "resume"), default=0)
    for offset, value in inputs:
        there = [at for at, one in outputs if one == value]
        if not there and began <= offset < certain:
            yield Anomaly("pipeline-exactly-once", "missing", partition, None, None, offset)
        copies = sorted(at for at, one in inputs if one == value)
        if offset != copies[0]:
            continue
        if len(there) > len(copies):
            yield Anomaly("pipeline-exactly-once", "twice", partition, None, None, sorted(there)[len(copies)])
        committed = sum(at < possible for at in copies)
        if committed < min(len(copies), len(there)):
            yield Anomaly("pipeline-exactly-once", "ahead", partition, None, None, sorted(there)[committed])


def from_nowhere(
    inputs: list[tuple[int, Value]], outputs: list[tuple[int, Value]], partition: int
) -> Iterator[Anomaly]:
    for at, value in sorted(outputs):
        is_first = not any(one == value and earlier < at for earlier, one in outputs)
        if is_first and all(one != value for _, one in inputs):
            yield Anomaly("pipeline-exactly-once", "without-input", partition, None, None, at)


def records(home: Any) -> Iterator[int]:
    """The offsets of records that are not part of a transaction, or of one that was committed."""
    batches = read_rows(home)
    for at, batch in enumerate(batches):
        if batch.what == "data":
            ends = [each.what for each in batches[at + 1 :] if each.producer_id == batch.producer_id]
            ends = [what for what in ends if what in ("COMMIT", "ABORT")]
            if ends[:1] != ["COMMIT"]:
                continue
        elif batch.what:
            continue
        yield from range(batch.offset, batch.end)


def judge(rows: list[Row], logs: dict[tuple[str, int], tuple[int, set[int]]]) -> Iterator[Anomaly]:
    groups = {(row["process"], row["session"]): row["error"].split(" ")[0] for row in rows if row["f"] == "member"}
    own = [row for row in rows if (row["process"], row["session"]) in groups and row["partition"] >= 0]
    places = {(groups[row["process"], row["session"]], row["topic"], row["partition"]) for row in own}
    for place in sorted(places):
        here = [row for row in own if (groups[row["process"], row["session"]], row["topic"], row["partition"]) == place]
        if place[1:] in logs:
            start, log = logs[place[1:]]
            yield from completeness(here, log, place[2])
            yield from positions(here, start, log, place[2])
        yield from stale(here, place[2])
        yield from doubles(here, rows, place[2])


def doubles(rows: list[Row], every: list[Row], partition: int) -> Iterator[Anomaly]:
    """Every pair of assignments, with the rows that end them looked for again each time."""
    who = {(row["process"], row["session"]): row for row in every if row["f"] == "member"}

    def name(row: Row) -> str:
        return str(who[row["process"], row["session"]]["error"].split(" ", 1)[1])

    def released(row: Row) -> float:
        ends = [
            each["invoke_ns"]
            for each in every
            if each["process"] == row["process"]
            and (
                (each["f"] == "revoke" and each["session"] == row["session"] and each["partition"] == partition)
                or (each["f"] == "leave" and (each["process"], each["session"]) in who and name(each) == name(row))
            )
        ]
        return min(ends, default=FOREVER)

    begins = [row for row in rows if row["f"] == "resume" and who[row["process"], row["session"]]["incarnation"] >= 0]
    for later in begins:
        for former in begins:
            order = [(row["invoke_ns"], row["process"], row["session"]) for row in (former, later)]
            same = len({who[row["process"], row["session"]]["incarnation"] for row in (former, later)}) == 1
            one, other = name(former), name(later)
            lives = one == other or (len(one) > 37 and one[:-37] == other[:-37])
            earlier = order[0] < order[1] or (order[0] == order[1] and begins.index(former) < begins.index(later))
            if same and not lives and earlier and released(former) > later["invoke_ns"]:
                yield Anomaly("double-assignment", None, partition, None, None, later["first_offset"])
                break


#: Of a group in a partition: every offset in its order, with how its transaction ended; and whether the log is whole.
Stored = tuple[list[tuple[int | None, str]], bool]


def offset_logs(directory: RunDirectory) -> dict[Place, Stored]:
    """By the first broker's copies: stories have the same on all. Groups are under the topic "" besides."""
    found: dict[Place, Stored] = {}
    homes = {home.name: home for home in sorted(directory.nodes_dir.glob("*/data/__consumer_offsets-*"), reverse=True)}
    for home in homes.values():
        batches = read_rows(home)
        whole = gapless(batches)
        here: dict[Place, list[tuple[int | None, str]]] = {}
        for at, batch in enumerate(batches):
            if batch.what in ("COMMIT", "ABORT", "unreadable"):
                continue
            ends = [each.what for each in batches[at + 1 :] if each.producer_id == batch.producer_id]
            end = next((what for what in ends if what in ("COMMIT", "ABORT")), "open") if batch.what else "COMMIT"
            whole = whole and bool(batch.records)
            for key, value in batch.records:
                place, offset = offset_of(key or b"", value)
                here.setdefault((place[0], "", 0), [])
                here.setdefault(place, []).append((offset, end))
        found |= {place: (told, whole) for place, told in here.items()}
    return found


def gapless(batches: list[Any]) -> bool:
    return all(
        batch.offset == (batches[at - 1].end if at else 0) and batch.count == batch.end - batch.offset
        for at, batch in enumerate(batches)
    )


def all_there(directory: RunDirectory, run: RunModel) -> bool:
    """Whether nothing that was ever committed can be elsewhere."""
    count = run.experiment["resolved"]["broker"]["offsets.topic.num.partitions"]
    homes = {home.name: home for home in directory.nodes_dir.glob("*/data/__consumer_offsets-*")}
    logs = [read_rows(home) for home in homes.values()]
    readable = all(batch.records for log in logs for batch in log if batch.what in ("", "data"))
    return set(homes) == {f"__consumer_offsets-{at}" for at in range(count)} and readable and all(map(gapless, logs))


def offset_of(key: bytes, value: bytes | None) -> tuple[Place, int | None]:
    """Of a record of version 0 to 2 of the keys."""
    texts, at = [], 2
    while len(texts) < (1 if key[1] == 2 else 2):
        size = int.from_bytes(key[at : at + 2], "big")
        texts.append(key[at + 2 : at + 2 + size].decode())
        at += 2 + size
    if key[1] == 2:
        return (texts[0], "", 0), None
    place = texts[0], texts[1], int.from_bytes(key[at : at + 4], "big")
    return place, None if value is None else int.from_bytes(value[2:10], "big")


def lost(rows: list[Row], logs: dict[Place, Stored], *, everything: bool = False) -> Iterator[Anomaly]:
    groups = {(row["process"], row["session"]): row["error"].split(" ")[0] for row in rows if row["f"] == "member"}
    own = [row for row in rows if row["f"] == "offset-commit" and (row["process"], row["session"]) in groups]
    for place in sorted({(groups[row["process"], row["session"]], row["topic"], row["partition"]) for row in own}):
        known = logs.get((place[0], "", 0), ([], True) if everything else None)
        if known is None:
            continue
        told, whole = logs.get(place, ([], known[1]))
        mine = [r for r in own if (groups[r["process"], r["session"]], r["topic"], r["partition"]) == place]
        certain = [row for row in mine if row["type"] == "ok"]
        there = {offset for offset, end in told if end != "ABORT"}
        missing = {row["first_offset"] for row in certain} - there if whole else set()
        for offset in missing:
            yield Anomaly("lost-offset-commit", "missing", place[2], None, None, offset)
        if missing or not certain:
            continue
        counts = [(offset, end) for offset, end in told if end != "ABORT"]
        final = max((at for at, (_, end) in enumerate(counts) if end == "COMMIT"), default=0)
        lasts = [offset for offset, _ in counts[final:] if offset is not None]
        may = [
            row["first_offset"]
            for row in mine
            if (row["type"] == "info" and not is_over(row, certain))
            or (row["type"] == "ok" and not any(row["complete_ns"] < each["invoke_ns"] for each in certain))
        ]
        if lasts and max(lasts) < min(may):
            yield Anomaly("lost-offset-commit", "regressed", place[2], None, None, max(lasts))


def is_over(row: Row, done: list[Row]) -> bool:
    """Whether a commit of unknown outcome is of a generation before one that has committed."""
    return row["incarnation"] >= 0 and any(each["incarnation"] > row["incarnation"] for each in done)


def completeness(rows: list[Row], log: set[int], partition: int) -> Iterator[Anomaly]:
    committed = [row["first_offset"] for row in rows if (row["f"], row["type"]) == ("offset-commit", "ok")]
    began = [row["first_offset"] for row in rows if row["f"] == "resume"]
    if not committed or not began:
        return
    handed = {
        offset for row in rows if row["f"] == "poll" for offset in range(row["first_offset"], row["last_offset"] + 1)
    }
    missing = [offset for offset in sorted(log - handed) if min(began) <= offset < max(committed)]
    for offset in missing:
        if offset - 1 not in missing:
            yield Anomaly("group-completeness", None, partition, None, None, offset)


def positions(rows: list[Row], start: int, log: set[int], partition: int) -> Iterator[Anomaly]:
    given = [row for row in rows if row["f"] == "offset-commit" and row["type"] != "fail"]
    for row in rows:
        if row["f"] != "resume":
            continue
        at, began, known = row["first_offset"], row["invoke_ns"], row["complete_ns"]
        done = [each for each in given if each["type"] == "ok" and each["complete_ns"] < began]
        commits = [
            (each["first_offset"], each["invoke_ns"], each["complete_ns"] if each["type"] == "ok" else FOREVER)
            for each in given
            if each["type"] == "ok" or not is_over(each, done)
        ]
        before = [each for each in commits if each[2] < began]
        told = [each[0] for each in commits if each[1] <= known and not any(each[2] < one[1] for one in before)]
        committed = list(told)
        if not before:
            told.append(min(start, at))
        if any(offset <= at and not log & set(range(offset, at)) for offset in told):
            continue
        if any(offset > at for offset in told):
            yield Anomaly("committed-offset-regression", "resumed", partition, None, None, at)
        else:
            cause = "skipped" if max(told) in committed else "reset"
            yield Anomaly("resume-position", cause, partition, None, None, at)


def stale(rows: list[Row], partition: int) -> Iterator[Anomaly]:
    commits = [row for row in rows if (row["f"], row["type"]) == ("offset-commit", "ok") and row["incarnation"] >= 0]
    for late in commits:
        newer = [row for row in commits if row["complete_ns"] < late["invoke_ns"]]
        newest = max((row["incarnation"] for row in newer), default=-1)
        if newest > late["incarnation"]:
            _, last = max((row["complete_ns"], row["first_offset"]) for row in newer if row["incarnation"] == newest)
            if (offset := late["first_offset"]) < last:
                yield Anomaly("committed-offset-regression", "stale-generation", partition, None, None, offset)
