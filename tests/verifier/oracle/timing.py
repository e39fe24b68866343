"""The checks of time once more, slow and obvious."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from tests.verifier.oracle import clients, transaction_logs
from tests.verifier.oracle.elections import moved
from tests.verifier.oracle.model import Anomaly, Evidence, Value, makes_sense
from verifier.evidence.run_model import RunModel


def read_before_send(evidence: Evidence) -> Iterator[Anomaly]:
    sent: dict[Value, int] = {}
    read: dict[Value, tuple[int, int]] = {}
    for row in evidence.rows:
        if row["f"] not in ("send", "sentinel", "poll") or row["type"] == "fail":
            continue
        if row["stream"] < 0 or not makes_sense(row):
            continue
        time = row["complete_ns" if row["f"] == "poll" else "invoke_ns"]
        if time < 0:
            continue
        for step in range(row["last_sequence"] - row["first_sequence"] + 1):
            value = (row["stream"], row["first_sequence"] + step)
            if row["f"] == "poll":
                read[value] = min(
                    read.get(value, (time, row["first_offset"] + step)), (time, row["first_offset"] + step)
                )
            else:
                sent[value] = min(sent.get(value, time), time)
    for value, (time, offset) in read.items():
        if value in sent and time < sent[value]:
            yield Anomaly("read-before-send", None, evidence.final.partition, *value, offset)


def standing(evidence: Evidence) -> list[dict[str, Any]]:
    """Acknowledgements of which each value is in the log once, where it was acknowledged, and only there."""
    acks, copies = evidence.acks(), evidence.copies()
    told = defaultdict(list)
    for value, offsets in acks.items():
        known = {offset for offset in offsets if offset is not None}
        told[value] = sorted(known)
    found = []
    for row in evidence.rows:
        if row["f"] not in ("send", "sentinel") or row["type"] != "ok" or row["stream"] < 0 or not makes_sense(row):
            continue
        if row["first_offset"] < max(evidence.judged_from, 0) or min(row["invoke_ns"], row["complete_ns"]) < 0:
            continue
        values = [(row["stream"], s) for s in range(row["first_sequence"], row["last_sequence"] + 1)]
        if all(len(copies.get(v, [])) == 1 and told[v] == [copies[v][0][0]] for v in values):
            found.append(row)
    return found


def realtime_order(evidence: Evidence) -> Iterator[Anomaly]:
    rows = standing(evidence)
    for row in rows:
        before = [other["last_offset"] for other in rows if other["complete_ns"] < row["invoke_ns"]]
        for step in range(row["last_offset"] - row["first_offset"] + 1):
            offset = row["first_offset"] + step
            if any(offset < other for other in before):
                value = (row["stream"], row["first_sequence"] + step)
                yield Anomaly("realtime-order", None, evidence.final.partition, *value, offset)


def epochs(evidence: Evidence) -> list[tuple[int, int, int]]:
    """(epoch, first offset, offset after the last) of the final log."""
    begins: dict[int, int] = {}
    for batch in evidence.leader.batches:
        if batch.crc_ok and batch.base_offset < evidence.limit(evidence.final.leader):
            begins[batch.leader_epoch] = min(begins.get(batch.leader_epoch, batch.base_offset), batch.base_offset)
    ordered = sorted(begins.items(), key=lambda item: item[1])
    ends = [begin for _, begin in ordered[1:]] + [1 << 62]
    return [(epoch, begin, end) for (epoch, begin), end in zip(ordered, ends, strict=True)] if ordered else []


def takes_late_answers(evidence: Evidence, process: str) -> bool:
    """Whether the watermark that this reader knows may be that of a leader that it has left."""
    declared = evidence.run.evidence.process(process)
    return declared is None or declared.client != "native"


def watermark_regression(evidence: Evidence) -> Iterator[Anomaly]:
    sessions = defaultdict(list)
    for row in evidence.rows:
        if row["f"] in ("poll", "idle") and row["phase"] == "load" and row["high_watermark"] >= 0:
            sessions[row["process"], row["session"]].append(row)
    acks = standing(evidence)
    for rows in sessions.values():
        rows.sort(key=lambda row: row["row"])
        for before, row in pairwise(rows):
            lower, higher = row["high_watermark"], before["high_watermark"]
            if lower >= higher or row["complete_ns"] < 0:
                continue
            takes_late = takes_late_answers(evidence, row["process"])
            for epoch, begin, end in epochs(evidence):
                if not begin <= higher - 1 < end or (takes_late and lower <= begin):
                    continue
                in_office = [ack["invoke_ns"] for ack in acks if begin <= ack["first_offset"] < end]
                if epoch >= evidence.final.leader_epoch or any(row["complete_ns"] < time for time in in_office):
                    excuse = moved(evidence, before["complete_ns"], row["complete_ns"], higher)
                    place = (evidence.final.partition, None, None, lower, higher - lower)
                    yield Anomaly("watermark-regression", None, *place, excuse)


def read_above_watermark(evidence: Evidence) -> Iterator[Anomaly]:
    acks = standing(evidence)
    for row in evidence.rows:
        watermark, last = row["high_watermark"], row["last_offset"]
        if row["f"] != "poll" or row["type"] != "ok" or row["first_offset"] < 0 or row["complete_ns"] < 0:
            continue
        if not 0 <= watermark <= last:
            continue
        for epoch, begin, end in epochs(evidence):
            if begin <= last < end and not (takes_late_answers(evidence, row["process"]) and watermark <= begin):
                in_office = [ack["invoke_ns"] for ack in acks if begin <= ack["first_offset"] < end]
                if epoch >= evidence.final.leader_epoch or any(row["complete_ns"] < time for time in in_office):
                    excuse = moved(evidence, row["complete_ns"], row["complete_ns"], last + 1)
                    above = max(row["first_offset"], watermark)
                    place = (evidence.final.partition, None, None, above, last - above + 1)
                    yield Anomaly("read-above-watermark", None, *place, excuse)


def wrong_ends(run: RunModel, rows: list[dict[str, Any]], logs: dict[tuple[str, int], list[Any]]) -> Iterator[Anomaly]:
    """Answers about ends, each beside every row of sends, every transaction, and every state of the log."""
    told = [row for row in rows if row["f"] == "end-offset" and min(row["first_offset"], row["complete_ns"]) >= 0]
    if run.may_elect_uncleanly or not told:
        return
    isolated = {(row["process"], row["session"]) for row in rows if row["f"] == "isolation"}
    sends = [row for row in rows if row["f"] in ("send", "sentinel") and row["type"] == "ok" and row["invoke_ns"] >= 0]
    committed = [each for each in clients.read(rows)[0] if each.committed]
    for row in told:

        def is_below(send: dict[str, Any], row: dict[str, Any] = row) -> bool:
            return clients.place(send) == clients.place(row) and 0 <= send["first_offset"] < row["first_offset"]

        place = (row["partition"], None, None, row["first_offset"])
        if any(is_below(send) and send["invoke_ns"] > row["complete_ns"] for send in sends):
            yield Anomaly("wrong-end-offset", "not-yet-sent", *place)
        late = [each for each in committed if each.asked is not None and each.asked > row["complete_ns"]]
        stored = [send for each in late for send in each.sends if send["type"] == "ok"]
        log = logs.get(clients.place(row))
        end = 0 if log is None else max((each.end for each in log), default=0)
        is_inside = log is not None and row["first_offset"] not in transaction_logs.stable_offsets(log)
        # beyond the end of the log, only what is open there counts
        if log is not None and row["first_offset"] > end:
            is_inside = any(marker >= row["first_offset"] for _, marker in transaction_logs.spans(log))
        if (row["process"], row["session"]) in isolated and (is_inside or any(map(is_below, stored))):
            yield Anomaly("wrong-end-offset", "undecided", *place)


CHECKS = (read_before_send, realtime_order, watermark_regression, read_above_watermark)
