"""The checks of consumer groups once more: offset by offset, every pair of commits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.verifier.oracle.model import Anomaly, Value
from tests.verifier.oracle.reading import read_replica
from tests.verifier.oracle.transactions import read_rows
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
    for final in run.final:
        homes = sorted(directory.nodes_dir.glob(f"*/data/{OUTPUT_TOPIC}-{final.partition}"))
        if homes and (final.topic, final.partition) in logs:
            home = directory.node(final.leader) / "data" / f"{final.topic}-{final.partition}"
            mine = [row for row in own if row["partition"] == final.partition]
            found += exactly_once(mine, values(home, run), values(homes[0], run), final.partition)
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
        if len(there) > 1:
            yield Anomaly("pipeline-exactly-once", "twice", partition, None, None, sorted(there)[1])
        if there and offset >= possible:
            yield Anomaly("pipeline-exactly-once", "ahead", partition, None, None, min(there))


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
    commits = [
        (row["first_offset"], row["invoke_ns"], row["complete_ns"] if row["type"] == "ok" else FOREVER)
        for row in rows
        if row["f"] == "offset-commit" and row["type"] != "fail"
    ]
    for row in rows:
        if row["f"] != "resume":
            continue
        at, began, known = row["first_offset"], row["invoke_ns"], row["complete_ns"]
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
